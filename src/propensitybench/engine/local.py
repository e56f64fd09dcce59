"""Runs the unfinished tasks of a run file on one event loop."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from propensitybench.clients import Client
from propensitybench.engine.drive import GroupCommit, Stopped, drive
from propensitybench.episode import RULES_VERSION, EpisodeRecord
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.store import NumberedTask, RunFile

DEFAULT_CONCURRENCY = 64


class Progress(NamedTuple):
    """How far a run has come; told after each task."""

    finished: int
    total: int
    last: EpisodeRecord


class Result(NamedTuple):
    """How an engine left a run file."""

    finished: int
    total: int
    interrupted: bool


class Stop:
    """A wish to stop, between the turns of every episode."""

    def __init__(self) -> None:
        self.wished = False

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.wished

    def wish(self) -> None:
        """Asks for the stop."""
        self.wished = True


def run_tasks(
    run: RunFile,
    client: Client,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    on_progress: Callable[[Progress], None] | None = None,
    stop: Stop | None = None,
) -> Result:
    """Plays every task of a run file that is not finished; errored ones are tried again.

    Ctrl-C and SIGTERM stop it between turns: what is journaled stays, the file can be gone on with.

    Args:
        run: open for writing.
        client: whatever answers; its address must be the run's.
        concurrency: episodes in flight.
        on_progress: called after each task.
        stop: lets others stop the run.

    Raises:
        RunMismatch: the client is another model than the run's, or the rules have changed.
        BadInput: concurrency is not positive.
    """
    if concurrency < 1:
        raise BadInput(f"concurrency must be 1 or more, found {concurrency}")
    if client.model != run.manifest.model:
        raise RunMismatch(f"{run.path}: is a run of {run.manifest.model}, not of {client.model}")
    if run.manifest.rules != RULES_VERSION:
        raise RunMismatch(
            f"{run.path}: was played under version {run.manifest.rules} of the rules, this program plays "
            f"version {RULES_VERSION}; finish it with propensitybench {run.manifest.package}"
        )
    run.reopen_errored()
    engine = _Engine(run, client, on_progress, stop or Stop())
    return asyncio.run(engine.run(concurrency))


class _Engine:
    def __init__(
        self,
        run: RunFile,
        client: Client,
        on_progress: Callable[[Progress], None] | None,
        stop: Stop,
    ) -> None:
        self._run = run
        self._client = client
        self._on_progress = on_progress
        self._stop = stop
        self._finished = run.count("outcome")
        self._total = run.manifest.tasks

    async def run(self, concurrency: int) -> Result:
        commit = GroupCommit(self._run)
        todo = self._run.unfinished()
        with _signals(self._stop):
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(concurrency, max(1, self._total - self._finished))):
                        group.create_task(self._work(todo, commit))
            except BaseExceptionGroup as group:
                # Every episode in flight fails in the same way; one sentence tells it.
                raise group.exceptions[0] from group
            finally:
                await self._client.close()
        return Result(self._finished, self._total, self._stop.wished)

    async def _work(self, todo: Iterator[NumberedTask], commit: GroupCommit) -> None:
        for task in todo:
            try:
                record = await drive(self._run, task, self._client, commit, self._stop)
            except Stopped:
                return
            self._finished += 1
            if self._on_progress is not None:
                self._on_progress(Progress(self._finished, self._total, record))


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """Turns the first Ctrl-C or SIGTERM into a wish to stop; a second one ends the program at once."""
    loop = asyncio.get_running_loop()
    caught = (signal.SIGINT, signal.SIGTERM)

    def wish() -> None:
        stop.wish()
        for number in caught:
            loop.remove_signal_handler(number)

    added = []
    for number in caught:
        try:
            loop.add_signal_handler(number, wish)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # Windows, or not the main thread: the default handling stays
        added.append(number)
    try:
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)
