"""A session of asking about a run's transcripts: its progress, and how it ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from propensitybench.cli.execution import EXIT
from propensitybench.cli.output import print_note
from propensitybench.cli.text import print_json
from propensitybench.engine.asking import AskingListener, AskingProgress, AskingResult
from propensitybench.judging.session import AskingEstimate
from propensitybench.presentation.formats import dollars
from propensitybench.presentation.progress import Bar, Stage

UNANSWERED: Final = 1


def print_estimate(found: AskingEstimate, reasoning: str, *, as_json: bool) -> None:
    """Prints what asking the rest would take; ``reasoning`` says what of it the output tokens count."""
    if as_json:
        print_json(found)
        return
    for name, episodes in found.episodes.items():
        print(f"{name}: {episodes} episodes")
    print(f"calls:         {found.calls:,}")
    print(f"input tokens:  {found.input_tokens:,}")
    print(f"output tokens: {found.output_tokens:,}, {reasoning}")
    print(f"cost:          {dollars(found.usd)}, nothing cached")


@contextmanager
def shown(title: str) -> Iterator[AskingListener]:
    """Shows the progress of a session; gives what is to be called after each reply."""
    with Bar(title, keep=True) as bar:

        def advance(now: AskingProgress) -> None:
            note = f"{now.tokens / 1e6:.2f}M tokens, {dollars(now.usd)}"
            bar.update(Stage(title, now.finished, now.total, note=note))

        yield advance


def print_ending(asked: AskingResult) -> int:
    """Prints to standard error what is left to do; the exit code."""
    left = asked.total - asked.finished
    if asked.failures:
        print_note(f"{asked.failures} requests got no reply; the last error: {asked.last_failure}")
    if left:
        why = f"stopped: {asked.stop.reason}; " if asked.stop.cause else ""
        print_note(f"{why}{left} of {asked.total} replies are missing; the same command asks for them")
    if asked.stop.cause is not None and left:
        return EXIT[asked.stop.cause]
    return UNANSWERED if left else 0
