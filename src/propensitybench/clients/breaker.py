"""When failures mean that a run cannot go on: decisions, with the time passed in."""

from math import inf
from typing import Final

# So many tasks given up, none of which had failed before the last reply, mean that the endpoint is gone.
FAILURES_TO_STOP: Final = 20
# So many tasks refused in a row for the same reason mean that the endpoint does not take what a run sends.
REFUSALS_TO_STOP: Final = 5


class Breaker:
    """Tells an endpoint that is gone from requests that never work.

    A request that is retried gives up long after its first failure. If others were answered in between, it
    says nothing of the endpoint. So a request counts only if its first failure came after the last answer.
    """

    def __init__(self) -> None:
        self._answered_at = -inf
        self._failures = 0

    def answered(self, now: float) -> None:
        """The endpoint gave a reply, or refused a request."""
        self._answered_at = now
        self._failures = 0

    def gave_up(self, failing_since: float) -> int:
        """A request was given up; the number of those in a row that say that the endpoint is gone.

        Args:
            failing_since: when its first attempt failed; when it was sent, if that attempt timed out.
        """
        if failing_since > self._answered_at:
            self._failures += 1
        return self._failures


class RefusalStreak:
    """Counts tasks in a row that were refused for the same reason.

    A refusal may come only once a conversation has tool calls in it, while other tasks' first requests are
    answered. So a reply ends the streak only if its conversation was as long as the refused ones. And a
    refusal comes much sooner than a reply. So the streak counts only once the requests that were in flight
    when it began have come back.
    """

    def __init__(self) -> None:
        self._wording = ""
        self._depth = 0
        self._refusals = 0
        self._in_flight: dict[object, int] = {}
        self._awaited: set[object] = set()

    def sent(self, request: object, depth: int) -> None:
        """A request of a conversation of so many messages is on its way."""
        self._in_flight[request] = depth

    def back(self, request: object) -> None:
        """It has come back, whatever came of it."""
        self._in_flight.pop(request, None)
        self._awaited.discard(request)

    def answered(self, depth: int) -> None:
        """A conversation of so many messages was answered."""
        if depth >= self._depth:
            self._refusals = 0

    def refused(self, wording: str, depth: int) -> int:
        """A conversation of so many messages was refused.

        Returns:
            The number of refusals in the streak; 0 while a request is awaited that may end it.
        """
        if self._refusals and wording == self._wording:
            self._depth = min(self._depth, depth)
        else:
            self._wording, self._depth, self._refusals = wording, depth, 0
            self._awaited = {request for request, sent in self._in_flight.items() if sent >= depth}
        self._refusals += 1
        return 0 if self._awaited else self._refusals
