"""Decides when failures should stop a run. The time is passed in."""

from math import inf
from typing import Final

# Tasks in a row that failed, all of whose requests began to fail after the last reply: the endpoint is down.
FAILURES_TO_STOP: Final = 20
# Tasks in a row that were rejected for the same reason: the endpoint does not accept what the run sends.
REFUSALS_TO_STOP: Final = 5


class Breaker:
    """Distinguishes an endpoint that is down from requests that never succeed.

    A request fails for good long after its first failed attempt. If other requests succeeded in between, the
    endpoint is up. So a request counts only if its first failure came after the last success.
    """

    def __init__(self) -> None:
        self._answered_at = -inf
        self._failures = 0

    def answered(self, now: float) -> None:
        """The endpoint replied, or rejected a request."""
        self._answered_at = now
        self._failures = 0

    def gave_up(self, failing_since: float) -> int:
        """A request failed for good; returns how many have in a row while the endpoint was silent.

        Args:
            failing_since: when its first attempt failed, or was sent if that attempt timed out.
        """
        if failing_since > self._answered_at:
            self._failures += 1
        return self._failures


class RefusalStreak:
    """Counts tasks in a row that were rejected for the same reason.

    An endpoint may reject only conversations that contain tool calls. So a reply ends the streak only if its
    conversation was at least as long as the rejected ones. A rejection also arrives sooner than a reply, so
    the streak counts only once the requests that were in flight when it began have completed.
    """

    def __init__(self) -> None:
        self._wording = ""
        self._depth = 0
        self._refusals = 0
        self._in_flight: dict[object, int] = {}
        self._awaited: set[object] = set()

    def sent(self, request: object, depth: int) -> None:
        """A request with that many messages was sent."""
        self._in_flight[request] = depth

    def back(self, request: object) -> None:
        """A request has completed, successfully or not."""
        self._in_flight.pop(request, None)
        self._awaited.discard(request)

    def answered(self, depth: int) -> None:
        """A request with that many messages was answered."""
        if depth >= self._depth:
            self._refusals = 0

    def refused(self, wording: str, depth: int) -> int:
        """A request with that many messages was rejected.

        Returns:
            The length of the streak; 0 while requests are in flight that may end it.
        """
        if self._refusals and wording == self._wording:
            self._depth = min(self._depth, depth)
        else:
            self._wording, self._depth, self._refusals = wording, depth, 0
            self._awaited = {request for request, sent in self._in_flight.items() if sent >= depth}
        self._refusals += 1
        return 0 if self._awaited else self._refusals
