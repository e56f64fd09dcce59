"""One execution of a run file, wherever its episodes are played."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import takewhile
from typing import Final, NamedTuple

from propensitybench.engine.episodes import Entry
from propensitybench.engine.journal import JournalWriter
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.pace import Pace
from propensitybench.engine.prices import Price, Spending, price_table
from propensitybench.engine.sequential import next_scheduled
from propensitybench.engine.stop import StopCause, Stopped, StopSignal
from propensitybench.episode import EpisodeJob
from propensitybench.store import JournalEntry, NumberedTask, RunFile, is_scheduled, read_usage, scheduled

TICK_S: Final = 1.0
# Tasks that have waited longer than this for a reply are reported as stalled.
STALLED_S: Final = 60.0
STALLED_SHOWN: Final = 3
# Tasks that have waited long for a reply, longest first, with the seconds.
Stalled = tuple[tuple[str, float], ...]


class Progress(NamedTuple):
    """The progress of a run, reported after each task and every second.

    Attributes:
        finished, total: tasks; a stopping rule may raise the total as it draws more.
        calls: replies received in this session.
        share: of the work of this session that is done, in levels, since many tasks are played at once.
        seconds_left: an estimate; None as long as there is none.
        tokens, usd: spent over all sessions; ``usd`` is None if the price is unknown.
        stalled: tasks that have waited long for a reply, longest first, with the seconds.
    """

    finished: int
    total: int
    calls: int
    share: float
    seconds_left: float | None
    tokens: int
    usd: float | None
    stalled: Stalled


class Result(NamedTuple):
    """The state of a run file after execution; ``cause`` is None if nothing stopped it.

    ``total`` is the number of tasks to play; under a stopping rule, of those drawn.
    """

    finished: int
    total: int
    cause: StopCause | None
    reason: str


Listener = Callable[[Progress], None]
# The number of tasks to play once every task drawn so far has ended.
Draw = Callable[[RunFile], int]
# Plays a job and yields its journal entries, as `run_episode` does; may end early if a worker is lost.
Play = Callable[[EpisodeJob], AsyncGenerator[tuple[Entry, ...]]]


class Session:
    """Plays every drawn task of a run file; under a stopping rule or a gate, in batches until it is met.

    Errored tasks are retried.

    Args:
        run: the run file, open for writing; nothing else writes to it.
        play: plays a job.
        options: budget and price.
        stop: ends the session when requested, from any thread.
        on_progress: called after each task and every second.
        draw: says how many tasks to play next; None follows the stopping rule.

    Raises:
        RunMismatch: the rules have changed.
        BadInput: there is a budget in US dollars and no price, or the file cannot be written to.
    """

    def __init__(
        self,
        run: RunFile,
        play: Play,
        options: ExecutionOptions,
        stop: StopSignal,
        on_progress: Listener | None = None,
        draw: Draw | None = None,
    ) -> None:
        self._spending = spending_of(run, options)
        run.check_rules()
        run.reopen_errored()
        self._run = run
        self._play = play
        self._draw = draw or next_scheduled
        self._stop = stop
        self._on_progress = on_progress
        self._journal = JournalWriter(run)
        self._clock = asyncio.get_running_loop().time
        # Since when each task waits for a reply; those that have waited longest come first.
        self._waiting: dict[str, float] = {}
        self._calls = 0
        self._pace = Pace(run.manifest.protocol.last_level + 1, self._clock)
        self._finished = run.count("outcome")
        self._total = scheduled(run)

    async def play(self, at_once: int) -> None:
        """Plays so many episodes at once until there are no more, or until a stop is requested.

        Raises:
            BadInput: the file cannot be written to.
        """
        self._stop_if_exhausted()
        ticker = asyncio.create_task(self._tick())
        try:
            while not self._stop.stop_requested:
                await self._play_drawn(at_once)
                if self._finished < self._total or (more := self._draw(self._run)) == self._total:
                    return
                self._total = more
        finally:
            ticker.cancel()

    def result(self) -> Result:
        """The state of the run file."""
        return Result(self._finished, self._total, self._stop.cause, self._stop.reason)

    async def _play_drawn(self, at_once: int) -> None:
        todo = takewhile(
            lambda task: is_scheduled(self._run, task.number, self._total), self._run.unfinished()
        )
        slots = min(at_once, max(1, self._total - self._finished))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(slots):
                    group.create_task(self._play_each(todo))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _play_each(self, tasks: Iterator[NumberedTask]) -> None:
        try:
            for task in tasks:
                # From where its journal ends, and again if a worker was lost on the way.
                while not await self._advance(task):
                    pass
        except Stopped:
            return

    async def _advance(self, task: NumberedTask) -> bool:
        """Plays a task; returns whether it has ended."""
        key, ended = task.task.key, False
        self._waiting[key] = self._clock()
        try:
            async with aclosing(self._play(self._run.job(task))) as episode:
                async for entries in episode:
                    # The episode goes on when its next entries are asked for, so they are stored before that.
                    await self._journal.add(entries)
                    ended = self._count(entries)
                    del self._waiting[key]
                    self._waiting[key] = self._clock()
        finally:
            del self._waiting[key]
        return ended

    def _count(self, entries: Sequence[Entry]) -> bool:
        """Counts what was stored; returns whether it ended a task."""
        ended = False
        for entry in entries:
            if isinstance(entry, JournalEntry):
                self._calls += 1
                self._pace.reach(entry.task, entry.level)
                self._spending.add(read_usage(entry.body))
            else:
                ended = True
                self._finished += 1
                self._pace.end(entry.task, entry.record.stats.level)
                self._tell()
        self._stop_if_exhausted()
        return ended

    def _stop_if_exhausted(self) -> None:
        if exhausted := self._spending.exhausted():
            self._stop.request_stop(StopCause.BUDGET, exhausted)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tell()

    def _tell(self) -> None:
        if self._on_progress is None:
            return
        now, spent = self._clock(), self._spending
        longest = list(self._waiting.items())[:STALLED_SHOWN]
        stalled = tuple((key, now - since) for key, since in longest if now - since > STALLED_S)
        left = self._total - self._finished
        self._on_progress(
            Progress(
                self._finished,
                self._total,
                self._calls,
                self._pace.share(left),
                self._pace.seconds_left(left),
                spent.tokens,
                spent.usd,
                stalled,
            )
        )


def spending_of(run: RunFile, options: ExecutionOptions) -> Spending:
    """What a run has cost so far; raises `BadInput` if there is a budget in US dollars and no price."""
    price = price_of(run.manifest.model, options)
    return Spending(run.usage(), price, options.budget)


def price_of(model: str, options: ExecutionOptions) -> Price | None:
    """The price of a model, None if it is unknown; raises `BadInput` if a budget in US dollars needs it."""
    price = options.price or price_table().find(model)
    options.budget.check_price(model, price)
    return price
