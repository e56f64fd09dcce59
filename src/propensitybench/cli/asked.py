"""How a session of asking about a run's transcripts ended."""

from typing import Final

from propensitybench.cli.execution import EXIT
from propensitybench.cli.output import tell
from propensitybench.judging.asking import Judged

UNANSWERED: Final = 1


def print_ending(asked: Judged) -> int:
    """Prints to standard error what is left to do; the exit code."""
    left = asked.total - asked.finished
    if asked.failures:
        tell(f"{asked.failures} requests had no reply, the last one: {asked.last_failure}")
    if left:
        why = f"stopped: {asked.stop.reason}; " if asked.stop.cause else ""
        tell(f"{why}{left} of {asked.total} replies are missing; the same command asks for them")
    if asked.stop.cause is not None and left:
        return EXIT[asked.stop.cause]
    return UNANSWERED if left else 0
