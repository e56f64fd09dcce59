"""Tables of comparisons for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe
from propensitybench.metrics.analysis import RunAnalysis
from propensitybench.metrics.archetypes import Archetype
from propensitybench.metrics.capability_index import Correlation
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.models import ModelComparison
from propensitybench.taxonomy import Naming

LEGEND: Final = """\
difference: second minus first, in percentage points, on the tasks that both have finished, with a 95 %
interval for new scenarios like these. levels: the same for the levels withstood (0-13; more is safer).
p: two-sided sign-flip permutation test on the levels withstood, scenarios as units; Holm: adjusted for
the number of pairs. order: on the tasks that all have finished; rank 1 gives in least; its range when
scenarios are drawn again. benign minus harmful: on the tasks finished under both."""


def points(value: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return tables.NOTHING if value is None else f"{100 * value:+.1f}"


def points_with_interval(estimate: Estimate) -> str:
    """A difference of shares with its interval."""
    ci95 = estimate.ci95
    return points(estimate.value) + (f" ({points(ci95.low)} to {points(ci95.high)})" if ci95 else "")


def p_value(p: float | None) -> str:
    """A p-value for people."""
    return tables.NOTHING if p is None else "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def pairs(naming: Naming, comparison: ModelComparison) -> Table:
    """Every two models under a naming."""
    table = _table(f"{naming} names: the second minus the first")
    for title in ("first", "second"):
        table.add_column(title, overflow="fold")
    for title in ("tasks", "difference (95 %)", "levels", "p", "Holm"):
        table.add_column(title, justify="right", no_wrap=True)
    for pair in comparison.pairs:
        contrast = pair.contrast
        withstood = contrast.withstood.value
        table.add_row(
            safe(pair.first),
            safe(pair.second),
            str(contrast.propensity.n),
            points_with_interval(contrast.propensity),
            tables.NOTHING if withstood is None else f"{withstood:+.2f}",
            p_value(contrast.p),
            p_value(pair.p_holm),
        )
    return table


def ranks(naming: Naming, comparison: ModelComparison) -> Table:
    """The order of the models under a naming."""
    table = _table(f"{naming} names: order on the {comparison.common} common tasks")
    table.add_column("model", overflow="fold")
    for title in ("propensity", "rank", "range (95 %)"):
        table.add_column(title, justify="right", no_wrap=True)
    for rank in sorted(comparison.ranks, key=lambda rank: (rank.rank is None, rank.rank)):
        ends = rank.rank_ci95
        table.add_row(
            safe(rank.model),
            tables.percent(rank.propensity),
            tables.NOTHING if rank.rank is None else f"{rank.rank:g}",
            tables.NOTHING if ends is None else f"{ends.low:g}-{ends.high:g}",
        )
    return table


def namings(runs: Sequence[RunAnalysis]) -> Table:
    """What a harmless name of the same tool changes, model by model."""
    table = _table("benign minus harmful names")
    table.add_column("model", overflow="fold")
    for title in ("tasks", "difference (95 %)", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        contrast = run.scores.naming_contrast
        if contrast is not None:
            difference = points_with_interval(contrast.propensity)
            table.add_row(safe(run.name), str(contrast.propensity.n), difference, p_value(contrast.p))
    return table


def kinds(archetypes: Mapping[Naming, Sequence[Archetype]]) -> Table:
    """When and after how much work each model gives in."""
    table = _table("When they give in, and after how much work")
    table.add_column("model", overflow="fold")
    table.add_column("naming", no_wrap=True)
    for title in ("level", "attempts", "kind, relative\nto these models", "probability"):
        table.add_column(title, justify="right", no_wrap=True)
    for naming, found in archetypes.items():
        for model in found:
            table.add_row(
                safe(model.model),
                naming,
                tables.number(model.resilience),
                tables.number(model.persistence),
                model.kind,
                tables.number(model.probability),
            )
    return table


def index_line(found: Correlation) -> str:
    """The correlation with an index, with as much as can be said of it."""
    if found.rho is None:
        return (
            "Correlation with the index: not known. It takes three models with both numbers, which differ; "
            f"here are {len(found.models)}."
        )
    interval = f"{found.ci95.low:.2f} to {found.ci95.high:.2f}" if found.ci95 else "not known below 4 models"
    return (
        f"Spearman correlation of the index with the propensity under harmful names: {found.rho:.2f} "
        f"over {len(found.models)} models (95 %: {interval})."
    )


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD)
