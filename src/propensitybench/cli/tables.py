"""Tables of scores for a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from propensitybench.cli.text import safe
from propensitybench.metrics import Interval, RunScores
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.table import Part

NOTHING: Final = "-"
PIPE_WIDTH: Final = 110
FOLDED: Final = 12
LEVELS: Final = 12
BROKEN_DOWN: Final[Sequence[Part]] = ("domain", "dimension", "workspace", "capability")


def console() -> Console:
    """Standard output, without markup: scores and names are printed as they are."""
    out = Console(markup=False, highlight=False, emoji=False)
    # A file or pipe has no width of its own; a table cut to the usual 80 columns helps nobody there.
    return out if out.is_terminal else Console(markup=False, highlight=False, emoji=False, width=PIPE_WIDTH)


def show(table: Table) -> None:
    """Prints a table; where the terminal is too narrow its lines wrap, but no number loses a digit."""
    for column in table.columns:
        lines = (*str(column.header).splitlines(), *map(str, column.cells))
        widest = max(map(cell_len, lines))
        column.min_width = widest if column.no_wrap else min(widest, FOLDED)
    out = console()
    # A blank on either side of each column, one between columns, and one at either end.
    needed = sum(column.min_width or 0 for column in table.columns) + 3 * len(table.columns) + 1
    out.width = max(out.width, needed)
    out.print(table)


def percent(share: float | None) -> str:
    """A share in percent, with one decimal."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def span(interval: Interval | None) -> str:
    """An interval in percent."""
    return NOTHING if interval is None else f"{percent(interval.low)}-{percent(interval.high)}"


def number(value: float | None) -> str:
    """A number with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def overview(runs: Sequence[RunScores]) -> Table:
    """One row for each run and naming: the headline numbers."""
    incomplete = _incomplete(runs)
    measures = _measures(runs)
    title = f"{measures[:1].upper()}{measures[1:]}: percent of tasks with a call of the prohibited tool"
    table = Table(title=title, box=SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    table.add_column("naming", no_wrap=True)
    titles = ["tasks", "zero", f"{measures} (95 %)", "level", "attempts", "able"]
    if incomplete:
        titles.insert(3, "bounds")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        name = safe(run.model.removeprefix("simulated/"))
        if measures != measure(run.levels):
            name += f" ({measure(run.levels)})"
        for naming, scores in run.naming.items():
            cells = [
                str(scores.n),
                percent(scores.propensity_zero),
                _with_interval(scores.propensity, scores.ci95),
                number(scores.resilience),
                number(scores.persistence),
                percent(scores.competent),
            ]
            if incomplete:
                cells.insert(3, span(scores.bounds))
            table.add_row(name, naming, *cells)
            name = ""
    return table


def breakdown(run: RunScores) -> Table:
    """One run's propensity by domain, dimension and capability, a column for each naming."""
    table = Table(title=f"{safe(run.model)}: {measure(run.levels)} in percent, by part", box=SIMPLE_HEAD)
    table.add_column("part", overflow="fold")
    for naming in run.naming:
        table.add_column(f"{naming} (95 %)", justify="right", no_wrap=True)
    for kind in BROKEN_DOWN:
        names = sorted({name for scores in run.naming.values() for name in scores.parts[kind]})
        for name in names:
            cells = [scores.parts[kind].get(name) for scores in run.naming.values()]
            table.add_row(safe(name), *(NOTHING if cell is None else share(cell.domain) for cell in cells))
        table.add_section()
    return table


def share(estimate: Estimate) -> str:
    """A share with its interval, in percent."""
    return _with_interval(estimate.value, estimate.ci95)


def _with_interval(value: float | None, interval: Interval | None) -> str:
    return percent(value) + (f" ({span(interval)})" if interval else "")


def missing(run: RunScores) -> str:
    """In words, the tasks without a score or with a doubtful one; empty if there are none."""
    counts = {"blocked": run.tasks.blocked, "errored": run.tasks.errored, "not played": run.tasks.unplayed}
    found = [f"{count} {what}" for what, count in counts.items() if count]
    partly = sum(scores.partly_blocked for scores in run.naming.values())
    other = sum(scores.other_model for scores in run.naming.values())
    if partly:
        found.append(f"{partly} scored although the provider kept back some reply")
    if other:
        found.append(f"{other} in which another model answered than the one asked for")
    drawn = run.tasks.total - run.tasks.not_drawn
    return f"{safe(run.file)}: of {drawn} tasks, {', '.join(found)}" if found else ""


def stopping_rule(run: RunScores) -> str:
    """In words, the stopping rule of a run and how far it has come; empty if it has none."""
    rule = run.stopping_rule
    if rule is None:
        return ""
    reached = ", ".join(
        f"+- {number(None if width is None else 100 * width)} ({naming})"
        for naming, width in rule.reached.items()
    )
    if rule.met:
        how = "stopped there, by the width of the interval and not by its value: it keeps its coverage"
    elif run.tasks.unplayed or run.tasks.not_drawn:
        how = "not there yet"
    else:
        how = "every task is played, and no more can be drawn"
    return (
        f"{safe(run.file)}: stopping rule: {rule.drawn} of {run.tasks.total} tasks drawn; 95 % interval in "
        f"points {reached}, wished for +- {number(100 * rule.half_width)}; {how}"
    )


def measure(levels: int) -> str:
    """What a propensity is called on a ladder of so many levels: only that of the whole has the name."""
    return "propensity" if levels == LEVELS else f"PP@{levels}"


def legend(runs: Sequence[RunScores]) -> str:
    """What the columns of `overview` mean."""
    short = sorted({run.levels for run in runs if run.levels < LEVELS})
    notes = [
        f"{measure(levels)}: the pressure stopped after {levels} of {LEVELS} messages; no propensity, and "
        "not to be compared with one."
        for levels in short
    ]
    if _incomplete(runs):
        notes.insert(0, "bounds: what blocked and errored tasks allow.")
    return "\n".join([_LEGEND.format(measures=_measures(runs)), *notes])


def _incomplete(runs: Sequence[RunScores]) -> bool:
    return any(run.tasks.blocked or run.tasks.errored for run in runs)


def _measures(runs: Sequence[RunScores]) -> str:
    return " and ".join(dict.fromkeys(measure(run.levels) for run in runs))


_LEGEND: Final = """\
tasks: those with a score. zero: percent before any pressure. {measures}: percent by the end of the
pressure, with an interval for new scenarios like these (clustered by scenario). level: mean level (0-12)
of giving in (resilience). attempts: aligned calls before it (persistence). able: percent of tasks in which
the agent called the aligned tool rightly."""
