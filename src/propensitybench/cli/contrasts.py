"""Comparison tables for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli.text import safe
from propensitybench.metrics import display
from propensitybench.metrics.analysis import RunAnalysis
from propensitybench.metrics.archetypes import Archetype
from propensitybench.metrics.capability_index import Correlation
from propensitybench.metrics.compare import BEGUN_IN_BOTH, P_TESTS
from propensitybench.metrics.models import BEGUN_IN_ALL, ModelComparison
from propensitybench.metrics.ranks import ALL_COVERED
from propensitybench.taxonomy import Naming

LEGEND: Final = f"""\
tasks: those {BEGUN_IN_BOTH}. difference: in percentage points, on these tasks, with a 95 % interval for new
scenarios. levels: difference in levels withstood (0-13; more is safer).
p: {P_TESTS}.
Holm: adjusted for the number of pairs. common tasks: those {BEGUN_IN_ALL}. rank: 1 is the lowest
propensity on these. The ranges are simultaneous:
{ALL_COVERED}."""


def pairs(naming: Naming, comparison: ModelComparison) -> Table:
    """Pairwise differences under a naming."""
    table = _table(f"{naming} names: the second minus the first")
    for title in ("first", "second"):
        table.add_column(title, overflow="fold")
    for title in ("tasks", "difference (95 %)", "levels", "p", "Holm"):
        table.add_column(title, justify="right", no_wrap=True)
    for pair in comparison.pairs:
        contrast = pair.contrast
        table.add_row(
            safe(pair.first),
            safe(pair.second),
            str(contrast.propensity.n),
            display.points_with_interval(contrast.propensity),
            display.signed(contrast.withstood.value),
            display.p_value(contrast.p),
            display.p_value(pair.p_holm),
        )
    return table


def ranks(naming: Naming, comparison: ModelComparison) -> Table:
    """Ranks of the models under a naming."""
    table = _table(f"{naming} names: ranks (common tasks: {comparison.common})")
    table.add_column("model", overflow="fold")
    for title in ("propensity", "rank", "range (95 %)"):
        table.add_column(title, justify="right", no_wrap=True)
    for model, rank in comparison.in_order():
        table.add_row(
            safe(model),
            display.percent(rank.propensity),
            f"{rank.rank:g}",
            f"{rank.ci95.low}-{rank.ci95.high}",
        )
    return table


def namings(runs: Sequence[RunAnalysis]) -> Table:
    """The difference between the namings for each model."""
    table = _table("benign minus harmful names")
    table.add_column("model", overflow="fold")
    for title in ("tasks", "difference (95 %)", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    for run in runs:
        contrast = run.scores.naming_contrast
        if contrast is not None:
            difference = display.points_with_interval(contrast.propensity)
            table.add_row(safe(run.name), str(contrast.propensity.n), difference, display.p_value(contrast.p))
    return table


def kinds(archetypes: Mapping[Naming, Sequence[Archetype]]) -> Table:
    """Archetype of each model: when and after how much work it gives in."""
    table = _table("Archetypes: when models give in, and after how much work")
    table.add_column("model", overflow="fold")
    table.add_column("naming", no_wrap=True)
    for title in ("resilience", "persistence", "archetype, relative\nto these models", "probability"):
        table.add_column(title, justify="right", no_wrap=True)
    for naming, found in archetypes.items():
        for model in found:
            table.add_row(
                safe(model.model),
                naming,
                display.number(model.resilience),
                display.number(model.persistence),
                model.kind,
                display.number(model.probability),
            )
    return table


def index_line(found: Correlation) -> str:
    """The correlation with a capability index, in a sentence."""
    if found.rho is None:
        return (
            "Correlation with the index: unknown. It takes three models with both numbers, which differ; "
            f"here are {len(found.models)}."
        )
    interval = f"{found.ci95.low:.2f} to {found.ci95.high:.2f}" if found.ci95 else "not known below 4 models"
    return (
        f"Spearman correlation of the index with the propensity under harmful names: {found.rho:.2f} "
        f"over {len(found.models)} models (95 %: {interval})."
    )


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD)
