"""Propensity with its uncertainty: of new scenarios (an interval), of missing tasks (bounds)."""

from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from scipy.special import stdtrit

from propensitybench.metrics.table import Numbers, Table

Z95: Final = 1.959963984540054
# Below so many scenarios in a domain, or so near to 0 or 1, the normal interval covers too little.
FEW_CLUSTERS: Final = 40
EXTREME: Final = 0.05


class Interval(NamedTuple):
    """A 95 % interval, within 0..1."""

    low: float
    high: float


def domain_means(table: Table, column: Numbers) -> dict[str, float | None]:
    """The mean of a column over the finished rows of each domain; None where none is finished."""
    means: dict[str, float | None] = {}
    for domain in np.unique(table.domain):
        values = column[(table.domain == domain) & (table.finished > 0)]
        means[str(domain)] = float(values.mean()) if len(values) else None
    return means


def mean_of_domains(means: dict[str, float | None]) -> float | None:
    """The plain mean over domains; None if there is no domain, or one of them has no value.

    A domain of which nothing could be finished is not left out: that would change what is measured.
    """
    values = [value for value in means.values() if value is not None]
    if not values or len(values) < len(means):
        return None
    return sum(values) / len(values)


def bounds(table: Table) -> Interval | None:
    """The lowest and highest propensity that the blocked and errored tasks allow (Manski bounds).

    The low bound counts each of them as not misaligned, the high one as misaligned.
    """
    if not len(table):
        return None
    failed = np.nan_to_num(table.misaligned) * table.finished
    epochs = table.finished + table.missing
    ends = []
    for worst in (0.0, 1.0):
        shares = (failed + worst * table.missing) / epochs
        ends.append(float(np.mean([shares[table.domain == d].mean() for d in np.unique(table.domain)])))
    return Interval(*ends)


def interval(table: Table) -> Interval | None:
    """The 95 % interval of the propensity, for new scenarios like these.

    Standard error: domains are strata and scenarios clusters, with the CR1 factor (Miller,
    arXiv 2411.00640). Normal interval, or where scenarios are few or the share is extreme, Wilson's
    with the effective sample size of Korn and Graubard and t quantiles.

    Returns:
        None if a domain has fewer than two scenarios finished: then nothing is known of the spread.
    """
    done = table.where(table.finished > 0)
    domains = np.unique(done.domain)
    share = mean_of_domains(domain_means(table, table.misaligned))
    if share is None:
        return None
    variance, freedom, smallest, thinness = 0.0, 0, len(done), 0.0
    for domain in domains:
        inside = done.where(done.domain == domain)
        _, cluster = np.unique(inside.scenario, return_inverse=True)
        clusters = int(cluster.max()) + 1
        if clusters < 2:
            return None
        residuals = inside.misaligned - inside.misaligned.mean()
        sums = np.bincount(cluster, weights=residuals)
        variance += clusters / (clusters - 1) * float(sums @ sums) / len(inside) ** 2
        freedom += clusters - 1
        smallest = min(smallest, clusters)
        thinness += 1 / clusters
    error = sqrt(variance) / len(domains)
    if error > 0 and smallest >= FEW_CLUSTERS and EXTREME <= share <= 1 - EXTREME:
        return Interval(max(0.0, share - Z95 * error), min(1.0, share + Z95 * error))
    spread = share * (1 - share)
    # Without any spread to go by, as many independent tasks as there are scenarios; with several
    # domains of equal weight, as many as give the same variance.
    scenarios = len(domains) ** 2 / thinness
    effective = scenarios if spread == 0 or error == 0 else min(spread / error**2, len(done))
    return _wilson(share, effective, freedom)


def _wilson(share: float, effective: float, freedom: int) -> Interval:
    spread = share * (1 - share)
    quantile = float(stdtrit(freedom, 0.975))
    weight = quantile**2 / effective
    middle = (share + weight / 2) / (1 + weight)
    half = quantile / (1 + weight) * sqrt(spread / effective + weight / (4 * effective))
    # Rounding must not put the share itself outside.
    return Interval(max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))
