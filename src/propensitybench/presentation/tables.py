"""The tables of scores, as text, as HTML for notebooks, and as rows for data frames."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from propensitybench.episode import Conduct
from propensitybench.metrics import NamingScores, ScoredRun
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.measures import DescribedNumber, shown_in
from propensitybench.metrics.table import Part
from propensitybench.presentation.formats import (
    NOTHING,
    capitalised,
    measured,
    measured_with_interval,
    number,
    percent,
    span,
    with_interval,
)
from propensitybench.presentation.words import PROPENSITY, own_of, propensity_name, propensity_names

BROKEN_DOWN: Final[Sequence[Part]] = ("domain", "dimension", "workspace", "capability")


class Grid(NamedTuple):
    """A table of formatted cells.

    Attributes:
        rows: of cells; an empty one is a line.
        names: how many columns, from the left, hold names.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    @property
    def _heads(self) -> list[str]:
        return [column.replace("\n", " ") for column in self.columns]

    def text(self) -> str:
        """The table as plain text: names to the left, numbers to the right."""
        rows = [self._heads, *(row for row in self.rows if row)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if place < self.names else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *lines])

    def html(self) -> str:
        """The table as HTML."""
        head = "".join(f"<th>{escape(title)}</th>" for title in self._heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        caption = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def share(estimate: Estimate) -> str:
    """A share with its interval, in percent."""
    return with_interval(estimate.value, estimate.ci95)


def overview(runs: Sequence[ScoredRun]) -> Grid:
    """The published metrics, one row for each run and naming."""
    called, measures = propensity_names(runs), [*shown_in("overview"), *own_of(runs)]
    incomplete = any(run.tasks.unscored for run in runs)
    columns = [called if measure is PROPENSITY else measure.label for measure in measures]
    with_ends = {PROPENSITY.name, *(name for run in runs for name in run.own), *_open(runs)}
    columns = [
        f"{column} (95 %)" if measure.name in with_ends else column
        for column, measure in zip(columns, measures, strict=True)
    ]

    def numbers(scores: NamingScores) -> Iterator[str]:
        for measure in measures:
            if measure.name not in scores.estimates:
                yield NOTHING  # it is a metric of another run alone
                continue
            estimate = scores.estimates[measure.name].domain
            whole = measure.name in with_ends
            yield measured_with_interval(measure, estimate) if whole else measured(measure, estimate.value)
        if incomplete:
            yield span(scores.bounds)

    rows = []
    for run in runs:
        name, own = run.model.removeprefix("simulated/"), propensity_name(run.levels, run.arm, run.ladder)
        if called != own:
            name += f" ({own})"
        if run.shard:
            name += f" (shard {run.shard})"
        for naming, scores in run.naming.items():
            rows.append([name, naming, str(scores.n), *numbers(scores)])
            name = ""
    ends = ["bounds"] if incomplete else []
    return Grid(_title(runs, called), ["model", "naming", "tasks", *columns, *ends], rows, names=2)


def _open(runs: Sequence[ScoredRun]) -> Iterator[str]:
    """The measures that tasks without a score leave open: alone, an estimate would look like a result."""
    for run in runs:
        for scores in run.naming.values():
            for name, both in scores.estimates.items():
                bounds = both.domain.bounds
                if bounds is not None and bounds.low < bounds.high:
                    yield name


def _title(runs: Sequence[ScoredRun], called: str) -> str:
    """What the table shows, and what keeps it from being a number of the whole benchmark."""
    words = [capitalised(called)]
    if any(run.tasks.unfinished or run.tasks.unplayed for run in runs):
        words.append("preliminary")
    shown = [scores for run in runs for scores in run.naming.values()]
    fewest = max(shown, key=lambda scores: len(scores.absent_domains), default=None)
    if fewest is not None and fewest.absent_domains:
        played = len(fewest.by_domain)
        words.append(f"{played} of {played + len(fewest.absent_domains)} domains")
    return f"{', '.join(words)}: percent of tasks with a call of the misaligned tool"


def details(run: ScoredRun) -> Iterator[Grid]:
    """The uncertainty of a run's propensity, the propensity of its parts, and its closing reports."""
    columns = ["naming", "scenarios", "by task", "SE\nbenchmark", "SE\nscenario", "SE\nstoryline",
               "SE\nworkspace", "scored\nonly", "withstood", "design\neffect"]  # fmt: skip
    title = f"{run.model}: uncertainty (percent and percentage points)"
    yield Grid(title, columns, list(_uncertainty(run)))
    columns = ["part", *(f"{naming} (95 %)" for naming in run.naming)]
    title = f"{run.model}: {propensity_name(run.levels, run.arm, run.ladder)} in percent, by part"
    yield Grid(title, columns, list(_parts(run)))
    for metric in own_of([run]):
        yield Grid(f"{run.model}: {metric.label}, by part", columns, list(_own_parts(run, metric)))
    kinds = [kind.value for kind in Conduct if any(kind.value in one.conduct for one in run.naming.values())]
    if kinds:
        counts = [
            [naming, *(str(scores.conduct.get(kind, 0)) for kind in kinds)]
            for naming, scores in run.naming.items()
        ]
        yield Grid(f"{run.model}: closing reports", ["naming", *kinds], counts)


def _uncertainty(run: ScoredRun) -> Iterator[Sequence[str]]:
    for naming, scores in run.naming.items():
        both = scores.estimates[PROPENSITY.name]
        errors = both.domain.errors
        shares = (both.task.value, errors.benchmark, errors.scenario, errors.storyline, errors.workspace)
        yield (
            naming,
            str(both.domain.clusters),
            *map(percent, shares),
            percent(scores.missing.complete_case),
            f"{number(scores.estimates['withstood'].domain.value)} of {run.levels + 1}",
            number(scores.variance.design_effect),
        )


def _parts(run: ScoredRun) -> Iterator[Sequence[str]]:
    for kind in BROKEN_DOWN:
        for name in sorted({name for scores in run.naming.values() for name in scores.parts[kind]}):
            cells = [scores.parts[kind].get(name) for scores in run.naming.values()]
            yield name, *(NOTHING if one is None else share(one.domain) for one in cells)
        yield ()


def _own_parts(run: ScoredRun, metric: DescribedNumber) -> Iterator[Sequence[str]]:
    namings = run.naming.values()
    yield "all", *(measured_with_interval(metric, s.estimates[metric.name].domain) for s in namings)
    for kind in BROKEN_DOWN:
        yield ()
        parts = [scores.own_parts[metric.name][kind] for scores in namings]
        for name in sorted({name for found in parts for name in found}):
            yield (
                name,
                *(measured_with_interval(metric, p[name].domain) if name in p else NOTHING for p in parts),
            )


def score_rows(run: ScoredRun) -> list[dict[str, Any]]:
    """One row for each number of a run that has an interval.

    Columns: model, naming, estimand (e.g. ``propensity``), part (``all``, ``domain``, ...), name of the part,
    value, low and high (95 % interval), se (standard error for new scenarios), n (units), scenarios.
    """
    rows: list[dict[str, Any]] = []
    for naming, scores in run.naming.items():
        found = [(name, "all", "", both) for name, both in scores.estimates.items()]
        found += [("propensity by level", "level", str(at), both) for at, both in enumerate(scores.levels)]
        found += [
            (PROPENSITY.name, part, name, both)
            for part, cells in scores.parts.items()
            for name, both in cells.items()
        ]
        found += [
            (metric, part, name, both)
            for metric, parts in scores.own_parts.items()
            for part, cells in parts.items()
            for name, both in cells.items()
        ]
        rows += [
            {"model": run.model, "naming": naming, "estimand": estimand, "part": part, "name": name}
            | numbers_of(both.domain)
            for estimand, part, name, both in found
        ]
    return rows


def numbers_of(estimate: Estimate) -> dict[str, float | None]:
    """The numbers of an estimate as columns of a data frame."""
    low, high = estimate.ci95 or (None, None)
    return {
        "value": estimate.value,
        "low": low,
        "high": high,
        "se": estimate.errors.scenario,
        "n": estimate.n,
        "scenarios": estimate.clusters,
    }
