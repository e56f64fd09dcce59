"""When to try again: a decision, without a clock and without chance of its own."""

from typing import Final, NamedTuple

from propensitybench.clients.failures import PASSING, Failure

# Beyond this a provider does not ask for patience but for another day; the run stops and can be resumed.
LONGEST_WAIT_S: Final = 900.0


class Backoff(NamedTuple):
    """Exponential backoff with jitter.

    Attributes:
        max_retries: tries after the first.
        first: seconds before the second try, at most.
        longest: seconds between tries, at most, unless the provider asks for more.
    """

    max_retries: int = 8
    first: float = 0.5
    longest: float = 60.0

    def wait(self, failure: Failure, tries: int, jitter: float) -> float | None:
        """Seconds to wait before the next try; None if there should be none.

        Args:
            failure: of the last try.
            tries: how many were made.
            jitter: a number in [0, 1) that spreads those who failed together.
        """
        if failure.kind not in PASSING or tries > self.max_retries:
            return None
        backoff = min(self.longest, self.first * 2.0 ** min(tries - 1, 30)) * (0.5 + jitter / 2)
        return max(backoff, failure.retry_after or 0.0)
