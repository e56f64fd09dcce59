"""Paired comparison of two sets of episodes on the same tasks, with permutation tests."""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.estimates import Estimate, estimate, propensity_terms, withstood_terms
from propensitybench.metrics.intervals import ROUNDING, TAIL
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.sample import ClusteredSample, Measurement
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import difference_of
from propensitybench.tabular import Brief

FLIPS: Final = 10_000
# Sign vectors at a time: of a full run, 16 MB.
BATCH: Final = 1000
DECIMALS: Final = 12
# What a difference, its n and its p are of. Every text beside these numbers says so in these words.
BEGUN_IN_BOTH: Final = "begun in both"
P_TESTS: Final = (
    "two-sided sign-flip test of the difference in propensity, scenarios as units, tasks scored in both"
)


class Contrast(Brief, msgspec.Struct, frozen=True):
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
    propensity, withstood = (
        difference_of(terms(one), terms(other)) for terms in (propensity_terms, withstood_terms)
    )
    pairs = one.filter(scored), other.filter(scored)
    return Contrast(
        propensity=estimate(one, propensity, "difference in propensity, same tasks", tail=tail),
        withstood=estimate(one, withstood, "difference in levels withstood, same tasks", tail=tail),
        p=_p_value(pairs, lambda table: table.misaligned, flips),
        p_withstood=_p_value(pairs, lambda table: table.withstood, flips),
        only_first=int((first.finished > 0).sum() - scored.sum()),
        only_second=int((second.finished > 0).sum() - scored.sum()),
    )


def propensity_difference(first: Table, second: Table) -> Measurement:
    """The difference in propensity on the units that both tables have, the second minus the first."""
    one, other = matched(first, second)
    return one.measure(difference_of(propensity_terms(one), propensity_terms(other)))


def _p_value(pairs: tuple[Table, Table], column: Callable[[Table], Numbers], flips: int) -> float | None:
    """The sign-flip test of the difference of a column between units that are scored in both tables."""
    first, second = pairs
    if not flips or not len(first):
        return None
    return sign_flip(first.sample(), column(second) - column(first), np.random.default_rng(SEED), flips)


def matched(first: Table, second: Table) -> tuple[Table, Table]:
    """The units that both tables have, in the same order, scored or not."""
    if np.array_equal(first.scenario, second.scenario) and np.array_equal(first.dimension, second.dimension):
        return first, second
    places = {key: row for row, key in enumerate(_keys(second))}
    pairs = [(row, places[key]) for row, key in enumerate(_keys(first)) if key in places]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    others = np.array([row for _, row in pairs], dtype=np.int64)
    return first.take(rows), second.take(others)


def sign_flip(
    sample: ClusteredSample, differences: Numbers, rng: np.random.Generator, flips: int = FLIPS
) -> float:
    """P-value of the mean over domains of the mean difference, under random signs of the clusters.

    Two-sided; the units of a cluster change sign together. With b of B random sign vectors at least as
    extreme, p = (1 + b) / (1 + B) (Phipson and Smyth 2010). If there are at most B sign vectors in all, each
    is tried once and p is exact.

    Args:
        sample: the units, at least one.
        differences: one for each unit.
        rng: of the random signs.
        flips: B.
    """
    parts = differences / sample.sizes[sample.domain] / sample.domains
    sums = np.asarray(np.bincount(sample.cluster, parts), dtype=np.float64)
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
