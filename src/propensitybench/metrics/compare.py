"""Two sets of episodes of the same tasks: the difference task by task, and whether it is chance."""

from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.estimates import ROUNDING, Estimate, Interval, Terms, estimate
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.table import Flags, Numbers, Table

FLIPS: Final = 10_000


class Contrast(msgspec.Struct, frozen=True):
    """The second set of episodes minus the first, on the units that both have finished.

    Attributes:
        propensity: difference of the propensities (-1..1).
        withstood: difference of the levels withstood.
        p: of a two-sided sign-flip permutation test on the levels withstood, scenarios as units;
            None without a common unit.
        only_first, only_second: finished units that the other set lacks, left out here.
    """

    propensity: Estimate
    withstood: Estimate
    p: float | None
    only_first: int
    only_second: int


def paired(first: Table, second: Table, flips: int = FLIPS) -> Contrast:
    """Compares two tables of the same tasks: two namings of a model, or two models.

    Without flips there is no permutation test, and ``p`` is None.
    """
    one, other, lone = common(first, second)
    ones = np.ones(len(one))
    ladder = Interval(-float(one.levels), float(one.levels))
    withstood = Terms(other.withstood - one.withstood, ones, limits=ladder)
    return Contrast(
        propensity=estimate(
            one,
            Terms(other.misaligned - one.misaligned, ones, limits=Interval(-1.0, 1.0)),
            "difference in propensity, same tasks",
        ),
        withstood=estimate(one, withstood, "difference in levels withstood, same tasks"),
        p=sign_flip(one, withstood.x, flips) if flips else None,
        only_first=lone[0],
        only_second=lone[1],
    )


def common(first: Table, second: Table) -> tuple[Table, Table, tuple[int, int]]:
    """The units that both tables have finished, in one order; and how many each has alone."""
    first, second = first.done(), second.done()
    places = {key: row for row, key in enumerate(_keys(second))}
    pairs = [(row, places[key]) for row, key in enumerate(_keys(first)) if key in places]
    rows = np.array([row for row, _ in pairs], dtype=np.int64)
    others = np.array([row for _, row in pairs], dtype=np.int64)
    return first.at(rows), second.at(others), (len(first) - len(pairs), len(second) - len(pairs))


def sign_flip(table: Table, differences: Numbers, flips: int = FLIPS, seed: int = SEED) -> float | None:
    """P-value of the mean over domains of the mean difference, if each scenario's sign were chance.

    Two-sided, (1 + as far or farther) / (1 + flips); the units of a scenario flip together.
    """
    if not len(table):
        return None
    # Sorted, so that the order of the rows cannot matter.
    domains, domain = np.unique(table.domain, return_inverse=True)
    _, cluster = np.unique(table.scenario, return_inverse=True)
    parts = differences / np.bincount(domain)[domain] / len(domains)
    sums = np.bincount(cluster, weights=parts)
    signs = np.random.default_rng(seed).integers(0, 2, size=(flips, len(sums)), dtype=np.int8) * 2 - 1
    drawn = np.abs(signs @ sums)
    # What is equal but for rounding is as far.
    as_far = int((drawn >= abs(sums.sum()) - ROUNDING).sum())
    return (1 + as_far) / (1 + flips)


def shuffle(table: Table, inside: Flags, draws: int = FLIPS, seed: int = SEED) -> float:
    """P-value of the difference in propensity between some scenarios of a domain and its others.

    By permutation of the scenarios, whose units stay together: it holds its level where nearly
    nothing or nearly everything is misaligned, and a t test does not. Two-sided, (1 + as far or
    farther) / (1 + draws).

    Args:
        table: finished units of one domain.
        inside: which of them are of the scenarios in question; some are, and some are not.
        draws: number of permutations.
        seed: of the draws.
    """
    _, first, cluster = np.unique(table.scenario, return_index=True, return_inverse=True)
    sums = np.stack([np.bincount(cluster, weights=table.misaligned), np.bincount(cluster)], axis=1)
    # Scenarios with the same sum and number of units are the same here: how many of each kind are
    # drawn is all that matters.
    kinds, counts = np.unique(np.round(sums, 12), axis=0, return_counts=True)
    chosen = int(inside[first].sum())
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(counts, chosen, draws)
    seen = np.array([[table.misaligned[inside].sum(), inside.sum()]], dtype=np.float64)
    whole = sums.sum(axis=0)
    far = float(np.abs(_apart(seen, whole))[0])
    as_far = int((np.abs(_apart(drawn.astype(np.float64) @ kinds, whole)) >= far - 1e-9).sum())
    return (1 + as_far) / (1 + draws)


def _apart(part: Numbers, whole: Numbers) -> Numbers:
    """The share of a part less that of the rest; columns are sums and numbers."""
    rest = whole - part
    return np.asarray(part[:, 0] / part[:, 1] - rest[:, 0] / rest[:, 1])


def _keys(table: Table) -> list[tuple[str, str]]:
    return list(zip(table.scenario.tolist(), table.dimension.tolist(), strict=True))
