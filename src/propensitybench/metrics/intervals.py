"""Confidence intervals: Wilson's for shares, Newcombe's for differences, Student's t on the log scale for
means and plain for coefficients, and Imbens and Manski's for bounded values.
"""

from collections.abc import Callable
from math import exp, inf, sqrt
from typing import Final, NamedTuple

from propensitybench.metrics.arrays import Numbers

Z95: Final = 1.959963984540054
# Probability beyond each end of a 95 % interval.
TAIL: Final = 0.025
# With fewer degrees of freedom the interval of a mean undercovers (docs/metrics.md, "Coverage").
FEW_CLUSTERS: Final = 40
# With fewer degrees of freedom the interval for new workspaces undercovers (likewise).
MIN_FREEDOM: Final = 10
# The estimate of the degrees of freedom of a share, where it is lower, is mostly noise.
MIN_ESTIMATED: Final = 6
# Numbers that differ by less are equal but for rounding.
ROUNDING: Final = 1e-12


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


ANYWHERE: Final = Interval(-inf, inf)
NOT_NEGATIVE: Final = Interval(0.0, inf)
SHARE: Final = Interval(0.0, 1.0)


class ClusteredError(NamedTuple):
    """A clustered standard error.

    Attributes:
        error: the standard error.
        freedom: degrees of freedom.
        effective: number of clusters of a single domain that would give the same precision.
        estimated: degrees of freedom of the error as estimated from the squares of the residuals instead of
            their number: few where few clusters have a residual, as at a share near 0 or 1.
    """

    error: float
    freedom: float
    effective: float
    estimated: float = inf

    @classmethod
    def of(cls, contributions: Numbers, freedom: float, effective: float) -> "ClusteredError":
        """The error, given the contributions of the clusters to the variance."""
        variance = float(contributions.sum())
        if sqrt(variance) <= ROUNDING:
            return cls(0.0, freedom, effective)
        # Satterthwaite's 2 V^2 / var(V), with the sum of the squared contributions for var(V).
        return cls(sqrt(variance), freedom, effective, 2 * variance**2 / float(contributions @ contributions))

    def times(self, times: float) -> "ClusteredError":
        """The error with so many times the clusters, all of them like these."""
        return ClusteredError(
            self.error / sqrt(times), self.freedom * times, self.effective * times, self.estimated * times
        )


class ComparedValue(NamedTuple):
    """One of two values that are compared, with its interval and its standard error."""

    value: float
    interval: Interval
    error: float


class ConfidenceInterval(NamedTuple):
    """An interval, or None, and how it was computed or why there is none."""

    interval: Interval | None
    method: str


class BoundedEnd(NamedTuple):
    """One end of a range in which a value lies.

    Attributes:
        value: the end.
        error: its standard error.
        at: its interval with a probability beyond each end.
    """

    value: float
    error: float
    at: Callable[[float], ConfidenceInterval]


def share_interval(
    value: float, spread: ClusteredError, n: float, limits: Interval = SHARE, tail: float = TAIL
) -> ConfidenceInterval:
    """Wilson's interval of a share with an effective size (Korn and Graubard 1998) and Student's quantile.

    Unlike value +- 1.96 SE it holds near the ends of the range, and on each side by itself, as an interval
    over bounds needs. If the clusters do not differ, each counts as one independent task; with several
    domains, as many as give the same variance.

    Args:
        value: the share.
        spread: its standard error.
        n: number of tasks.
        limits: the range that it is a share of.
        tail: probability beyond each end.
    """
    span = limits.high - limits.low
    share, error = (value - limits.low) / span, spread.error / span
    moves = error > 0
    noise = share * (1 - share)
    effective = min(noise / error**2, n) if noise > 0 and moves else spread.effective
    freedom = min(spread.freedom, max(MIN_ESTIMATED, spread.estimated))
    low, high = wilson(share, effective, _student(freedom, tail))
    return ConfidenceInterval(
        Interval(limits.low + span * low, limits.low + span * high), "Korn-Graubard Wilson"
    )


def difference_interval(first: ComparedValue, second: ComparedValue, error: float) -> ConfidenceInterval:
    """Interval of a difference of two shares, the second minus the first, from the intervals of both.

    Newcombe 1998 (Statistics in Medicine 17:2635), for correlated shares. Unlike value +- 1.96 SE it holds if
    few tasks differ. None if both shares move and their difference does not.

    Args:
        first: the share to subtract.
        second: the other one; errors of 0 make the two independent.
        error: standard error of the difference.
    """
    product = first.error * second.error
    if error == 0 and product > 0:
        return ConfidenceInterval(None, "none: no spread among clusters")
    alike = (first.error**2 + second.error**2 - error**2) / (2 * product) if product > 0 else 0.0
    alike = min(1.0, max(-1.0, alike))

    def distance(up: float, down: float) -> float:
        return sqrt(max(0.0, up**2 + down**2 - 2 * alike * up * down))

    difference = second.value - first.value
    low = distance(second.value - second.interval.low, first.interval.high - first.value)
    high = distance(second.interval.high - second.value, first.value - first.interval.low)
    return ConfidenceInterval(Interval(difference - low, difference + high), "Newcombe")


def mean_interval(
    value: float, spread: ClusteredError, limits: Interval = NOT_NEGATIVE, tail: float = TAIL
) -> ConfidenceInterval:
    """Student's interval on the log scale of a mean that is never negative; see `share_interval`.

    Counts and levels are skewed to the right: value +- 2 SE misses the truth above more often than below.
    There is none with few clusters, or if they do not differ.
    """
    if spread.error == 0:
        return ConfidenceInterval(None, "none: no spread among clusters")
    if spread.freedom < FEW_CLUSTERS:
        return ConfidenceInterval(None, f"none: fewer than {FEW_CLUSTERS} degrees of freedom")
    factor = exp(_student(min(spread.freedom, spread.estimated), tail) * spread.error / value)
    return ConfidenceInterval(
        Interval(max(limits.low, value / factor), min(limits.high, value * factor)), "log t"
    )


def student_interval(
    value: float, spread: ClusteredError, limits: Interval = ANYWHERE, tail: float = TAIL
) -> ConfidenceInterval:
    """Student's interval of a coefficient; none with few clusters, or if they do not differ.

    The arguments are those of `share_interval`.
    """
    if spread.error == 0:
        return ConfidenceInterval(None, "none: no spread among clusters")
    if spread.freedom < MIN_FREEDOM:
        return ConfidenceInterval(None, f"none: fewer than {MIN_FREEDOM} degrees of freedom")
    half = _student(spread.freedom, tail) * spread.error
    return ConfidenceInterval(Interval(max(limits.low, value - half), min(limits.high, value + half)), "t")


def interval_over_bounds(low: BoundedEnd, high: BoundedEnd, tail: float = TAIL) -> ConfidenceInterval:
    """The interval that covers a value wherever it lies between two bounds (Imbens and Manski 2004).

    Args:
        low: the lower bound.
        high: the upper bound.
        tail: probability beyond each end, for a point.
    """
    error = max(low.error, high.error)
    tail = tail_of_bounds((high.value - low.value) / error if error > ROUNDING else 0.0, tail)
    first, second = low.at(tail), high.at(tail)
    if first.interval is None or second.interval is None:
        return first if first.interval is None else second
    methods = " and ".join(dict.fromkeys((first.method, second.method)))
    return ConfidenceInterval(Interval(first.interval.low, second.interval.high), f"Imbens-Manski, {methods}")


def wilson(share: float, effective: float, quantile: float) -> Interval:
    """Wilson's interval."""
    spread = share * (1 - share)
    weight = quantile**2 / effective
    middle = (share + weight / 2) / (1 + weight)
    half = quantile / (1 + weight) * sqrt(spread / effective + weight / (4 * effective))
    # Rounding must not leave the share itself outside.
    return Interval(max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))


def tail_of_bounds(width: float, tail: float = TAIL) -> float:
    """Probability beyond each end of an interval for a value within bounds (Imbens and Manski 2004).

    The truth cannot lie beyond both bounds, so each end needs less than a point does: with c the solution of
    Phi(c + width) - Phi(-c) = 1 - 2 tail, the result is Phi(-c). For a tail of .025, c is 1.960 for a point
    and 1.645 for wide bounds.

    Args:
        width: distance of the bounds, in standard errors.
        tail: the same probability for a point.
    """
    from scipy.optimize import brentq  # scipy is slow to import
    from scipy.special import ndtr

    largest = normal_quantile(tail)
    # At the quantile of a point the difference is at least 0, at that of one tail at most 0.
    c = brentq(
        lambda c: float(ndtr(c + width) - ndtr(-c)) - (1 - 2 * tail),
        normal_quantile(2 * tail) - 1e-9,
        largest + 1e-9,
    )
    return float(ndtr(-c))


def normal_quantile(tail: float) -> float:
    """The standard normal quantile with this probability beyond it."""
    from scipy.special import ndtri

    return Z95 if tail == TAIL else float(-ndtri(tail))


def _student(freedom: float, tail: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - tail))
