"""Inter-rater agreement: Krippendorff's alpha, Cohen's kappa and the share of agreement.

Krippendorff's alpha is written out here because the package on PyPI that computes it is under the GPL, which
would bind whoever distributes this one. It is the oracle of a test.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Names, Numbers
from propensitybench.metrics.intervals import ConfidenceInterval, Interval
from propensitybench.metrics.judged import DRAWS, Precision, interval_of, scenario_weights
from propensitybench.metrics.sample import ClusteredSample

Scale = Literal["nominal", "ordinal", "interval"]
Ratings = Sequence[Sequence[float | None]]


class Alpha(NamedTuple):
    """Krippendorff's alpha.

    Attributes:
        value: None if no item has two ratings, or all ratings are equal.
        ci95: 95 % interval for new scenarios.
        method: how ``ci95`` was computed, or why there is none.
        items: number of items with two ratings or more.
    """

    value: float | None
    ci95: Interval | None
    method: str
    items: int


class RaterPair(msgspec.Struct, frozen=True):
    """The agreement of two raters on the items that both have rated.

    Attributes:
        first: row of one rater.
        second: row of the other.
        items: number of the items.
        agreement: share of the items with equal ratings; None without an item.
        agreement_ci95: 95 % interval for new scenarios.
        kappa: Cohen's kappa; None if all ratings of both are equal.
        kappa_ci95: 95 % interval for new scenarios.
        method: how ``kappa_ci95`` was computed, or why there is none.
    """

    first: int
    second: int
    items: int
    agreement: float | None
    agreement_ci95: Interval | None
    kappa: float | None
    kappa_ci95: Interval | None
    method: str


def krippendorff_alpha(ratings: Ratings, scale: Scale = "nominal") -> float | None:
    """Krippendorff's alpha (2004, chapter 11): 1 is perfect agreement, 0 agreement by chance.

    Args:
        ratings: one row for each rater, one column for each item; None where a rating is missing. Nominal
            labels are coded as numbers.
        scale: level of measurement of the ratings.

    Returns:
        None if no item has two ratings, or all ratings are equal.
    """
    values, parts = _coincidences(_table(ratings))
    if len(values) < 2:
        return None
    return float(_alpha(scale, values, parts.sum(axis=0, keepdims=True))[0])


def alpha_interval(
    ratings: Ratings,
    scenarios: Names,
    rng: np.random.Generator,
    scale: Scale = "nominal",
    draws: int = DRAWS,
) -> Alpha:
    """Krippendorff's alpha with the interval of a Bayesian bootstrap over scenarios.

    Args:
        ratings: as in `krippendorff_alpha`.
        scenarios: name of the scenario of each item.
        rng: of the bootstrap.
        scale: level of measurement of the ratings.
        draws: number of resamples.
    """
    table = _table(ratings)
    values, parts = _coincidences(table)
    paired = (~np.isnan(table)).sum(axis=0) > 1
    if len(values) < 2:
        return Alpha(None, None, "none: no value", int(paired.sum()))
    weights, precision = _weights(scenarios[paired], rng, draws)
    sums = np.einsum("ni,ijk->njk", weights, parts)
    alphas = _alpha(scale, values, sums)
    found = interval_of(alphas, precision)
    return Alpha(float(alphas[0]), found.interval, found.method, int(paired.sum()))


def pairs(
    ratings: Ratings, scenarios: Names, rng: np.random.Generator, draws: int = DRAWS
) -> list[RaterPair]:
    """The agreement of each pair of raters, on nominal ratings.

    Args:
        ratings: as in `krippendorff_alpha`.
        scenarios: name of the scenario of each item.
        rng: of the bootstrap.
        draws: number of resamples.
    """
    table = _table(ratings)
    return [
        _pair((first, second), table[[first, second]], scenarios, rng, draws)
        for first, second in combinations(range(len(table)), 2)
    ]


def _pair(
    raters: tuple[int, int], table: Numbers, scenarios: Names, rng: np.random.Generator, draws: int
) -> RaterPair:
    both = ~np.isnan(table).any(axis=0)
    values, codes = np.unique(table[:, both], return_inverse=True)
    codes = codes.reshape(2, -1)
    count, size = codes.shape[1], len(values)
    if not count:
        return RaterPair(*raters, 0, None, None, None, None, "none: no value")
    own = scenarios[both]
    same = (codes[0] == codes[1]).astype(np.float64)
    agreement = ClusteredSample(np.zeros(count, dtype=np.int64), own).mean(same)
    weights, precision = _weights(own, rng, draws)
    cells = (codes[0] * size + codes[1])[:, None] == np.arange(size**2)
    kappas = _kappa((weights @ cells).reshape(-1, size, size))
    defined = not np.isnan(kappas).any()
    found = interval_of(kappas, precision) if defined else ConfidenceInterval(None, "none: no value")
    return RaterPair(
        *raters,
        count,
        agreement.value,
        agreement.ci95,
        None if np.isnan(kappas[0]) else float(kappas[0]),
        found.interval,
        found.method,
    )


def _weights(scenarios: Names, rng: np.random.Generator, draws: int) -> tuple[Numbers, Precision]:
    """Random weights of the items, alike in each scenario, shape (1 + draws, items)."""
    names, cluster = np.unique(scenarios, return_inverse=True)
    count = len(names)
    weights = scenario_weights(count, draws, rng)
    # Alpha depends on the number of ratings: it must not change between resamples.
    weights *= len(cluster) / weights[:, cluster].sum(axis=1, keepdims=True)
    return weights[:, cluster], Precision(count, 1, count - 1, count)


def _table(ratings: Ratings) -> Numbers:
    return np.array([[np.nan if r is None else r for r in row] for row in ratings], dtype=np.float64)


def _coincidences(table: Numbers) -> tuple[Numbers, Numbers]:
    """The values and the coincidence matrix of each item with two ratings or more.

    Ordered pairs of ratings of an item, weighted by 1 / (raters - 1).
    """
    paired = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    values = np.unique(paired[~np.isnan(paired)])
    counts = (paired[:, :, None] == values).sum(axis=0).astype(np.float64)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    return values, pairs / (counts.sum(axis=1) - 1)[:, None, None]


def _alpha(scale: Scale, values: Numbers, coincidences: Numbers) -> Numbers:
    """Alpha of each coincidence matrix, shape (n, values, values)."""
    marginals = coincidences.sum(axis=2)
    distance = _distance(scale, values, marginals)
    whole = marginals.sum(axis=1) - 1
    expected = np.einsum("ni,nj,nij->n", marginals, marginals, distance) / whole
    return np.asarray(1 - (coincidences * distance).sum(axis=(1, 2)) / expected)


def _distance(scale: Scale, values: Numbers, marginals: Numbers) -> Numbers:
    """The squared difference of any two values (Krippendorff 2011, section B.4), of each matrix."""
    if scale == "nominal":
        return np.broadcast_to(1.0 - np.eye(len(values)), (*marginals.shape, len(values)))
    # An ordinal value's mid-rank: their difference is half of either rank and all between.
    points = np.cumsum(marginals, axis=1) - marginals / 2 if scale == "ordinal" else values[None, :]
    apart = points[:, :, None] - points[:, None, :]
    return np.asarray(np.broadcast_to(apart**2, (*marginals.shape, len(values))))


def _kappa(confusions: Numbers) -> Numbers:
    """Cohen's kappa of each matrix; NaN where the expected agreement by chance is 1."""
    p = confusions / confusions.sum(axis=(1, 2), keepdims=True)
    chance = (p.sum(axis=1) * p.sum(axis=2)).sum(axis=1)
    observed = np.trace(p, axis1=1, axis2=2)
    kappas: Numbers = np.full(len(p), np.nan)
    np.divide(observed - chance, 1 - chance, out=kappas, where=chance < 1)
    return kappas
