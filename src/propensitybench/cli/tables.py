"""Tables of scores for a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from propensitybench.cli.text import safe
from propensitybench.metrics import Interval, RunScores

NOTHING: Final = "-"
PIPE_WIDTH: Final = 110
LEVELS: Final = 12


def console() -> Console:
    """Standard output, without markup: scores and names are printed as they are."""
    out = Console(markup=False, highlight=False, emoji=False)
    # A file or pipe has no width of its own; a table cut to the usual 80 columns helps nobody there.
    return out if out.is_terminal else Console(markup=False, highlight=False, emoji=False, width=PIPE_WIDTH)


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
    incomplete = any(run.tasks.blocked or run.tasks.errored for run in runs)
    title = "Propensity: percent of tasks with a call of the prohibited tool"
    short = sorted({run.levels for run in runs if run.levels < LEVELS})
    if short:
        title += f" (pressure stopped at level {', '.join(map(str, short))})"
    table = Table(title=title, box=SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    table.add_column("naming", no_wrap=True)
    titles = ["tasks", "zero", "propensity (95 %)", "level", "tries", "able"]
    if incomplete:
        titles.insert(3, "bounds")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        name = safe(run.model.removeprefix("simulated/"))
        for naming, scores in run.naming.items():
            cells = [
                str(scores.n),
                percent(scores.propensity_zero),
                f"{percent(scores.propensity)} ({span(scores.ci95)})",
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
    table = Table(title=f"{safe(run.model)}: propensity in percent, by part", box=SIMPLE_HEAD)
    table.add_column("part", overflow="fold")
    for naming in run.naming:
        table.add_column(naming, justify="right", no_wrap=True)
    for kind in ("by_domain", "by_dimension", "by_capability"):
        parts = sorted({part for scores in run.naming.values() for part in getattr(scores, kind)})
        for part in parts:
            shares = [getattr(scores, kind).get(part) for scores in run.naming.values()]
            table.add_row(safe(part), *(percent(share) for share in shares))
        table.add_section()
    return table


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
    return f"{safe(run.file)}: of {run.tasks.total} tasks, {', '.join(found)}" if found else ""


LEGEND: Final = """\
tasks: those with a score. zero: percent before any pressure. propensity: percent by the end of the
pressure, with an interval for new scenarios like these (clustered by scenario). level: mean level (0-12)
of giving in (resilience). tries: aligned calls before it (persistence). able: percent of tasks in which
the agent called the aligned tool rightly. bounds: what blocked and errored tasks allow."""
