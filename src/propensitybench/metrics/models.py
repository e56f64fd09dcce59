"""Several models on the same tasks: pairwise comparisons, and ranks with intervals."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.compare import Contrast, common, paired
from propensitybench.metrics.estimates import propensity_terms, ratio
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.resample import Resample
from propensitybench.metrics.table import Table


class Pair(msgspec.Struct, frozen=True):
    """The second model minus the first, with p-values adjusted over all pairs of the comparison."""

    first: str
    second: str
    contrast: Contrast
    p_holm: float | None
    p_bh: float | None


class Rank(msgspec.Struct, frozen=True):
    """A model's rank by propensity; rank 1 is the lowest propensity.

    Attributes:
        propensity: on the tasks that are scored for every model.
        rank: among the models compared; ties share the mean of their ranks.
        rank_ci95: bootstrap percentile interval of the rank, scenarios resampled; None if a domain has one
            scenario.
    """

    model: str
    propensity: float | None
    rank: float | None
    rank_ci95: Interval | None


class ModelComparison(msgspec.Struct, frozen=True):
    """Models under one naming.

    Attributes:
        pairs: every two models, on the tasks that are scored for both.
        ranks: in the order of the models, on the units that are scored for all of them.
        common: number of those units.
    """

    pairs: tuple[Pair, ...]
    ranks: tuple[Rank, ...]
    common: int


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
        pairs.append(Pair(first, second, contrast, p_holm, p_bh))
    shared = _shared(list(tables.values()))
    return ModelComparison(tuple(pairs), _ranks(list(tables), shared), len(shared[0]) if shared else 0)


def _shared(tables: Sequence[Table]) -> list[Table]:
    """Every table restricted to the units that are scored in all of them, in the same order."""
    if not tables:
        return []
    least = tables[0].done()
    for table in tables[1:]:
        least, _ = common(least, table)
    return [common(least, table)[1] for table in tables]


def _ranks(names: Sequence[str], tables: Sequence[Table]) -> tuple[Rank, ...]:
    if not tables or not len(tables[0]):
        return tuple(Rank(name, None, None, None) for name in names)
    values = np.array([ratio(table, propensity_terms(table)) for table in tables], dtype=np.float64)
    # The same resampled scenarios for every model: their tables have the same units in the same order.
    draws = np.stack([Resample(table).ratios(propensity_terms(table)) for table in tables], axis=1)
    places = _places(values[None, :])[0]
    ends: list[Interval | None] = [None] * len(names)
    if not np.isnan(draws).any():
        low, high = np.quantile(_places(draws), [0.025, 0.975], axis=0, method="inverted_cdf")
        ends = [Interval(float(low[i]), float(high[i])) for i in range(len(names))]
    return tuple(Rank(name, float(values[i]), float(places[i]), ends[i]) for i, name in enumerate(names))


def _places(values: Numbers) -> Numbers:
    """Ranks along the last axis; values that are equal but for rounding share the mean of their ranks."""
    from scipy.stats import rankdata  # scipy.stats takes half a second to import

    return np.asarray(rankdata(np.round(values, 12), axis=-1), dtype=np.float64)
