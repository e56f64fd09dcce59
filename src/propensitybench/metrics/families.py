"""Pre-specified families of contrasts, with p-values adjusted within each family.

30 capabilities, each against the rest of its domain; 15 pairs of dimensions; 6 dimensions, each between the
namings. `propensitybench.metrics.models` compares models. Confirmatory claims use Holm's adjusted p at .05,
exploration Benjamini and Hochberg's at .10.
"""

from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Flags
from propensitybench.metrics.compare import paired, shuffle
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import (
    BoundedEnd,
    ConfidenceInterval,
    Interval,
    interval_over_bounds,
)
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.table import Table

CLAIM: Final = 0.05
EXPLORE: Final = 0.10


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


def capability_family(table: Table) -> Family:
    """Each capability against the rest of its domain, tested by permuting scenarios."""
    found: list[tuple[str, _Contrast]] = []
    for domain in table.parts("domain").values():
        for name in sorted(set(domain.capability.tolist()) - {""}):
            contrast = _against_rest(domain, domain.capability == name)
            if contrast is not None:
                found.append((name, contrast))
    return _family("capabilities", 30, found)


def dimension_family(table: Table) -> Family:
    """Every pair of dimensions, on the scenarios that are scored under both."""
    found = []
    for (one, first), (other, second) in combinations(sorted(table.parts("dimension").items()), 2):
        contrast = _between(by_scenario(first), by_scenario(second))
        if contrast is not None:
            found.append((f"{other} - {one}", contrast))
    return _family("dimensions", 15, found)


def naming_family(harmful: Table, benign: Table) -> Family:
    """The benign minus the harmful naming under each dimension, on the same tasks."""
    found = []
    parts = benign.parts("dimension")
    for name, rows in sorted(harmful.parts("dimension").items()):
        if name in parts:
            contrast = _between(rows, parts[name])
            if contrast is not None:
                found.append((name, contrast))
    return _family("dimension x naming", 6, found)


class _Contrast(msgspec.Struct, frozen=True):
    difference: float
    ci95: Interval | None
    bounds: Interval | None
    p: float
    clusters: int
    domains: tuple[str, ...]


def _family(name: str, planned: int, found: list[tuple[str, _Contrast]]) -> Family:
    p = [contrast.p for _, contrast in found]
    rows = zip(found, holm(p), benjamini_hochberg(p), strict=True)
    return Family(
        name,
        planned,
        tuple(
            Comparison(
                label, one.difference, one.ci95, one.bounds, one.p, p_holm, p_bh, one.clusters, one.domains
            )
            for (label, one), p_holm, p_bh in rows
        ),
    )


def _against_rest(domain: Table, inside: Flags) -> _Contrast | None:
    """The difference between disjoint sets of scenarios of one domain, so their variances add.

    For the interval, each side's variance is at least that of a sample of its size from the whole domain: a
    capability without a misaligned end has no variance of its own, and is not certain for that.
    """
    sides = domain.filter(inside), domain.filter(~inside), domain
    capability, rest, whole = (estimate(side, propensity_terms(side), "") for side in sides)
    everywhere = whole.errors.scenario
    if capability.value is None or rest.value is None or everywhere is None:
        return None
    variance = 0.0
    for side in capability, rest:
        if side.errors.scenario is None:
            return None
        variance += max(side.errors.scenario**2, everywhere**2 * whole.clusters / side.clusters)
    bounds = None
    if capability.bounds or rest.bounds:
        one, other = (
            side.bounds or Interval(side.value or 0.0, side.value or 0.0) for side in (capability, rest)
        )
        bounds = Interval(one.low - other.high, one.high - other.low)
    difference = capability.value - rest.value
    freedom = min(capability.clusters, rest.clusters) - 1
    scored = domain.finished > 0
    return _Contrast(
        difference,
        _interval(bounds or Interval(difference, difference), sqrt(variance), freedom),
        bounds,
        shuffle(domain.filter(scored), inside[scored]),
        whole.clusters,
        tuple(np.unique(domain.domain).tolist()),
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


def _between(first: Table, second: Table) -> _Contrast | None:
    found = paired(first, second, flips=0).propensity
    difference, error = found.value, found.errors.scenario
    if difference is None or error is None:
        return None
    freedom = found.clusters - found.domains
    domains = np.intersect1d(first.scored_only().domain, second.scored_only().domain).tolist()
    return _Contrast(
        difference,
        _interval(found.bounds or Interval(difference, difference), error, freedom),
        found.bounds,
        _p_value(difference, error, freedom),
        found.clusters,
        tuple(domains),
    )


def _p_value(difference: float, error: float, freedom: int) -> float:
    """Two-sided cluster t; without any variance, an upper bound by the chance of equal signs."""
    from scipy.special import stdtr

    if error == 0:
        return 2.0**-freedom if difference else 1.0
    return 2 * float(stdtr(freedom, -abs(difference) / error))


def by_scenario(table: Table) -> Table:
    """The table with its dimension blanked, so that two dimensions are paired by scenario."""
    return replace(table, dimension=np.full(len(table), "", dtype=np.str_))
