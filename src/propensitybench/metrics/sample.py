"""One clustered sample: means, ratios and paired differences with their errors, intervals and bounds.

Every share stands on this. An estimate is the mean over domains of sum(x) / sum(y) over units. Domains are
strata, scenarios (or workspaces) are clusters; docs/metrics.md has the formulas.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from propensitybench.metrics.arrays import Codes, Flags, Names, Numbers
from propensitybench.metrics.intervals import (
    MIN_FREEDOM,
    ROUNDING,
    TAIL,
    BoundedEnd,
    ClusteredError,
    ComparedValue,
    ConfidenceInterval,
    Interval,
    difference_interval,
    interval_over_bounds,
    mean_interval,
    share_interval,
    student_interval,
)
from propensitybench.metrics.terms import Form, PairedDifference, Quantity, Ratio, Terms

Weight = Literal["domain", "task"]
NO_SPREAD: Final = ConfidenceInterval(None, "none: a domain has a single cluster")


@dataclass(frozen=True)
class Point:
    """A quantity of a sample.

    Attributes:
        parts: what it is made of by domain; None if it has no value.
        sides: of a difference, the two values.
    """

    parts: "Parts | None"
    sides: "tuple[Point, Point] | None" = None

    @property
    def value(self) -> float | None:
        """None if it cannot be computed."""
        return None if self.parts is None else self.parts.value

    @cached_property
    def spread(self) -> ClusteredError | None:
        """Its standard error; None if a domain has a single cluster."""
        if self.parts is None:
            return None
        return _few_clusters_spread(self.parts) if self.parts.sample.few_clusters else _spread(self.parts)

    @property
    def n(self) -> int:
        """Number of units with a denominator above 0."""
        return 0 if self.parts is None else int(np.count_nonzero(self.parts.y))

    @property
    def clusters(self) -> int:
        """Number of their clusters."""
        return 0 if self.parts is None else int(self.parts.clusters.sum())

    @property
    def domains(self) -> int:
        """Number of their domains."""
        return 0 if self.parts is None else len(self.parts.used)


@dataclass(frozen=True)
class Measurement:
    """An estimate from a sample.

    Attributes:
        seen: the estimate from what was seen.
        ends: the lowest and the highest value that missing outcomes allow; None if nothing is missing.
        form: of its interval, see `Terms`.
        limits: range of the estimate.
    """

    seen: Point
    ends: tuple[Point, Point] | None
    form: Form
    limits: Interval

    @property
    def value(self) -> float | None:
        """The estimate; None if it cannot be computed, never 0 instead."""
        return self.seen.value

    @property
    def spread(self) -> ClusteredError | None:
        """Its standard error; None if a domain has a single cluster."""
        return self.seen.spread

    @property
    def bounds(self) -> Interval | None:
        """The lowest and the highest value that missing outcomes allow (Manski); None if none is missing."""
        if self.ends is None or self.ends[0].value is None or self.ends[1].value is None:
            return None
        return Interval(self.ends[0].value, self.ends[1].value)

    @property
    def ci95(self) -> Interval | None:
        """The 95 % interval, see `interval`."""
        return self.interval().interval

    def interval(self, tail: float = TAIL, times: float = 1.0) -> ConfidenceInterval:
        """The interval for new clusters; it covers every value that missing outcomes allow.

        Args:
            tail: probability beyond each end.
            times: as of a sample with so many times the clusters, all of them like these.
        """
        if self.ends is None:
            return self._at(self.seen, tail, times)
        low, high = self.ends
        if low.value is None or high.value is None or low.spread is None or high.spread is None:
            return NO_SPREAD
        return interval_over_bounds(
            BoundedEnd(low.value, low.spread.times(times).error, lambda tail: self._at(low, tail, times)),
            BoundedEnd(high.value, high.spread.times(times).error, lambda tail: self._at(high, tail, times)),
            tail,
        )

    def _at(self, point: Point, tail: float, times: float) -> ConfidenceInterval:
        """The interval of one value."""
        if point.value is None or point.parts is None:
            return ConfidenceInterval(None, "none: no value")
        if point.spread is None:
            return NO_SPREAD
        if point.parts.sample.few_clusters and point.spread.freedom < MIN_FREEDOM - ROUNDING:
            return ConfidenceInterval(None, f"none: fewer than {MIN_FREEDOM} degrees of freedom")
        spread = point.spread.times(times)
        if point.sides is None:
            return self._of_form(point.value, spread, point.n * times, tail)
        compared = []
        for side in point.sides:
            found = self._at(side, tail, times)
            if found.interval is None or side.value is None or side.spread is None:
                return found
            compared.append(ComparedValue(side.value, found.interval, side.spread.times(times).error))
        return difference_interval(compared[0], compared[1], spread.error)

    def _of_form(self, value: float, spread: ClusteredError, n: float, tail: float) -> ConfidenceInterval:
        if self.form == "share":
            return share_interval(value, spread, n, self.limits, tail)
        if self.form == "count":
            return mean_interval(value, spread, self.limits, tail)
        if self.form == "coefficient":
            return student_interval(value, spread, self.limits, tail)
        return ConfidenceInterval(None, "none: tasks without a score")


class ClusteredSample:
    """Units in clusters in domains.

    Args:
        domain: name or number of each unit's domain.
        cluster: name or number of its cluster; of one name in two domains there are two.
        weight: whether domains or tasks have equal weight.
        few_clusters: whether clusters are few and of unequal size: errors are CR3 with Satterthwaite's
            degrees of freedom, and with few of these there is no interval.
    """

    def __init__(
        self,
        domain: Names | Codes,
        cluster: Names | Codes,
        weight: Weight = "domain",
        *,
        few_clusters: bool = False,
    ) -> None:
        self.domain, self.cluster = _codes(domain), _codes(cluster)
        self.weight, self.few_clusters = weight, few_clusters
        self.domains = int(self.domain.max(initial=-1)) + 1
        # The domain of each cluster.
        self.home = np.zeros(int(self.cluster.max(initial=-1)) + 1, dtype=np.int64)
        self.home[self.cluster] = self.domain
        if (self.home[self.cluster] != self.domain).any():
            # In the order of their names: random signs of clusters must not depend on the domains.
            pairs, self.cluster = np.unique(self.cluster * self.domains + self.domain, return_inverse=True)
            self.home = pairs % self.domains

    def __len__(self) -> int:
        return len(self.domain)

    @cached_property
    def sizes(self) -> Numbers:
        """Number of units in each domain."""
        return self.sums(np.ones(len(self)))

    def sums(self, values: Numbers | Flags) -> Numbers:
        """The sum in each domain."""
        return np.asarray(np.bincount(self.domain, values, self.domains), dtype=np.float64)

    def within(self, strata: Codes, cluster: Codes) -> "ClusteredSample":
        """The units in strata of their domains, by another cluster."""
        return ClusteredSample(self.domain * (int(strata.max(initial=0)) + 1) + strata, cluster)

    def filter(self, rows: Flags) -> "ClusteredSample":
        """The units for which the mask is true."""
        return ClusteredSample(
            self.domain[rows], self.cluster[rows], self.weight, few_clusters=self.few_clusters
        )

    def measure(self, terms: Terms) -> Measurement:
        """The estimate, with its error, interval and bounds."""
        ends = None if terms.ends is None else (self.point(terms.ends[0]), self.point(terms.ends[1]))
        return Measurement(self.point(terms.seen), ends, terms.form, terms.limits)

    def mean(self, values: Numbers, low: Numbers | None = None, high: Numbers | None = None) -> Measurement:
        """The mean of a share of each unit.

        Args:
            values: the shares.
            low: the same where missing outcomes make them least.
            high: the same where missing outcomes make them largest.
        """
        ones = np.ones(len(self))
        ends = None if low is None or high is None else (Ratio(low, ones), Ratio(high, ones))
        return self.measure(Terms(Ratio(values, ones), ends))

    def ratio(self, x: Numbers, y: Numbers | Flags) -> Measurement:
        """The share sum(x) / sum(y); there is none if a domain has no unit with ``y``."""
        counted = np.asarray(y, dtype=np.float64)
        return self.measure(Terms(Ratio(x, counted, needed=counted)))

    def difference(self, first: Ratio, second: Ratio) -> Measurement:
        """The second share minus the first, over the same units, with Newcombe's interval."""
        return self.measure(Terms(PairedDifference(first, second)))

    def point(self, quantity: Quantity) -> Point:
        """The value of a quantity, and its error."""
        if isinstance(quantity, Ratio):
            return Point(self.parts(quantity))
        sides = self.point(quantity.first), self.point(quantity.second)
        return Point(self.parts(self._linear_difference(quantity)), sides)

    def parts(self, ratio: Ratio) -> "Parts | None":
        """A ratio by domain; None if it has no value."""
        if ratio.needed is not None and not self.sums(ratio.needed != 0).all():
            return None
        counted = ratio.y > 0
        x, y = np.where(counted, ratio.x, 0.0), np.where(counted, ratio.y, 0.0)
        top, total = self.sums(x), self.sums(y)
        used = np.flatnonzero(total)
        return Parts(self, x, y, top, total, used) if len(used) else None

    def _linear_difference(self, quantity: PairedDifference) -> Ratio:
        """The difference as a mean of one value of each unit."""
        x, seen = np.zeros(len(self)), np.ones(len(self), dtype=bool)
        for ratio, sign in (quantity.first, -1), (quantity.second, 1):
            seen &= self.sums(ratio.y)[self.domain] > 0
            x += sign * self.linear(ratio)
        y = seen.astype(np.float64)
        return Ratio(x * y, y, needed=y)

    def linear(self, ratio: Ratio) -> Numbers:
        """A value for each unit, whose mean in each domain is the ratio there, with the same variance.

        The ratio plus the residual of the unit, times n over the sum of the denominators (Woodruff 1971).
        """
        total = self.sums(ratio.y)
        found = np.divide(self.sums(ratio.x), total, out=np.zeros(self.domains), where=total > 0)
        scale = np.divide(self.sizes, total, out=np.zeros(self.domains), where=total > 0)
        centre = found[self.domain]
        return np.asarray(centre + scale[self.domain] * (ratio.x - centre * ratio.y))


@dataclass(frozen=True)
class Parts:
    """A ratio by domain.

    Attributes:
        sample: the units.
        x, y: numerators and denominators of the units.
        top, total: their sums in each domain.
        used: the domains with a denominator.
    """

    sample: ClusteredSample
    x: Numbers
    y: Numbers
    top: Numbers
    total: Numbers
    used: Codes

    @cached_property
    def ratio(self) -> Numbers:
        """The ratio of each domain; 0 in those that are not used."""
        return np.divide(self.top, self.total, out=np.zeros(len(self.total)), where=self.total > 0)

    @cached_property
    def share(self) -> Numbers:
        """The weight of each domain; they sum to 1."""
        if self.sample.weight == "task":
            return np.asarray(self.total / self.total.sum())
        return np.where(self.total > 0, 1 / len(self.used), 0.0)

    @cached_property
    def value(self) -> float:
        """The estimate."""
        return float(self.share @ self.ratio)

    @cached_property
    def clusters(self) -> Codes:
        """Number of clusters of each domain that is used, of those with a denominator."""
        home = self.sample.home
        present = np.bincount(self.sample.cluster, self.y, len(home)) > 0
        return np.bincount(home[present], minlength=self.sample.domains)[self.used]

    @cached_property
    def scale(self) -> Numbers:
        """What a sum of residuals of each domain is multiplied by in the estimate."""
        return np.divide(self.share, self.total, out=np.zeros(len(self.total)), where=self.total > 0)

    @property
    def residuals(self) -> Numbers:
        """Of the units, from the ratio of their domain or, with task weights, from the overall ratio."""
        centre = self.value if self.sample.weight == "task" else self.ratio[self.sample.domain]
        return np.asarray(self.x - centre * self.y)


def _spread(parts: Parts) -> ClusteredError | None:
    """Standard error stratified by domain and clustered, with the CR1 factor (Miller, arXiv 2411.00640)."""
    sample = parts.sample
    home, count = sample.home, len(sample.home)
    clusters = parts.clusters
    if clusters.min() < 2:
        return None
    sums = np.asarray(np.bincount(sample.cluster, parts.residuals, count), dtype=np.float64)
    if sample.weight == "task":
        # About the mean over all clusters; those without a denominator have residual 0.
        counts = np.bincount(home, minlength=sample.domains)
        sums = sums - (np.bincount(home, sums, sample.domains) / counts)[home]
    scale = parts.scale**2
    scale[parts.used] *= clusters / (clusters - 1)
    thinness = float((parts.share[parts.used] ** 2 / clusters).sum())
    return ClusteredError.of(scale[home] * sums**2, int(clusters.sum()) - len(clusters), 1 / thinness)


def _few_clusters_spread(parts: Parts) -> ClusteredError | None:
    """The same for few clusters of unequal size: CR3, with Satterthwaite's degrees of freedom.

    Bell and McCaffrey 2002. With m_s the denominators of a cluster and n those of its domain, the squared sum
    of its residuals is divided by (1 - m_s / n)^2; CR2, divided by 1 - m_s / n, undercovers where workspaces
    differ much. The degrees of freedom assume that clusters differ much more than their tasks do: the
    variance of a cluster's sum is proportional to m_s^2.
    """
    squares = left_out_squares(parts, parts.scale)
    if squares is None:
        return None
    sample = parts.sample
    weights = np.bincount(sample.cluster, parts.y, len(sample.home))
    trace = square = thinness = 0.0
    for domain in parts.used:
        size = weights[(sample.home == domain) & (weights > 0)]
        part = size / parts.total[domain]
        centred = (np.eye(len(size)) - part[:, None]) / (1 - part)[:, None]
        covariance = parts.scale[domain] ** 2 * (centred * size**2) @ centred.T
        trace += float(np.trace(covariance))
        square += float((covariance**2).sum())
        thinness += float(parts.share[domain]) ** 2 / len(size)
    return ClusteredError.of(squares, trace**2 / square, 1 / thinness)


def left_out_squares(parts: Parts, scale: Numbers) -> Numbers | None:
    """The contribution of each cluster to the variance, as if it were left out (CR3).

    Residuals are about the ratio of the domain whatever the weights: the adjustment is derived for these.
    None if a domain has a single cluster.

    Args:
        parts: the ratio.
        scale: what residuals of each domain are multiplied by in the estimate.
    """
    sample = parts.sample
    cluster, home = sample.cluster, sample.home
    size = np.bincount(cluster, parts.y, len(home))
    if parts.clusters.min() < 2:
        return None
    sums = np.bincount(cluster, parts.x - parts.ratio[sample.domain] * parts.y, len(home))
    total = np.where(parts.total > 0, parts.total, 1.0)
    return np.asarray(np.square(scale[home] * sums / (1 - size / total[home])))


def _codes(names: Names | Codes) -> Codes:
    """A number from 0 for each different name, in their order."""
    if names.dtype.kind == "i" and np.bincount(names).all():
        return np.asarray(names, dtype=np.int64)  # as they are
    return np.unique(names, return_inverse=True)[1]
