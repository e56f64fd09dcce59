"""Paired comparison of two sets of episodes on the same tasks, with permutation tests."""

from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.estimates import ROUNDING, Estimate, Interval, RatioTerms, estimate
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.table import Flags, Numbers, Table

FLIPS: Final = 10_000
# Sign vectors at a time: of a full run, 16 MB.
BATCH: Final = 1000
DECIMALS: Final = 12


class Contrast(msgspec.Struct, frozen=True):
    """The second set of episodes minus the first, on the units that are scored in both.

    Attributes:
        propensity: difference in propensity (-1..1).
        withstood: difference in levels withstood.
        p: p-value of the two-sided sign-flip permutation test on levels withstood, see `sign_flip`;
            None without a common unit.
        only_first, only_second: scored units that the other set lacks; they are left out.
    """

    propensity: Estimate
    withstood: Estimate
    p: float | None
    only_first: int
    only_second: int


def paired(first: Table, second: Table, flips: int = FLIPS) -> Contrast:
    """Compares two tables of the same tasks: two namings of a model, or two models.

    Args:
        first: the table to subtract.
        second: the table that it is subtracted from.
        flips: number of random sign vectors of the permutation test; with 0, ``p`` is None.
    """
    one, other, unmatched = common(first, second)
    ones = np.ones(len(one))
    ladder = Interval(-float(one.levels), float(one.levels))
    withstood = RatioTerms(other.withstood - one.withstood, ones, limits=ladder)
    return Contrast(
        propensity=estimate(
            one,
            RatioTerms(other.misaligned - one.misaligned, ones, limits=Interval(-1.0, 1.0)),
            "difference in propensity, same tasks",
        ),
        withstood=estimate(one, withstood, "difference in levels withstood, same tasks"),
        p=sign_flip(one, withstood.x, flips) if flips else None,
        only_first=unmatched[0],
        only_second=unmatched[1],
    )


def common(first: Table, second: Table) -> tuple[Table, Table, tuple[int, int]]:
    """The units that are scored in both tables, in the same order, and how many each has alone."""
    first, second = first.done(), second.done()
    places = {key: row for row, key in enumerate(_keys(second))}
    pairs = [(row, places[key]) for row, key in enumerate(_keys(first)) if key in places]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    others = np.array([row for _, row in pairs], dtype=np.int64)
    return first.at(rows), second.at(others), (len(first) - len(pairs), len(second) - len(pairs))


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
    from scipy.stats import permutation_test  # scipy.stats takes half a second to import

    if not len(table):
        return None
    # np.unique sorts, so the order of the rows cannot matter.
    domains, domain = np.unique(table.domain, return_inverse=True)
    _, cluster = np.unique(table.scenario, return_inverse=True)
    parts = differences / np.bincount(domain)[domain] / len(domains)
    sums = np.bincount(cluster, weights=parts)
    # A scenario without a difference has no sign to flip; a single one is as extreme with either sign.
    sums = sums[np.abs(sums) > ROUNDING]
    if len(sums) < 2:
        return 1.0
    found = permutation_test(
        (sums,),
        _distance,
        permutation_type="samples",
        vectorized=True,
        n_resamples=flips,
        batch=BATCH,
        alternative="greater",
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _distance(sums: Numbers, axis: int) -> Numbers:
    """Distance of the sum from 0, rounded so that sums that are equal but for rounding are ties."""
    return np.asarray(np.round(np.abs(sums.sum(axis=axis)), DECIMALS))


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
