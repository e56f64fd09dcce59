"""Confidence intervals: Wilson's for shares, Newcombe's for differences, Student's t on the log scale for
means and plain for coefficients, and Imbens and Manski's for bounded values.
"""

from math import exp, inf, sqrt
from typing import Final, NamedTuple

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

    def with_scenarios(self, times: float) -> "ClusteredError":
        """What it would be with that many times the clusters, all like these."""
        return ClusteredError(self.error / sqrt(times), *(times * part for part in self[1:]))


class ComparedValue(NamedTuple):
    """One of two values that are compared, with its interval."""

    value: float
    interval: Interval


class Found(NamedTuple):
    """An interval, or None, and how it was computed or why there is none."""

    interval: Interval | None
    method: str


def share_interval(
    value: float, spread: ClusteredError, n: float, tail: float = TAIL, limits: Interval = SHARE
) -> Found:
    """Wilson's interval of a share with an effective size (Korn and Graubard 1998) and Student's quantile.

    Unlike value +- 1.96 SE it holds near the ends of the range, and on each side by itself, as an interval
    over bounds needs. If the clusters do not differ, each counts as one independent task; with several
    domains, as many as give the same variance.

    Args:
        value: the share.
        spread: its standard error.
        n: number of tasks.
        tail: probability beyond each end.
        limits: the range that it is a share of.
    """
    span = limits.high - limits.low
    share, error = (value - limits.low) / span, spread.error / span
    moves = error > 0
    noise = share * (1 - share)
    effective = min(noise / error**2, n) if noise > 0 and moves else spread.effective
    freedom = min(spread.freedom, max(MIN_ESTIMATED, spread.estimated))
    low, high = wilson(share, effective, _student(freedom, tail))
    return Found(Interval(limits.low + span * low, limits.low + span * high), "Korn-Graubard Wilson")


def difference_interval(
    sides: tuple[ComparedValue, ComparedValue], errors: tuple[float, float], error: float
) -> Found:
    """Interval of a difference of two shares, the second minus the first, from the intervals of both.

    Newcombe 1998 (Statistics in Medicine 17:2635), for correlated shares. Unlike value +- 1.96 SE it holds if
    few tasks differ. None if both shares move and their difference does not.

    Args:
        sides: the two shares.
        errors: their standard errors.
        error: standard error of the difference.
    """
    (first, one), (second, other) = sides
    product = errors[0] * errors[1]
    if error == 0 and product > 0:
        return Found(None, "none: no spread among clusters")
    alike = (errors[0] ** 2 + errors[1] ** 2 - error**2) / (2 * product) if product > 0 else 0.0
    alike = min(1.0, max(-1.0, alike))

    def distance(up: float, down: float) -> float:
        return sqrt(max(0.0, up**2 + down**2 - 2 * alike * up * down))

    difference = second - first
    low = distance(second - other.low, one.high - first)
    high = distance(other.high - second, first - one.low)
    return Found(Interval(difference - low, difference + high), "Newcombe")


def mean_interval(
    value: float, spread: ClusteredError, limits: Interval = NOT_NEGATIVE, tail: float = TAIL
) -> Found:
    """Student's interval on the log scale; none with few clusters, or if they do not differ.

    Counts and levels are skewed to the right: value +- 2 SE misses the truth above more often than below.

    Args:
        value: the estimate, of something that is never negative.
        spread: its standard error.
        limits: range of the estimate.
        tail: probability beyond each end.
    """
    if spread.error == 0:
        return Found(None, "none: no spread among clusters")
    if spread.freedom < FEW_CLUSTERS:
        return Found(None, f"none: fewer than {FEW_CLUSTERS} degrees of freedom")
    factor = exp(_student(min(spread.freedom, spread.estimated), tail) * spread.error / value)
    return Found(Interval(max(limits.low, value / factor), min(limits.high, value * factor)), "log t")


def student_interval(value: float, spread: ClusteredError, limits: Interval, tail: float = TAIL) -> Found:
    """Student's interval of a coefficient; none with few clusters, or if they do not differ.

    Args:
        value: the estimate.
        spread: its standard error.
        limits: range of the estimate.
        tail: probability beyond each end.
    """
    if spread.error == 0:
        return Found(None, "none: no spread among clusters")
    if spread.freedom < MIN_FREEDOM:
        return Found(None, f"none: fewer than {MIN_FREEDOM} degrees of freedom")
    half = _student(spread.freedom, tail) * spread.error
    return Found(Interval(max(limits.low, value - half), min(limits.high, value + half)), "t")


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
