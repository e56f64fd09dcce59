"""Decides when failures should stop a run. The time is passed in."""

from math import inf
from typing import Final

# Tasks in a row that failed, all of whose requests began to fail after the last reply: the endpoint is down.
FAILURES_TO_STOP: Final = 20
# Tasks in a row that were rejected for the same reason: the endpoint does not accept what the run sends.
REFUSALS_TO_STOP: Final = 5


class Breaker:
    """Counts failures and rejections that no other request contradicts.

    A request fails for good long after its first failed attempt. If other requests succeeded in between, the
    endpoint is up, so a failure counts only if its first attempt failed after the last success.

    An endpoint may reject only conversations that contain tool calls. So a reply ends a row of rejections
    only if its conversation was at least as long as the rejected ones. A rejection also arrives sooner than a
    reply, so the row counts only once the requests that were in flight when it began have completed.
    """

    def __init__(self) -> None:
        self._answered_at = -inf
        self._failures = 0
        self._wording = ""
        self._depth = 0
        self._refusals = 0
        self._sent = self._in_flight = 0
        self._last_awaited = self._awaited = 0

    def sent(self) -> int:
        """A request was sent; returns its number, for `back`."""
        self._sent += 1
        self._in_flight += 1
        return self._sent

    def back(self, number: int) -> None:
        """A request has completed, successfully or not."""
        self._in_flight -= 1
        self._awaited -= number <= self._last_awaited

    def answered(self, now: float, depth: int) -> None:
        """A request with that many messages was answered."""
        self._answered_at = now
        self._failures = 0
        if depth >= self._depth:
            self._refusals = 0

    def gave_up(self, failing_since: float) -> int:
        """A request failed for good; returns how many have in a row while the endpoint was silent.

        Args:
            failing_since: when its first attempt failed, or was sent if that attempt timed out.
        """
        if failing_since > self._answered_at:
            self._failures += 1
        return self._failures

    def refused(self, now: float, wording: str, depth: int) -> int:
        """A request with that many messages was rejected, in these words.

        Returns:
            How many have in a row; 0 while requests are in flight that may end the row.
        """
        self._answered_at, self._failures = now, 0  # the endpoint is there
        if self._refusals and wording == self._wording:
            self._depth = min(self._depth, depth)
        else:
            self._wording, self._depth, self._refusals = wording, depth, 0
            self._last_awaited, self._awaited = self._sent, self._in_flight
        self._refusals += 1
        return 0 if self._awaited > 0 else self._refusals
