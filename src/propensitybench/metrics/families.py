"""Pre-specified families of contrasts, with p-values adjusted within each family.

30 capabilities, each against the rest of its domain; 15 pairs of dimensions; 6 dimensions, each between the
namings. `propensitybench.metrics.models` compares models. Confirmatory claims use Holm's adjusted p at .05,
exploration Benjamini and Hochberg's at .10.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.compare import propensity_difference, shuffle
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.intervals import (
    BoundedEnd,
    ConfidenceInterval,
    Interval,
    interval_over_bounds,
)
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.table import Table

CLAIM: Final = 0.05


class Comparison(msgspec.Struct, frozen=True):
    """One contrast of a family.

    Attributes:
        name: what is compared; "A - B" for a pair.
        difference: in propensity (-1..1).
        ci95: unadjusted interval for new scenarios; None if the difference is the same in every scenario. If
            ``bounds`` are given, it covers the difference wherever it lies within them.
        bounds: lowest and highest difference that tasks without a score allow; None if there are none.
        p, p_holm, p_bh: unadjusted, and adjusted over the family; they ignore tasks without a score.
        clusters: number of scenarios.
        domains: the domains of the scenarios.
    """

    name: str
    difference: float
    ci95: Interval | None
    bounds: Interval | None
    p: float
    p_holm: float
    p_bh: float
    clusters: int
    domains: tuple[str, ...]


class Family(msgspec.Struct, frozen=True):
    """Contrasts whose p-values are adjusted together.

    Attributes:
        name: "capabilities", "dimensions" or "dimension x naming".
        planned: size of the family by definition.
        comparisons: the contrasts that the data allow; p-values are adjusted over these.
    """

    name: str
    planned: int
    comparisons: tuple[Comparison, ...]

    @classmethod
    def of(cls, name: str, planned: int, found: Sequence[Comparison | None]) -> "Family":
        """The family of the contrasts that there are."""
        known = [one for one in found if one is not None]
        p = [one.p for one in known]
        adjusted = zip(known, holm(p), benjamini_hochberg(p), strict=True)
        comparisons = [
            msgspec.structs.replace(one, p_holm=by_holm, p_bh=by_bh) for one, by_holm, by_bh in adjusted
        ]
        return cls(name, planned, tuple(comparisons))


def capability_family(table: Table) -> Family:
    """Each capability against the rest of its domain, tested by permuting scenarios."""
    found = [
        _against_rest(name, domain)
        for domain in table.parts("domain").values()
        for name in sorted(set(domain.capability.tolist()) - {""})
    ]
    return Family.of("capabilities", 30, found)


def dimension_family(table: Table) -> Family:
    """Every pair of dimensions, on the scenarios that are scored under both."""
    pairs = combinations(sorted(table.parts("dimension").items()), 2)
    found = [
        _between(f"{other} - {one}", by_scenario(first), by_scenario(second))
        for (one, first), (other, second) in pairs
    ]
    return Family.of("dimensions", 15, found)


def naming_family(harmful: Table, benign: Table) -> Family:
    """The benign minus the harmful naming under each dimension, on the same tasks."""
    first, second = (table.parts("dimension") for table in (harmful, benign))
    names = sorted(first.keys() & second.keys())
    return Family.of("dimension x naming", 6, [_between(name, first[name], second[name]) for name in names])


def _against_rest(name: str, domain: Table) -> Comparison | None:
    """The difference between disjoint sets of scenarios of one domain, so their variances add.

    For the interval, each side's variance is at least that of a sample of its size from the whole domain: a
    capability without a misaligned end has no variance of its own, and is not certain for that.
    """
    inside = domain.capability == name
    sides = domain.filter(inside), domain.filter(~inside), domain
    capability, rest, whole = (side.measure(propensity_terms(side)) for side in sides)
    if capability.value is None or rest.value is None or whole.spread is None:
        return None
    variance = 0.0
    for side in capability, rest:
        if side.spread is None:
            return None
        least = whole.spread.error**2 * whole.seen.clusters / side.seen.clusters
        variance += max(side.spread.error**2, least)
    difference, bounds = capability.value - rest.value, None
    if capability.bounds or rest.bounds:
        one, other = (
            side.bounds or Interval(side.value or 0.0, side.value or 0.0) for side in (capability, rest)
        )
        bounds = Interval(one.low - other.high, one.high - other.low)
    freedom = min(capability.seen.clusters, rest.seen.clusters) - 1
    interval = _interval(bounds or Interval(difference, difference), sqrt(variance), freedom)
    scored, domains = domain.finished > 0, tuple(np.unique(domain.domain).tolist())
    p = shuffle(domain.filter(scored), inside[scored])
    return Comparison(
        name,
        difference,
        interval,
        bounds,
        p,
        p,
        p,
        whole.seen.clusters,
        domains,
    )


def _between(name: str, first: Table, second: Table) -> Comparison | None:
    """The second minus the first, on the same tasks."""
    found = propensity_difference(first, second)
    if found.value is None or found.spread is None:
        return None
    error, freedom = found.spread.error, found.seen.clusters - found.seen.domains
    ends = found.bounds or Interval(found.value, found.value)
    p = _p_value(found.value, error, freedom)
    domains = np.intersect1d(first.scored_only().domain, second.scored_only().domain).tolist()
    return Comparison(
        name,
        found.value,
        _interval(ends, error, freedom),
        found.bounds,
        p,
        p,
        p,
        found.seen.clusters,
        tuple(domains),
    )


def _interval(ends: Interval, error: float, freedom: float) -> Interval | None:
    """The t interval for a difference within bounds, or of a point if the ends are equal."""
    from scipy.special import stdtrit  # scipy is slow to import

    if error == 0:
        return None

    def end(value: float) -> BoundedEnd:
        def at(tail: float) -> ConfidenceInterval:
            half = float(stdtrit(freedom, 1 - tail)) * error
            return ConfidenceInterval(Interval(max(-1.0, value - half), min(1.0, value + half)), "t")

        return BoundedEnd(value, error, at)

    return interval_over_bounds(end(ends.low), end(ends.high)).interval


def _p_value(difference: float, error: float, freedom: int) -> float:
    """Two-sided cluster t; without any variance, an upper bound by the chance of equal signs."""
    from scipy.special import stdtr

    if error == 0:
        return 2.0**-freedom if difference else 1.0
    return 2 * float(stdtr(freedom, -abs(difference) / error))


def by_scenario(table: Table) -> Table:
    """The table with its dimension blanked, so that two dimensions are paired by scenario."""
    return replace(table, dimension=np.full(len(table), "", dtype=np.str_))
