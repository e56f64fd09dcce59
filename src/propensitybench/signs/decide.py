"""Verdicts on a family of signs, and the sample that would be enough for one."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from propensitybench.metrics.intervals import TAIL, ConfidenceInterval, Interval, normal_quantile
from propensitybench.metrics.power import Z80
from propensitybench.signs.effects import Effect

SignVerdict = Literal["shown", "not shown", "cannot tell yet", "not tested"]
SHOWN: Final = "shown"
NOT_SHOWN: Final = "not shown"
CANNOT_TELL: Final = "cannot tell yet"
NOT_TESTED: Final = "not tested"
Key = TypeVar("Key")


class Claim(NamedTuple):
    """What is tested.

    Attributes:
        effect: as it was estimated; None if it is not tested.
        relevant: the smallest effect of interest.
    """

    effect: Effect | None
    relevant: float


class Decision(NamedTuple):
    """A verdict, the adjusted interval that it rests on, and the probability beyond each end of that."""

    verdict: SignVerdict
    found: ConfidenceInterval
    tail: float


class RequiredSample(msgspec.Struct, frozen=True):
    """How many tasks would be enough to decide, if the further ones are like those that were played.

    Attributes:
        size: their number, the present ones included; None if no number up to ``full`` is enough.
        full: how many there are in all.
        why: ``lost``, ``no interval`` or ``full``, if none is; empty otherwise.
    """

    size: int | None
    full: int
    why: Literal["", "lost", "no interval", "full"] = ""


def decide(family: Mapping[Key, Claim]) -> dict[Key, Decision]:
    """Verdicts that are all right with a probability of 95 %, by Holm's step-down procedure.

    The intervals of the m claims that can be tested are first made at 1 - 5 % / m. Claims that are decided
    leave the family, and the intervals of those that remain are made again at the level that is due to fewer,
    until none is decided. So a claim is decided if and only if Holm's (1979) adjusted p-value of its smallest
    effect of interest is at most 5 %; the interval says on which side.
    """
    nothing = Decision(NOT_TESTED, ConfidenceInterval(None, ""), TAIL)
    found = {key: nothing for key, claim in family.items() if claim.effect is None}
    rest = {key: claim for key, claim in family.items() if claim.effect is not None}
    while rest:
        tail = TAIL / len(rest)
        intervals = {key: claim.effect.interval(tail, 1.0) for key, claim in rest.items() if claim.effect}
        tried = {
            key: Decision(verdict_of(intervals[key].interval, claim.relevant), intervals[key], tail)
            for key, claim in rest.items()
        }
        decided = {key: one for key, one in tried.items() if one.verdict != CANNOT_TELL}
        found |= decided or tried
        rest = {key: claim for key, claim in rest.items() if key not in found}
    return {key: found[key] for key in family}


def verdict_of(interval: Interval | None, relevant: float) -> SignVerdict:
    """The side of the smallest effect of interest on which the interval lies."""
    if interval is None or interval.low <= relevant <= interval.high:
        return CANNOT_TELL
    return SHOWN if interval.low > relevant else NOT_SHOWN


def required_sample(effect: Effect, relevant: float, tail: float, full: int) -> RequiredSample:
    """The number of tasks with which an undecided claim would be decided with a probability of 80 %.

    With the effect as it is now and n times the scenarios, variances are divided by n (`Effect.interval`).
    The interval must then exclude the smallest effect of interest with 0.84 added to the quantile of its
    level: the 80 % quantile of the normal distribution, as in `propensitybench.metrics.power`.

    Args:
        effect: of the claim.
        relevant: the smallest effect of interest.
        tail: probability beyond each end of the interval that left it undecided.
        full: number of tasks that there are.
    """
    from scipy.special import ndtr  # scipy is slow to import

    bounds = effect.bounds
    if bounds is not None and bounds.low <= relevant <= bounds.high and bounds.low < bounds.high:
        return RequiredSample(None, full, "lost")
    if effect.interval(tail, 1.0).interval is None:
        return RequiredSample(None, full, "no interval")
    stricter = float(ndtr(-normal_quantile(tail) - Z80))

    def enough(size: int) -> bool:
        return verdict_of(effect.interval(stricter, size / effect.size).interval, relevant) != CANNOT_TELL

    if full <= effect.size or not enough(full):
        return RequiredSample(None, full, "full")
    low, high = effect.size, full  # the answer is above low and not above high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return RequiredSample(high, full)
