"""Paired comparison of two sets of episodes on the same tasks, with permutation tests."""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.censoring import Endings
from propensitybench.metrics.clustered import Places
from propensitybench.metrics.estimates import (
    Estimate,
    RatioTerms,
    estimate,
    interval,
    propensity_terms,
    ratio,
)
from propensitybench.metrics.intervals import ROUNDING, SHARE, TAIL, Found, Interval
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.table import Table

FLIPS: Final = 10_000
# Sign vectors at a time: of a full run, 16 MB.
BATCH: Final = 1000
DECIMALS: Final = 12
# What a difference, its n and its p are of. Every text beside these numbers says so in these words.
BEGUN_IN_BOTH: Final = "begun in both"
P_TESTS: Final = (
    "two-sided sign-flip test of the difference in propensity, scenarios as units, tasks scored in both"
)


class Contrast(msgspec.Struct, frozen=True):
    """The second set of episodes minus the first, on the same units.

    Attributes:
        propensity: difference in propensity (-1..1) on the units that have begun in both, each side weighted
            for its own censoring; interval and bounds allow for units without a score.
        withstood: difference in levels withstood, likewise.
        p: p-value of the two-sided sign-flip permutation test of the difference in propensity between the
            units that are scored in both, see `sign_flip`; None without one. Of the others it says nothing.
        p_withstood: the same for levels withstood.
        only_first, only_second: scored units that the other set lacks; they are left out.
        p_tests: what ``p`` tests, in words.
    """

    propensity: Estimate
    withstood: Estimate
    p: float | None
    p_withstood: float | None
    only_first: int
    only_second: int
    p_tests: str = P_TESTS


def paired(first: Table, second: Table, flips: int = FLIPS, tail: float = TAIL) -> Contrast:
    """Compares two tables of the same tasks: two namings of a model, or two models.

    Args:
        first: the table to subtract.
        second: the table that it is subtracted from.
        flips: number of random sign vectors of the permutation tests; with 0, their p-values are None.
        tail: probability beyond each end of the intervals for new scenarios.
    """
    one, other = matched(first, second)
    scored = (one.finished > 0) & (other.finished > 0)
    ladder = float(max(one.levels, other.levels))
    propensity, withstood = _propensity(one, other), _withstood(one, other, Interval(0.0, ladder))
    pairs = one.where(scored), other.where(scored)
    return Contrast(
        propensity=estimate(one, propensity, "difference in propensity, same tasks", tail=tail),
        withstood=estimate(one, withstood, "difference in levels withstood, same tasks", tail=tail),
        p=_p_value(pairs, lambda table: table.misaligned, flips),
        p_withstood=_p_value(pairs, lambda table: table.withstood, flips),
        only_first=int((first.finished > 0).sum() - scored.sum()),
        only_second=int((second.finished > 0).sum() - scored.sum()),
    )


def propensity_difference(first: Table, second: Table, tail: float) -> tuple[float | None, Found]:
    """The difference in propensity and its interval, as in `paired`, without the rest.

    Args:
        first: the table to subtract.
        second: the table that it is subtracted from.
        tail: probability beyond each end of the interval.
    """
    one, other = matched(first, second)
    terms = _propensity(one, other)
    return ratio(one, terms), interval(one, terms, tail)


def _propensity(one: Table, other: Table) -> RatioTerms:
    """Terms of the difference in propensity, second minus first."""
    return difference_terms(one, propensity_terms(one), propensity_terms(other))


def difference_terms(table: Table, first: RatioTerms, second: RatioTerms) -> RatioTerms:
    """Terms of the difference of two shares over the same units, the second minus the first.

    Args:
        table: of either side; the two have the same units in the same order (`matched`).
        first: the share to subtract, with its ends where episodes are missing.
        second: the share that it is subtracted from.
    """
    found = _minus(table, first, second, SHARE)
    if first.ends is None and second.ends is None:
        return found
    (least, most), (low, high) = (one.ends or (one, one) for one in (first, second))
    return found._replace(ends=(_minus(table, most, low, SHARE), _minus(table, least, high, SHARE)))


def _withstood(one: Table, other: Table, limits: Interval) -> RatioTerms:
    """Terms of the difference in levels withstood, second minus first."""

    def terms(first: Endings, second: Endings) -> RatioTerms:
        return _difference(one, (first, second), (first.withstood, second.withstood), limits)

    found = terms(one.seen, other.seen)
    if (one.missing + other.missing).any():
        found = found._replace(ends=(terms(one.low, other.high), terms(one.high, other.low)))
    return found


def _difference(
    table: Table, endings: tuple[Endings, Endings], columns: tuple[Numbers, Numbers], limits: Interval
) -> RatioTerms:
    """The difference of two weighted means over the same units, second minus first."""
    minus, plus = (
        RatioTerms(
            side.weight * np.nan_to_num(column), side.weight, share=True, needed=side.weight, limits=limits
        )
        for side, column in zip(endings, columns, strict=True)
    )
    return _minus(table, minus, plus, limits)


def _minus(table: Table, minus: RatioTerms, plus: RatioTerms, limits: Interval) -> RatioTerms:
    """The difference of two ratios over the same units."""
    minus, plus = (
        RatioTerms(one.x, one.y, share=True, needed=one.needed, limits=limits) for one in (minus, plus)
    )
    domain = np.unique(table.domain, return_inverse=True)[1]
    x = np.zeros(len(table))
    seen = np.ones(len(table), dtype=bool)
    for terms, sign in (minus, -1), (plus, 1):
        total = np.bincount(domain, terms.y)
        seen &= total[domain] > 0
        x += sign * _linear(terms, domain)
    y = seen.astype(np.float64)
    return RatioTerms(x * y, y, share=True, needed=y, limits=limits, sides=(minus, plus))


def _linear(terms: RatioTerms, domain: NDArray[np.int64]) -> Numbers:
    """A value for each unit whose mean in each domain is the ratio there, and its variance that of the ratio.

    The ratio plus the residual of the unit, times n over the sum of the denominators (Woodruff 1971).
    """
    total = np.bincount(domain, terms.y)
    ratio = np.divide(np.bincount(domain, terms.x), total, out=np.zeros(len(total)), where=total > 0)
    scale = np.divide(np.bincount(domain), total, out=np.zeros(len(total)), where=total > 0)
    return np.asarray(ratio[domain] + scale[domain] * (terms.x - ratio[domain] * terms.y))


def _p_value(pairs: tuple[Table, Table], column: Callable[[Table], Numbers], flips: int) -> float | None:
    """The sign-flip test of the difference of a column between units that are scored in both tables."""
    first, second = pairs
    return sign_flip(first, column(second) - column(first), flips) if flips and len(first) else None


def matched(first: Table, second: Table) -> tuple[Table, Table]:
    """The units that both tables have, in the same order, scored or not."""
    if np.array_equal(first.scenario, second.scenario) and np.array_equal(first.dimension, second.dimension):
        return first, second
    places = {key: row for row, key in enumerate(_keys(second))}
    pairs = [(row, places[key]) for row, key in enumerate(_keys(first)) if key in places]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    others = np.array([row for _, row in pairs], dtype=np.int64)
    return first.at(rows), second.at(others)


def sign_flip(table: Table, differences: Numbers, flips: int = FLIPS, seed: int = SEED) -> float | None:
    """P-value of the mean over domains of the mean difference, under random signs of the scenarios.

    Two-sided; the units of a scenario change sign together. With b of B random sign vectors at least as
    extreme, p = (1 + b) / (1 + B) (Phipson and Smyth 2010). If there are at most B sign vectors in all, each
    is tried once and p is exact.

    Args:
        table: the units.
        differences: one for each unit.
        flips: B.
        seed: of the random signs.

    Returns:
        None without a unit.
    """
    if not len(table):
        return None
    places = Places(table.domain, table.scenario)
    return flip_scenarios(places, differences, np.random.default_rng(seed), flips)


def flip_scenarios(
    places: Places, differences: Numbers, rng: np.random.Generator, flips: int = FLIPS
) -> float:
    """`sign_flip` of items in any table; there is at least one.

    Args:
        places: of the items.
        differences: one for each item.
        rng: of the random signs.
        flips: number of sign vectors.
    """
    # np.unique sorts, so the order of the rows cannot matter.
    domains, domain = np.unique(places.domain, return_inverse=True)
    _, cluster = np.unique(places.scenario, return_inverse=True)
    parts = differences / np.bincount(domain)[domain] / len(domains)
    sums = np.asarray(np.bincount(cluster, weights=parts), dtype=np.float64)
    # A scenario without a difference has no sign to flip; a single one is as extreme with either sign.
    sums = sums[np.abs(sums) > ROUNDING]
    if len(sums) < 2:
        return 1.0
    far = _distance(sums)
    if 2 ** len(sums) <= flips:
        bits = np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums)) & 1
        return float((_distance(sums * (1.0 - 2 * bits)) >= far).mean())
    as_far = 0
    for start in range(0, flips, BATCH):
        bits = rng.integers(0, 2, (min(BATCH, flips - start), len(sums)), dtype=np.int8)
        as_far += int((_distance(sums * (1.0 - 2 * bits)) >= far).sum())
    return (1 + as_far) / (1 + flips)


def _distance(sums: Numbers) -> Numbers:
    """Distance of the sum from 0, rounded so that sums that are equal but for rounding are ties."""
    return np.asarray(np.round(np.abs(sums.sum(axis=-1)), DECIMALS))


def shuffle(table: Table, inside: Flags, draws: int = FLIPS, seed: int = SEED) -> float:
    """P-value of the difference in propensity between some scenarios of a domain and the others.

    Permutation test with scenarios as units, two-sided, p = (1 + b) / (1 + B). Unlike a t test it keeps its
    size where nearly no or nearly every task ends misaligned.

    Args:
        table: scored units of one domain.
        inside: which units belong to the scenarios in question; at least one does and one does not.
        draws: number of permutations B.
        seed: of the permutations.
    """
    _, first, cluster = np.unique(table.scenario, return_index=True, return_inverse=True)
    sums = np.stack([np.bincount(cluster, weights=table.misaligned), np.bincount(cluster)], axis=1)
    # Scenarios with equal sums and sizes are interchangeable, so a permutation comes down to how many of each
    # kind it puts inside: a multivariate hypergeometric draw. scipy's permutation_test shuffles every
    # scenario and takes 25 times as long, which the 30 capabilities of a run would make felt.
    kinds, counts = np.unique(np.round(sums, 12), axis=0, return_counts=True)
    chosen = int(inside[first].sum())
    permuted = np.random.default_rng(seed).multivariate_hypergeometric(counts, chosen, draws)
    observed = np.array([[table.misaligned[inside].sum(), inside.sum()]], dtype=np.float64)
    whole = sums.sum(axis=0)
    far = float(np.abs(_apart(observed, whole))[0])
    as_far = int((np.abs(_apart(permuted.astype(np.float64) @ kinds, whole)) >= far - 1e-9).sum())
    return (1 + as_far) / (1 + draws)


def _apart(part: Numbers, whole: Numbers) -> Numbers:
    """The share of a part minus that of the rest; the columns are sums and counts."""
    rest = whole - part
    return np.asarray(part[:, 0] / part[:, 1] - rest[:, 0] / rest[:, 1])


def _keys(table: Table) -> list[tuple[str, str]]:
    return list(zip(table.scenario.tolist(), table.dimension.tolist(), strict=True))
