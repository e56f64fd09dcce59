"""A worker: plays the tasks that a coordinator leases to it, with a run file of its own.

Every reply is in that file before the next request of its task is sent, as in a run on one machine. What is
in it is reported to the coordinator, about once a second. If the worker dies, another can still read it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from propensitybench.chat import Usage
from propensitybench.clients import Client
from propensitybench.engine.agents import adopt
from propensitybench.engine.episodes import Entry, RunContext
from propensitybench.engine.exchange import Order, Report
from propensitybench.engine.local import LocalPlayer
from propensitybench.engine.prices import Budget, Spending
from propensitybench.engine.stop import StopCause, StopSignal, in_loop
from propensitybench.errors import BadInput
from propensitybench.store import JournalEntry, NumberedTask, OutcomeEntry, RunFile, encode_reply

# A worker reports at least so often, if it is asked.
EXCHANGE_S: Final = 1.0


class Worker:
    """Plays leased tasks, in the event loop in which it is made.

    Args:
        run: a run file of its own, a blank copy of the coordinator's, open for writing.
        client: of the run's model.
        slots: episodes in flight.
    """

    def __init__(self, run: RunFile, client: Client, slots: int) -> None:
        adopt(client, run.manifest.wire)
        self._run = run
        self._client = client
        self._stop = StopSignal()
        # The budget is the coordinator's, and so is the sum.
        spending = Spending(Usage(), None, Budget())
        context = RunContext(client, self._stop, spending, asyncio.get_running_loop().time)
        self._player = LocalPlayer(run, context, slots)
        self._tasks: asyncio.Queue[NumberedTask | None] = asyncio.Queue()
        self._entries: list[Entry] = []
        self._has_news = asyncio.Event()
        self._playing = asyncio.create_task(self._play(slots))

    async def exchange(self, order: Order) -> Report:
        """Does what the coordinator orders, and reports: within a second, or once it needs more tasks.

        Raises whatever ended the worker, if that was not an order and none of the causes that it reports.
        """
        self._follow(order)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_news.wait(), EXCHANGE_S)
        self._has_news.clear()
        ended = self._playing.done()
        if ended:
            self._playing.result()
        entries, self._entries = self._entries, []
        cause, reason = self._stop.cause, self._stop.reason
        return Report(
            tuple(entries),
            throttled=0,
            stalled=self._player.stalled(),
            ended=ended,
            cause=None if cause is StopCause.INTERRUPTED else cause,
            reason=reason,
        )

    async def close(self) -> None:
        """Stops at once, and closes client and file."""
        self._playing.cancel()
        await asyncio.gather(self._playing, return_exceptions=True)
        await self._player.close()
        self._run.close()

    def _follow(self, order: Order) -> None:
        # So that its file is a whole run file, which can be read without the coordinator's.
        known = [
            JournalEntry(leased.task, turn, body)
            for leased in order.lease
            for turn, body in enumerate(leased.replies)
        ]
        if known:
            self._run.append(known)
        for leased in order.lease:
            self._tasks.put_nowait(self._run.task(leased.task))
        if order.stop:
            self._stop.request_stop()

    async def _play(self, slots: int) -> None:
        loop = asyncio.get_running_loop()

        def release() -> None:
            for _ in range(slots):  # those that wait for a task
                self._tasks.put_nowait(None)

        self._stop.on_stop_requested(lambda: in_loop(loop, release))
        try:
            await self._player.play_each(self._following, slots, self._entries_stored)
        except BadInput as error:
            self._stop.request_stop(StopCause.BAD_INPUT, f"a worker's own file: {error}")
        finally:
            self._has_news.set()

    async def _following(self) -> NumberedTask | None:
        if self._tasks.empty():
            self._has_news.set()
        task = await self._tasks.get()
        if self._tasks.empty():  # more can come while this one is played
            self._has_news.set()
        return None if self._stop.stop_requested else task

    def _entries_stored(self, entries: Sequence[Entry]) -> None:
        self._entries.extend(entries)


def rest_of(path: Path, stored: Mapping[int, int]) -> tuple[Entry, ...]:
    """What a lost worker's file has of some tasks, beyond what it had reported; nothing if it cannot be read.

    Args:
        path: the file.
        stored: for each task, how many of its replies the coordinator has.
    """
    entries: list[Entry] = []
    try:
        with RunFile.open(path) as run:
            for task, count in stored.items():
                bodies = map(encode_reply, run.replies(task)[count:])
                entries += [JournalEntry(task, turn, body) for turn, body in enumerate(bodies, start=count)]
                if (outcome := run.stored_record(task)) is not None:
                    entries.append(OutcomeEntry(task, *outcome))
    except BadInput:
        return ()
    return tuple(entries)
