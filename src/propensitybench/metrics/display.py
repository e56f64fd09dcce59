"""Formatting of scores and comparisons: numbers, plain text, notebook tables and rows."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from propensitybench.metrics.compare import BEGUN_IN_BOTH
from propensitybench.taxonomy import ESCALATING, taxonomy

if TYPE_CHECKING:
    from propensitybench.metrics.analysis import Analysis
    from propensitybench.metrics.estimates import Estimate
    from propensitybench.metrics.intervals import Interval
    from propensitybench.metrics.scores import RunScores

NOTHING: Final = "-"
FULL_LADDER: Final = 12


class Grid(NamedTuple):
    """A table of formatted cells."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def text(self) -> str:
        """The table as plain text; the first two columns are left-aligned, the others right-aligned."""
        widths = [max(len(row[i]) for row in [self.columns, *self.rows]) for i in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if place < 2 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in [self.columns, *self.rows]
        ]
        return "\n".join([self.title, *lines])

    def html(self) -> str:
        """The table as HTML, for notebooks."""
        head = "".join(f"<th>{escape(title)}</th>" for title in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        caption = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def percent(share: float | None) -> str:
    """A share in percent, to one decimal place."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def span(interval: "Interval | None") -> str:
    """An interval in percent."""
    return NOTHING if interval is None else f"{percent(interval.low)}-{percent(interval.high)}"


def with_interval(share: float | None, interval: "Interval | None") -> str:
    """A share with its interval, in percent."""
    return percent(share) + (f" ({span(interval)})" if interval else "")


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    # Adding zero makes a rounded -0.0 positive.
    return NOTHING if value is None else f"{round(100 * value, 1) + 0.0:+.1f}"


def points_with_interval(estimate: "Estimate") -> str:
    """A difference of shares with its interval, in percentage points."""
    ci95 = estimate.ci95
    return points(estimate.value) + (f" ({points(ci95.low)} to {points(ci95.high)})" if ci95 else "")


def p_value(p: float | None) -> str:
    """A p-value to three decimal places."""
    return NOTHING if p is None else "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def number(value: float | None) -> str:
    """A number to two decimal places."""
    return NOTHING if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """A difference to two decimal places, with its sign."""
    return NOTHING if value is None else f"{value:+.2f}"


def measure(levels: int, arm: str = ESCALATING) -> str:
    """Name of the share misaligned: the propensity, or PP@K after fewer messages, or that of another arm."""
    if arm != ESCALATING:
        return f"share under {arm}"
    return "propensity" if levels == FULL_LADDER else f"PP@{levels}"


def measures(runs: "Sequence[RunScores]") -> str:
    """Name of the propensity in a table of several runs."""
    return " and ".join(dict.fromkeys(measure(run.levels, run.arm) for run in runs))


def overview(runs: "Sequence[RunScores]") -> Grid:
    """The published metrics, one row for each run and naming."""
    incomplete = any(run.tasks.unscored for run in runs)
    called = measures(runs)
    columns = ["model", "naming", "tasks", "zero-pressure", f"{called} (95 %)"]
    columns += ["bounds"] if incomplete else []
    columns += ["resilience", "persistence", "competence"]
    rows = []
    for run in runs:
        name = run.model.removeprefix("simulated/")
        own = measure(run.levels, run.arm)
        if called != own:
            name += f" ({own})"
        if run.shard:
            name += f" (shard {run.shard})"
        for naming, scores in run.naming.items():
            row = [name, naming, str(scores.n), percent(scores.propensity_zero)]
            row.append(with_interval(scores.propensity, scores.ci95))
            row += [span(scores.bounds)] if incomplete else []
            row += [number(scores.resilience), number(scores.persistence), percent(scores.competent)]
            rows.append(row)
            name = ""
    return Grid(_title(runs, called), columns, rows)


def _title(runs: "Sequence[RunScores]", called: str) -> str:
    """What the table shows, and what keeps it from being a number of the whole benchmark."""
    words = [f"{called[:1].upper()}{called[1:]}"]
    if any(run.tasks.unfinished or run.tasks.unplayed for run in runs):
        words.append("preliminary")
    absent = max((len(s.absent_domains) for run in runs for s in run.naming.values()), default=0)
    if absent:
        total = len(taxonomy().domains)
        words.append(f"{total - absent} of {total} domains")
    return f"{', '.join(words)}: percent of tasks with a call of the prohibited tool"


def missing(run: "RunScores") -> str:
    """A sentence about tasks without a score or with a doubtful one; empty if there are none."""
    tasks = run.tasks
    counts = {
        "blocked": tasks.blocked,
        "truncated (raise --max-tokens)": tasks.truncated,
        "errored": tasks.errored,
        "in progress when the run stopped": tasks.unfinished,
        "not begun": tasks.unplayed,
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    other = sum(scores.other_model for scores in run.naming.values())
    if other:
        found.append(f"{other} answered in part by another model than the one requested")
    return f"{run.file}: of {tasks.total - tasks.not_drawn} tasks, {', '.join(found)}" if found else ""


def remarks(run: "RunScores") -> list[str]:
    """What a reader of the scores has to know: an agent that may look safe, and tasks without a score."""
    competence = f"{run.file}: {run.low_competence}" if run.low_competence else ""
    return [line for line in (competence, missing(run)) if line]


def scores_text(run: "RunScores") -> str:
    """The published metrics of a run, in a few lines."""
    return "\n".join([overview([run]).text(), *remarks(run)])


def scores_html(run: "RunScores") -> str:
    """The same as HTML, for notebooks."""
    return overview([run]).html() + "".join(f"<p>{escape(one)}</p>" for one in remarks(run))


def scores_rows(run: "RunScores") -> list[dict[str, Any]]:
    """One row for each number of a run that has an interval.

    Columns: model, naming, estimand (e.g. ``propensity``), part (``all``, ``domain``, ...), name of the part,
    value, low and high (95 % interval), se (standard error for new scenarios), n (units), scenarios.
    """
    rows: list[dict[str, Any]] = []
    for naming, scores in run.naming.items():
        where = {"model": run.model, "naming": naming}
        for name, both in scores.estimates.items():
            rows.append({**where, "estimand": name, "part": "all", "name": "", **_numbers(both.domain)})
        for level, both in enumerate(scores.levels):
            at = {"estimand": "propensity by level", "part": "level", "name": str(level)}
            rows.append({**where, **at, **_numbers(both.domain)})
        for part, cells in scores.parts.items():
            for name, both in cells.items():
                at = {"estimand": "propensity", "part": part, "name": name}
                rows.append({**where, **at, **_numbers(both.domain)})
    return rows


def _numbers(estimate: "Estimate") -> dict[str, float | None]:
    ci95 = estimate.ci95
    return {
        "value": estimate.value,
        "low": ci95.low if ci95 else None,
        "high": ci95.high if ci95 else None,
        "se": estimate.errors.scenario,
        "n": estimate.n,
        "scenarios": estimate.clusters,
    }


def pairs(analysis: "Analysis") -> Grid:
    """Pairwise differences between runs under each naming: second minus first."""
    rows = []
    for naming, comparison in analysis.models.items():
        for pair in comparison.pairs:
            contrast = pair.contrast
            rows.append(
                [
                    f"{pair.second} - {pair.first}",
                    naming,
                    str(contrast.propensity.n),
                    points_with_interval(contrast.propensity),
                    p_value(contrast.p),
                    p_value(pair.p_holm),
                    signed(contrast.withstood.value),
                ]
            )
    columns = ["second - first", "naming", "tasks", "difference (95 %)", "p", "Holm", "levels"]
    return Grid(f"Differences in percentage points, on the tasks {BEGUN_IN_BOTH}", columns, rows)


def pairs_rows(analysis: "Analysis") -> list[dict[str, Any]]:
    """One row for each pair of runs and naming; differences are shares, not percentage points."""
    return [
        {
            "first": pair.first,
            "second": pair.second,
            "naming": naming,
            **_numbers(pair.contrast.propensity),
            "levels_withstood": pair.contrast.withstood.value,
            "p": pair.contrast.p,
            "p_holm": pair.p_holm,
        }
        for naming, comparison in analysis.models.items()
        for pair in comparison.pairs
    ]
