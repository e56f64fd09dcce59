"""When to retry: a decision, without a clock and without chance of its own."""

from typing import Final, NamedTuple

from propensitybench.clients.failures import TRANSIENT, Failure

# A provider that asks for more means another day; the run stops and can be resumed.
LONGEST_WAIT_S: Final = 900.0


class Backoff(NamedTuple):
    """Exponential backoff with jitter.

    Attributes:
        max_retries: attempts after the first.
        first: seconds before the second attempt, at most.
        longest: seconds between attempts, at most, unless the provider asks for more.
    """

    max_retries: int = 8
    first: float = 0.5
    longest: float = 60.0

    def wait(self, failure: Failure, attempts: int, jitter: float) -> float | None:
        """Seconds to wait before the next attempt; None if there should be none.

        Args:
            failure: of the last attempt.
            attempts: how many were made, without those that do not count.
            jitter: a number in [0, 1) that spreads requests which failed together.
        """
        if failure.kind not in TRANSIENT or attempts > self.max_retries:
            return None
        backoff = min(self.longest, self.first * 2.0 ** min(max(attempts - 1, 0), 30)) * (0.5 + jitter / 2)
        return max(backoff, failure.retry_after or 0.0)
