"""The answer of a majority."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def majority(votes: Iterable[T | None], *, of_all: bool = False) -> T | None:
    """The most frequent answer; None for a tie, or if nobody has answered.

    Args:
        votes: the answers; None for a vote without one.
        of_all: whether it must be the answer of more than half of all votes, those without one included.
    """
    counts = Counter(votes)
    needed = counts.total() / 2 if of_all else 0
    counts.pop(None, None)
    most = max(counts.values(), default=0)
    leaders = [answer for answer, number in counts.items() if number == most]
    return leaders[0] if len(leaders) == 1 and most > needed else None
