"""Several models on the same tasks: pairwise comparisons, and ranks with intervals."""

from collections.abc import Mapping
from functools import reduce
from itertools import combinations
from typing import Final

import msgspec

from propensitybench.metrics.compare import Contrast, matched, paired
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.ranks import Rank, rank_models
from propensitybench.metrics.table import Table

# What the ranks and ``common`` are of. Every text beside these numbers says so in these words.
BEGUN_IN_ALL: Final = "begun in every run"


class ModelPair(msgspec.Struct, frozen=True):
    """The second model minus the first, with p-values adjusted over all pairs of the comparison."""

    first: str
    second: str
    contrast: Contrast
    p_holm: float | None
    p_bh: float | None


class ModelComparison(msgspec.Struct, frozen=True):
    """Models under one naming.

    Attributes:
        pairs: every two models, on the tasks that have begun in both.
        ranks: by model, on the units that have begun in every run; models without a propensity are absent.
        common: number of those units.
    """

    pairs: tuple[ModelPair, ...]
    ranks: dict[str, Rank]
    common: int

    def in_order(self) -> list[tuple[str, Rank]]:
        """The models and their ranks, the lowest first."""
        return sorted(self.ranks.items(), key=lambda one: one[1].rank)


def compare_models(tables: Mapping[str, Table]) -> ModelComparison:
    """Compares models.

    Args:
        tables: the episodes of one naming, by the name of the model.
    """
    found = [
        (first, second, paired(tables[first], tables[second])) for first, second in combinations(tables, 2)
    ]
    tested = [contrast.p for _, _, contrast in found if contrast.p is not None]
    adjusted = iter(zip(holm(tested), benjamini_hochberg(tested), strict=True))
    pairs = []
    for first, second, contrast in found:
        p_holm, p_bh = next(adjusted) if contrast.p is not None else (None, None)
        pairs.append(ModelPair(first, second, contrast, p_holm, p_bh))
    shared = _shared(tables)
    ranks = rank_models(shared).ranks
    common = len(next(iter(shared.values()))) if shared else 0
    # A single model has nothing to be ranked against.
    return ModelComparison(tuple(pairs), ranks if len(ranks) > 1 else {}, common)


def _shared(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Every table restricted to the units that have begun in all of them."""
    if not tables:
        return {}
    least = reduce(lambda one, other: matched(one, other)[0], tables.values())
    return {name: matched(least, table)[1] for name, table in tables.items()}
