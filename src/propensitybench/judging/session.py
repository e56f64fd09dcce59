"""A session of questions: what its replies cost, how many failed, and why it stopped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from propensitybench.chat import Reply
from propensitybench.engine import StopCause, StopSignal, block_on
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import Stopped
from propensitybench.errors import ModelError, RunStopped, UnknownName
from propensitybench.files import file_name
from propensitybench.runs.settings import Settings, settings_of
from propensitybench.store import Annotation, RunFile


class AskingProgress(NamedTuple):
    """The progress: replies of all sessions, of how many; spent over all sessions."""

    finished: int
    total: int
    tokens: int
    usd: float | None


class AskingResult(NamedTuple):
    """How a session ended.

    Attributes:
        finished, total: replies in the run file, of how many.
        calls: replies received in this session.
        failures: requests without a reply in this session; they are sent again next time.
        last_failure: why the last of them has none.
        tokens, usd: spent over all sessions; ``usd`` is None if a price is unknown.
        stop: whether and why the session was stopped.
    """

    finished: int
    total: int
    calls: int
    failures: int
    last_failure: str
    tokens: int
    usd: float | None
    stop: StopSignal


Listener = Callable[[AskingProgress], None]
logger = logging.getLogger(__name__)


def check_settings(settings: Settings, *kinds: type) -> None:
    """Raises `BadInput` for a setting that is neither ``limit`` nor of one of these kinds."""
    known = ("limit", *settings_of(*kinds))
    for name in settings:
        if name not in known:
            raise UnknownName("setting", name, known)


def wait_for(work: Callable[[StopSignal], Coroutine[Any, Any, AskingResult]], path: Path) -> AskingResult:
    """Waits for a session about a run file, also in a notebook; logs what is left to ask.

    Raises:
        RunStopped: the provider can no longer answer.
        KeyboardInterrupt: Ctrl-C; the same call resumes it.
    """
    stop = StopSignal()
    asked = block_on(lambda: work(stop), stop)
    if left := asked.total - asked.finished:
        why = stop.reason or asked.last_failure
        sentence = f"{file_name(path)}: {left} of {asked.total} replies are missing; {why}"
        if stop.cause in (StopCause.PROVIDER, StopCause.BAD_INPUT):
            raise RunStopped(sentence, bad_input=stop.cause is StopCause.BAD_INPUT)
        logger.warning("%s; the same call asks for them", sentence)
    return asked


class AskingSession:
    """Journals the replies to questions in a run file, and stops when the budget is spent.

    Args:
        file: open for writing.
        left: number of replies that the file has already, and of all.
        costs: of all sessions so far.
        on_progress: called after each reply.
        stop: stops the session.
    """

    def __init__(
        self,
        file: RunFile,
        left: tuple[int, int],
        costs: Costs,
        on_progress: Listener | None = None,
        stop: StopSignal | None = None,
    ) -> None:
        self.stop = stop or StopSignal()
        self._file = file
        self._finished, self._total = left
        self._costs = costs
        self._on_progress = on_progress
        self._calls = self._failures = 0
        self._last_failure = ""
        self._stop_if_exhausted()

    async def run_all(self, work: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Waits for all of the work; raises the first error that is not about a single reply."""
        try:
            async with asyncio.TaskGroup() as group:
                for one in work:
                    group.create_task(_until_stopped(one))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def ask(self, about: tuple[int, str, str, str], replying: Awaitable[Reply]) -> None:
        """Waits for a reply and commits it to the file; counts the question if there is none.

        Args:
            about: the annotation but for its reply: number of the task, digest of the question, variant and
                rater.
            replying: gives the reply.

        Raises:
            Stopped: no more requests are to be sent.
        """
        try:
            reply = await replying
        except ModelError as error:
            self._failures += 1
            self._last_failure = str(error)
            return
        annotation = Annotation(*about, reply)
        self._file.annotate([annotation])
        self._calls += 1
        self._costs.add(annotation.rater, reply.usage)
        self._stop_if_exhausted()
        if self._on_progress is not None:
            finished, costs = self._finished + self._calls, self._costs
            self._on_progress(AskingProgress(finished, self._total, costs.tokens, costs.usd))

    def _stop_if_exhausted(self) -> None:
        if exhausted := self._costs.exhausted():
            self.stop.request_stop(StopCause.BUDGET, exhausted)

    def ended(self) -> AskingResult:
        """How the session ended."""
        finished, costs = self._finished + self._calls, self._costs
        return AskingResult(
            finished, self._total, self._calls, self._failures, self._last_failure,
            costs.tokens, costs.usd, self.stop,
        )  # fmt: skip


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    with suppress(Stopped):
        await work
