"""Verdicts on a family of signs, and the sample that would tell."""

from collections.abc import Mapping
from math import ceil
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from propensitybench.metrics.intervals import TAIL
from propensitybench.metrics.signs.evidence import Evidence, MeasuredEffect

Verdict = Literal["shown", "not shown", "cannot tell yet", "not tested"]
SHOWN: Final = "shown"
NOT_SHOWN: Final = "not shown"
CANNOT_TELL: Final = "cannot tell yet"
NOT_TESTED: Final = "not tested"
Key = TypeVar("Key")
VERDICTS: Final[tuple[Verdict, ...]] = (SHOWN, NOT_SHOWN, CANNOT_TELL, NOT_TESTED)


class Claim(NamedTuple):
    """What is tested.

    Attributes:
        evidence: what it is tested on.
        relevant: the smallest effect that matters.
        shown_below: whether the sign is a smaller effect.
    """

    evidence: Evidence
    relevant: float
    shown_below: bool = False


class JudgedEffect(NamedTuple):
    """A verdict, the effect with its adjusted interval, and the probability beyond each end of that."""

    verdict: Verdict
    measured: MeasuredEffect
    tail: float


class NeededSample(msgspec.Struct, frozen=True):
    """How many tasks would tell, if the further ones were like those that were played.

    Attributes:
        size: their number, the present ones included; None if no number up to ``full`` tells.
        full: how many there are in all.
        why: why none tells; empty if one does.
    """

    size: int | None
    full: int
    why: str = ""


def judge(family: Mapping[Key, Claim]) -> dict[Key, JudgedEffect]:
    """Verdicts that are all right with a probability of 95 %, by Holm's step-down procedure.

    The intervals of the m claims are first made at 1 - 5 % / m. Claims that are decided leave the family,
    and the intervals of those that remain are made again at the level that is due to fewer, until none is
    decided. So a claim is decided if and only if Holm's (1979) adjusted p-value of its smallest relevant
    effect is at most 5 %; the interval says on which side.
    """
    found: dict[Key, JudgedEffect] = {}
    rest = dict(family)
    while rest:
        tail = TAIL / len(rest)
        judged = {key: _judged(claim, tail) for key, claim in rest.items()}
        decided = {key: one for key, one in judged.items() if one.verdict != CANNOT_TELL}
        found |= decided or judged
        rest = {key: claim for key, claim in rest.items() if key not in found}
    return {key: found[key] for key in family}


def _judged(claim: Claim, tail: float) -> JudgedEffect:
    measured = claim.evidence.measure(tail)
    return JudgedEffect(verdict_of(measured, claim), measured, tail)


def verdict_of(measured: MeasuredEffect, claim: Claim) -> Verdict:
    """The side of the smallest relevant effect on which the interval lies."""
    if measured.interval is None:
        return CANNOT_TELL
    low, high = measured.interval
    if low > claim.relevant:
        return NOT_SHOWN if claim.shown_below else SHOWN
    if high < claim.relevant:
        return SHOWN if claim.shown_below else NOT_SHOWN
    return CANNOT_TELL


def would_tell(claim: Claim, judged: JudgedEffect, full: int) -> NeededSample:
    """The number of tasks with which an undecided claim would be decided, the effect being as it is now.

    The present tasks are repeated until the interval at the same level decides; so the same estimator says
    how it narrows, and a share of lost tasks stays what it is.

    Args:
        claim: the claim.
        judged: its verdict, `CANNOT_TELL`.
        full: number of tasks that there are.
    """
    size, bounds = claim.evidence.size, judged.measured.bounds
    if bounds is not None and bounds.low <= claim.relevant <= bounds.high and bounds.low < bounds.high:
        return NeededSample(None, full, "lost")
    if not size or judged.measured.value is None:
        return NeededSample(None, full, "no interval")

    def tells(times: int) -> bool:
        return (
            _judged(claim._replace(evidence=claim.evidence.repeated(times)), judged.tail).verdict
            != CANNOT_TELL
        )

    most = ceil(full / size)
    if most < 2 or not tells(most):
        return NeededSample(None, full, "no interval" if judged.measured.interval is None else "full")
    few, enough = 1, most
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if tells(middle) else (middle, enough)
    return NeededSample(min(enough * size, full), full)
