"""What is estimated: a ratio or a paired difference of two, as it was seen and as it may be."""

from typing import Literal, NamedTuple

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import SHARE, Interval

# What an interval is of. One of an open count has none: some tasks have no score, and nobody knows how often
# the agent would yet have called a tool.
Form = Literal["share", "count", "coefficient", "open count"]


class Ratio(NamedTuple):
    """Numerators and denominators, one of each for every unit.

    Attributes:
        x: numerators; finite wherever ``y`` is above 0.
        y: denominators; a unit with 0 is left out.
        needed: a domain in which all of these are 0 leaves no value. A domain with denominator 0 is otherwise
            left out, which changes the estimand.
    """

    x: Numbers
    y: Numbers
    needed: Numbers | None = None


class PairedDifference(NamedTuple):
    """The second ratio minus the first, over the same units; a domain without either leaves no value."""

    first: Ratio
    second: Ratio


Quantity = Ratio | PairedDifference


class Terms(NamedTuple):
    """What is estimated: as it was seen, and as it may be.

    Attributes:
        seen: from the episodes with a score.
        ends: the lowest and the highest value that missing outcomes allow: the interval covers everything in
            between. None if nothing is missing.
        form: of the interval; that of a difference is Newcombe's, from intervals of this form.
        limits: range of the estimate; of a difference, that of both its sides.
        noise: variance of each unit's ``x`` over reruns, where there are epochs to estimate it from.
    """

    seen: Quantity
    ends: tuple[Quantity, Quantity] | None = None
    form: Form = "share"
    limits: Interval = SHARE
    noise: Numbers | None = None

    @property
    def ratio(self) -> Ratio:
        """The ratio seen, of terms that are no difference."""
        assert isinstance(self.seen, Ratio)
        return self.seen


def difference_of(first: Terms, second: Terms) -> Terms:
    """The second minus the first of two shares of the same units, with all that missing outcomes allow."""
    seen = PairedDifference(first.ratio, second.ratio)
    ends = None
    if first.ends is not None or second.ends is not None:
        (least, most), (low, high) = (one.ends or (one.seen, one.seen) for one in (first, second))
        ends = PairedDifference(most, low), PairedDifference(least, high)  # type: ignore[arg-type]
    limits = Interval(min(first.limits.low, second.limits.low), max(first.limits.high, second.limits.high))
    return Terms(seen, ends, limits=limits)
