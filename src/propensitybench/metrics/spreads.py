"""Variances of a ratio averaged over domains: by scenario, storyline or workspace, and over reruns."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.intervals import ROUNDING, ClusteredError

# Scenarios whose tasks differ that the error over reruns needs (docs/metrics.md, "Coverage").
MIN_MIXED: Final = 10

Weight = Literal["domain", "task"]


class DomainTerms(NamedTuple):
    """A domain: all units, those with a denominator above 0, their terms, and its denominator and ratio."""

    every: NDArray[np.int64]
    rows: NDArray[np.int64]
    x: Numbers
    y: Numbers
    total: float
    ratio: float


def shares_of(domains: Sequence[DomainTerms], weight: Weight) -> list[float]:
    """The weight of each domain; they sum to 1."""
    if weight == "domain":
        return [1 / len(domains) for _ in domains]
    whole = sum(domain.total for domain in domains)
    return [domain.total / whole for domain in domains]


def value_of(domains: Sequence[DomainTerms], weight: Weight) -> float | None:
    """The mean of the domains' ratios; None without a domain."""
    if not domains:
        return None
    return sum(
        share * domain.ratio for share, domain in zip(shares_of(domains, weight), domains, strict=True)
    )


def residuals_of(domains: Sequence[DomainTerms], weight: Weight) -> list[Numbers]:
    """Residuals of the units from the ratio of their domain or, with task weights, from the overall ratio."""
    whole = value_of(domains, weight) or 0.0
    return [domain.x - (domain.ratio if weight == "domain" else whole) * domain.y for domain in domains]


def clustered(domains: Sequence[DomainTerms], clusters: Codes, weight: Weight) -> ClusteredError | None:
    """Standard error stratified by domain and clustered, with the CR1 factor (Miller, arXiv 2411.00640).

    None if a domain has a single cluster, from which no variance can be estimated.
    """
    residuals = residuals_of(domains, weight)
    freedom, thinness = 0, 0.0
    influence: list[Numbers] = []
    for share, domain, rest in zip(shares_of(domains, weight), domains, residuals, strict=True):
        cluster = _numbered(clusters[domain.rows])
        sums = np.bincount(cluster, weights=rest)
        count = len(sums)
        if count < 2:
            return None
        if weight == "task":
            # About the mean over all clusters; those without a denominator have residual 0.
            every = int(np.count_nonzero(np.bincount(clusters[domain.every])))
            sums = np.pad(sums, (0, every - count)) - sums.sum() / every
        influence.append(share**2 * count / (count - 1) * np.square(sums) / domain.total**2)
        freedom += count - 1
        thinness += share**2 / count
    if not influence:
        return None
    return spread_of(influence, freedom, thinness)


def few_clustered(domains: Sequence[DomainTerms], clusters: Codes, weight: Weight) -> ClusteredError | None:
    """The same for few clusters of unequal size: CR3, with Satterthwaite's degrees of freedom.

    Bell and McCaffrey 2002. With m_s the denominators of a cluster and n those of its domain, the squared sum
    of its residuals is divided by (1 - m_s / n)^2; CR2, divided by 1 - m_s / n, undercovers where workspaces
    differ much. The degrees of freedom assume that clusters differ much more than their tasks do: the
    variance of a cluster's sum is proportional to m_s^2.
    """
    trace = squares = thinness = 0.0
    influence: list[Numbers] = []
    for share, domain in zip(shares_of(domains, weight), domains, strict=True):
        found = _left_out(share, domain, clusters)
        if found is None:
            return None
        size, contributions = found
        influence.append(contributions)
        centred = np.eye(len(size)) - size[:, None] / domain.total
        centred /= (1 - size / domain.total)[:, None]
        covariance = share**2 / domain.total**2 * (centred * size**2) @ centred.T
        trace += float(np.trace(covariance))
        squares += float((covariance**2).sum())
        thinness += share**2 / len(size)
    if not influence:
        return None
    return spread_of(influence, trace**2 / squares, thinness)


def _left_out(share: float, domain: DomainTerms, clusters: Codes) -> tuple[Numbers, Numbers] | None:
    """The denominators of the clusters of a domain and their contributions to the variance (CR3).

    Residuals are about the ratio of the domain whatever the weights: the adjustment is derived for these.
    None if there is a single cluster.
    """
    cluster = _numbered(clusters[domain.rows])
    rest = domain.x - domain.ratio * domain.y
    size: Numbers = np.asarray(np.bincount(cluster, weights=domain.y), dtype=np.float64)
    sums = np.bincount(cluster, weights=rest)
    if len(size) < 2:
        return None
    return size, share**2 * np.square(sums / (1 - size / domain.total)) / domain.total**2


def crossed_error(
    domains: Sequence[DomainTerms],
    by_scenario: ClusteredError,
    storylines: Codes,
    dimensions: Codes,
    weight: Weight,
) -> float | None:
    """Standard error for new scenarios and new storylines, which are crossed.

    The variance clustered by scenario, plus the one clustered by storyline within the dimensions, less that
    of single units, which is in both (Cameron, Gelbach and Miller 2011); at least that for new scenarios.
    None if a dimension has a single storyline.
    """
    units = _units(len(storylines))
    extra = 0.0
    for share, part in _by_stratum(domains, dimensions, weight):
        told, single = _left_out(share, part, storylines), _left_out(share, part, units)
        if told is None or single is None:
            return None
        extra += float(told[1].sum() - single[1].sum())
    return sqrt(by_scenario.error**2 + max(extra, 0.0))


def _by_stratum(
    domains: Sequence[DomainTerms], strata: Codes, weight: Weight
) -> Iterator[tuple[float, DomainTerms]]:
    """The parts of the domains in each stratum, with their weights."""
    for share, domain in zip(shares_of(domains, weight), domains, strict=True):
        of_row = strata[domain.rows]
        for stratum in np.flatnonzero(np.bincount(of_row)):
            own = of_row == stratum
            x, y = domain.x[own], domain.y[own]
            total = float(y.sum())
            part = DomainTerms(domain.every, domain.rows[own], x, y, total, float(x.sum()) / total)
            yield share * total / domain.total, part


@lru_cache(maxsize=32)
def _units(number: int) -> Codes:
    """Each row as a cluster, ordered by its number as text: the last digit of a sum depends on the order."""
    return np.unique(np.arange(number).astype(np.str_), return_inverse=True)[1]


def _numbered(clusters: Codes) -> Codes:
    """The clusters numbered from 0 without gaps, in their order."""
    present = np.bincount(clusters) > 0
    return (present.cumsum() - 1)[clusters]


def spread_of(influence: Sequence[Numbers], freedom: float, thinness: float) -> ClusteredError:
    """The standard error, given the contributions of the clusters to the variance, by domain."""
    parts = np.concatenate(influence)
    error = sqrt(float(parts.sum()))
    if error <= ROUNDING:
        return ClusteredError(0.0, freedom, 1 / thinness)
    # Satterthwaite's 2 V^2 / var(V), with the sum of the squared contributions for var(V).
    estimated = 2 * float(parts.sum() ** 2 / (parts @ parts))
    return ClusteredError(error, freedom, 1 / thinness, estimated)


def benchmark_error(
    domains: Sequence[DomainTerms], scenarios: Codes, noise: Numbers | None, weight: Weight
) -> float | None:
    """Standard error over reruns of the same tasks: from epochs, or from the dimensions of a scenario.

    The second takes differences between the dimensions of a scenario for noise and is conservative. None if
    a scenario was run only once, or if fewer than `MIN_MIXED` scenarios or units differ inside.
    """
    variance, mixed = 0.0, 0
    residuals = residuals_of(domains, weight)
    for share, domain, rest in zip(shares_of(domains, weight), domains, residuals, strict=True):
        if noise is not None and not np.isnan(noise[domain.rows]).any():
            variance += share**2 * float(noise[domain.rows].sum()) / domain.total**2
            mixed += int((noise[domain.rows] > 0).sum())
            continue
        cluster = _numbered(scenarios[domain.rows])
        counts = np.bincount(cluster)
        if (counts < 2).any():
            return None
        means = np.bincount(cluster, weights=rest) / counts
        inside = np.bincount(cluster, weights=(rest - means[cluster]) ** 2) / (counts - 1)
        variance += share**2 * float(counts @ inside) / domain.total**2
        mixed += int((inside > ROUNDING).sum())
    return sqrt(variance) if mixed >= MIN_MIXED else None
