"""Decides when to retry. Time and randomness are passed in."""

from typing import Final, NamedTuple

from propensitybench.clients.failures import TRANSIENT, Failure

# If a provider asks for more, the run stops and can be resumed.
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
            attempts: made so far, without those that do not count.
            jitter: a random number in [0, 1) that spreads requests that failed together.
        """
        if failure.kind not in TRANSIENT or attempts > self.max_retries:
            return None
        backoff = min(self.longest, self.first * 2.0 ** min(max(attempts - 1, 0), 30)) * (0.5 + jitter / 2)
        return max(backoff, failure.retry_after or 0.0)
