"""Plays a run on several workers: carries out what their coordinator decides, wherever they are."""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, Protocol

from propensitybench.engine.coordinator import Coordinator
from propensitybench.engine.episodes import Entry
from propensitybench.engine.exchange import Leased, Order, Rates, Report
from propensitybench.engine.prices import Spending
from propensitybench.engine.session import STALLED_SHOWN, Stalled
from propensitybench.engine.stop import GRACE_S, StopCause, StopSignal, in_loop
from propensitybench.store import JournalEntry, NumberedTask, OutcomeEntry, RunFile, encode_reply, read_usage

# Workers end within GRACE_S of the order to stop, which they get within a second; then they report.
STOPPED_S: Final = GRACE_S + 5.0
# A worker that does not answer for so long is given up. It should answer within a second.
LOST_S: Final = 60.0


class WorkerLost(Exception):
    """A worker has died, cannot be reached or has failed; the text says what is known."""


class Cluster(Protocol):
    """Where workers run. Each has a number, which is not given again."""

    async def start(self, worker: int, slots: int, replaces: int | None) -> None:
        """Starts a worker, and returns once it is ready.

        Args:
            worker: its number.
            slots: how many episodes it plays at a time.
            replaces: a lost worker, on whose machine it should be so that it can read its file.

        Raises:
            WorkerLost: it could not be started.
            BadInput: no worker can play this run, for example because a package is missing.
        """
        ...

    async def exchange(self, worker: int, order: Order) -> Report:
        """See `Worker.exchange`; raises `WorkerLost`."""
        ...

    async def rescue(self, worker: int, lost: int, stored: Mapping[int, int]) -> tuple[Entry, ...]:
        """What a lost worker's file has beyond its reports, read by a living one; see `rest_of`."""
        ...

    async def drop(self, worker: int) -> None:
        """Ends a worker that is lost, should it still live."""
        ...

    async def close(self) -> None:
        """Ends all workers, and removes their files."""
        ...


class WorkersPlayer:
    """Plays tasks on the workers of a cluster; the only writer of their run file is here.

    Args:
        run: the file, open for writing.
        cluster: where the workers run.
        slots: how many episodes each worker plays at a time.
        rates: of the whole run.
        spending: to which the cost of replies is added.
        stop: requested when the budget is spent, when a worker stopped, or when there can be no worker.
    """

    def __init__(
        self,
        run: RunFile,
        cluster: Cluster,
        slots: Sequence[int],
        rates: Rates,
        spending: Spending,
        stop: StopSignal,
    ) -> None:
        self._run = run
        self._cluster = cluster
        self._slots = slots
        self._spending = spending
        self._stop = stop
        self._clock = asyncio.get_running_loop().time
        self._coordinator = Coordinator(len(slots), rates, self._clock())
        self._numbers = count()
        self._seats: list[asyncio.Task[None]] = []
        self._starting: set[asyncio.Future[None]] = set()
        self._settled = asyncio.Event()
        self._ended: Callable[[], None] = lambda: None
        self._stalled: dict[int, Stalled] = {}
        self._noted: set[str] = set()
        self.calls = 0

    def stalled(self) -> Stalled:
        """Tasks that have waited long for a reply."""
        every = [one for stalled in self._stalled.values() for one in stalled]
        return tuple(sorted(every, key=lambda one: -one[1])[:STALLED_SHOWN])

    async def play(self, tasks: Iterator[NumberedTask], number: int, ended: Callable[[], None]) -> None:  # noqa: ARG002
        """See `Player`."""
        if self._stop.stop_requested:
            return
        self._ended = ended
        self._coordinator.add(task.number for task in tasks)
        if not self._seats:
            self._begin()
        while not self._is_settled():
            self._settled.clear()
            await self._settled.wait()
        if self._stop.stop_requested:
            for starting in self._starting:
                starting.cancel()
            await asyncio.wait(self._seats, timeout=STOPPED_S)
        for seat in self._seats:
            if seat.done() and not seat.cancelled():
                seat.result()

    async def close(self) -> None:
        """Ends the workers."""
        for seat in self._seats:
            seat.cancel()
        await asyncio.gather(*self._seats, return_exceptions=True)
        await self._cluster.close()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._stop.on_stop_requested(lambda: in_loop(loop, self._settled.set))
        self._seats = [asyncio.create_task(self._seat(slots)) for slots in self._slots]
        for seat in self._seats:
            seat.add_done_callback(lambda _: self._settled.set())

    def _is_settled(self) -> bool:
        return (
            self._stop.stop_requested
            or self._coordinator.unfinished == 0
            or any(seat.done() for seat in self._seats)
        )

    async def _seat(self, slots: int) -> None:
        """One worker after another, until a stop is requested."""
        lost: list[int] = []  # whose files have not been read
        while not self._stop.stop_requested:
            worker = next(self._numbers)
            self._coordinator.join(worker, slots)
            try:
                await self._employ(worker, slots, lost)
            except (WorkerLost, TimeoutError) as error:
                self._stalled.pop(worker, None)
                self._coordinator.lose(worker, self._clock())
                lost.append(worker)
                if self._coordinator.is_hopeless:
                    why = f"one worker after another was lost, the last with: {error}"
                    self._stop.request_stop(StopCause.PROVIDER, why)
                await self._cluster.drop(worker)
            else:
                return

    async def _employ(self, worker: int, slots: int, lost: list[int]) -> None:
        starting = asyncio.ensure_future(self._cluster.start(worker, slots, lost[-1] if lost else None))
        self._starting.add(starting)
        try:
            await starting
        finally:
            self._starting.discard(starting)
        while lost:
            await self._rescue(worker, lost[-1])
            lost.pop()
        ended = False
        while not ended:
            async with asyncio.timeout(LOST_S):
                report = await self._cluster.exchange(worker, self._order(worker))
            self._take(worker, report)
            ended = report.ended

    async def _rescue(self, worker: int, lost: int) -> None:
        stored = {task: len(self._run.replies(task)) for task in self._coordinator.held(lost)}
        if stored:
            async with asyncio.timeout(LOST_S):
                rest = await self._cluster.rescue(worker, lost, stored)
            self._store(lost, rest)
        self._coordinator.release(lost)

    def _order(self, worker: int) -> Order:
        if self._stop.stop_requested:
            return Order(stop=True)
        coordinator = self._coordinator
        coordinator.tick(self._clock())
        lease = tuple(
            Leased(task, tuple(map(encode_reply, self._run.replies(task))))
            for task in coordinator.lease(worker)
        )
        return Order(lease, coordinator.rates_of(worker), coordinator.hold_of(worker))

    def _take(self, worker: int, report: Report) -> None:
        self._store(worker, report.entries)
        self._stalled[worker] = report.stalled
        self._coordinator.throttled(worker, report.throttled, self._clock())
        for note in set(report.notes) - self._noted:
            self._noted.add(note)
            warnings.warn(note, stacklevel=2)
        if report.cause is not None:
            self._stop.request_stop(report.cause, report.reason)

    def _store(self, worker: int, entries: Sequence[Entry]) -> None:
        """Commits a worker's entries; those of tasks that it does not hold are dropped.

        Without giving way to other tasks of the loop: between the check and the commit nobody else may get a
        task with the replies from before.
        """
        kept = [entry for entry in entries if self._coordinator.holds(worker, entry.task)]
        if not kept:
            return
        replies = [entry for entry in kept if isinstance(entry, JournalEntry)]
        outcomes = [entry for entry in kept if isinstance(entry, OutcomeEntry)]
        self._run.append(replies, outcomes)
        before = self._spending.tokens
        for reply in replies:
            self._spending.add(read_usage(reply.body))
        self.calls += len(replies)
        self._coordinator.used(worker, len(replies), self._spending.tokens - before)
        for outcome in outcomes:
            self._coordinator.ended(worker, outcome.task)
            self._ended()
        if exhausted := self._spending.exhausted():
            self._stop.request_stop(StopCause.BUDGET, exhausted)
        if self._coordinator.unfinished == 0:
            self._settled.set()


def slots_of(concurrency: int, workers: int) -> list[int]:
    """How many episodes each worker plays at a time; no more workers than episodes."""
    workers = min(concurrency, workers)
    return [concurrency // workers + (number < concurrency % workers) for number in range(workers)]
