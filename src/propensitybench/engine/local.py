"""Runs the unfinished tasks of a run file on one event loop."""

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any, Final, NamedTuple

from propensitybench.clients import Client, Stoppable
from propensitybench.engine.draw import tasks_drawn, tasks_to_draw
from propensitybench.engine.drive import Floor, GroupCommit, Stopped, drive
from propensitybench.engine.prices import Budget, Price, Spending
from propensitybench.engine.stop import Cause, Stop
from propensitybench.episode import RULES_VERSION
from propensitybench.errors import BadInput, PropensityBenchError, RunMismatch
from propensitybench.store import NumberedTask, RunFile

DEFAULT_CONCURRENCY: Final = 64
# After a wish to stop, what is in flight has so long to come back; it has been paid for.
GRACE_S: Final = 5.0
# An episode that waits longer than this for a reply is named on screen.
STALLED_S: Final = 60.0
TICK_S: Final = 1.0
STALLED_SHOWN: Final = 3
GC_THRESHOLDS: Final = (20_000, 50, 100)


class Progress(NamedTuple):
    """How far a run has come; told after each task, and every second.

    Attributes:
        finished, total: tasks; a stopping rule may raise the total as it draws more.
        calls: replies in this session.
        tokens, usd: spent over all sessions; ``usd`` is None where the price is unknown.
        stalled: tasks that have waited long for a reply, the longest first, with the seconds.
    """

    finished: int
    total: int
    calls: int
    tokens: int
    usd: float | None
    stalled: tuple[tuple[str, float], ...]


class Result(NamedTuple):
    """How an engine left a run file; ``cause`` is None if it ran to the end.

    ``total`` is the number of tasks that were to be played: under a stopping rule, those drawn.
    """

    finished: int
    total: int
    cause: Cause | None
    reason: str


class Terms(NamedTuple):
    """On what terms tasks are played.

    Attributes:
        concurrency: episodes in flight.
        budget: where to stop.
        price: of the model's tokens; None if unknown.
    """

    concurrency: int = DEFAULT_CONCURRENCY
    budget: Budget = Budget()
    price: Price | None = None


def run_tasks(
    run: RunFile,
    client: Client,
    terms: Terms = Terms(),
    *,
    on_progress: Callable[[Progress], None] | None = None,
    stop: Stop | None = None,
) -> Result:
    """Plays every task of a run file that is not finished; errored ones are tried again.

    Under a stopping rule, batch by batch, until the rule holds.

    Ctrl-C and SIGTERM stop it: replies in flight have a few seconds to come back and are journaled;
    the file can be gone on with. A second Ctrl-C ends the program at once.

    Args:
        run: open for writing.
        client: whatever answers; its address must be the run's.
        terms: how many at a time, and up to what cost.
        on_progress: called after each task, and every second.
        stop: lets others stop the run.

    Raises:
        RunMismatch: the client is another model than the run's, or the rules have changed.
        BadInput: the terms cannot be met, or the file cannot be written to.
    """
    if terms.concurrency < 1:
        raise BadInput(f"concurrency must be 1 or more, found {terms.concurrency}")
    if terms.budget.usd is not None and terms.price is None:
        raise BadInput(f"a budget in US dollars needs the price of {client.model}: give --price INPUT,OUTPUT")
    if client.model != run.manifest.model:
        raise RunMismatch(f"{run.path}: is a run of {run.manifest.model}, not of {client.model}")
    if run.manifest.rules != RULES_VERSION:
        raise RunMismatch(
            f"{run.path}: was played under version {run.manifest.rules} of the rules, this program plays "
            f"version {RULES_VERSION}; finish it with propensitybench {run.manifest.package}"
        )
    run.reopen_errored()
    with _patient_collector():
        return asyncio.run(_Engine(run, client, terms, on_progress, stop or Stop()).run())


class _Engine:
    def __init__(
        self,
        run: RunFile,
        client: Client,
        terms: Terms,
        on_progress: Callable[[Progress], None] | None,
        stop: Stop,
    ) -> None:
        self._run = run
        self._client = client
        self._terms = terms
        self._on_progress = on_progress
        self._stop = stop
        self._finished = run.count("outcome")
        self._total = tasks_drawn(run)

    async def run(self) -> Result:
        loop = asyncio.get_running_loop()
        spending = Spending(self._run.usage(), self._terms.price, self._terms.budget)
        floor = Floor(self._run, self._client, GroupCommit(self._run), self._stop, spending, loop.time)
        if exhausted := spending.exhausted():
            self._stop.wish(Cause.BUDGET, exhausted)
        if isinstance(self._client, Stoppable):
            self._stop.on_wish(self._client.stop_asking)
        ticker = asyncio.create_task(self._tick(floor))
        with _signals(self._stop):
            try:
                await self._play(floor)
            finally:
                ticker.cancel()
                await self._client.close()
        return Result(self._finished, self._total, self._stop.cause, self._stop.reason)

    async def _play(self, floor: Floor) -> None:
        """Plays what is drawn, then draws more as long as the stopping rule asks for it."""
        while True:
            todo = takewhile(lambda task: task.number < self._total, self._run.unfinished())
            number = min(self._terms.concurrency, max(1, self._total - self._finished))
            await self._finish([asyncio.create_task(self._work(floor, todo)) for _ in range(number)])
            if self._finished < self._total or (more := tasks_to_draw(self._run)) == self._total:
                return
            self._total = more

    async def _finish(self, workers: "list[asyncio.Task[None]]") -> None:
        """Waits for the workers; after a wish to stop, for a few seconds."""
        stopping = asyncio.Event()
        self._stop.on_wish(stopping.set)
        if self._stop.wished:
            stopping.set()
        wish = asyncio.create_task(stopping.wait())
        everything = asyncio.gather(*workers)
        try:
            watched: set[asyncio.Future[Any]] = {everything, wish}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await asyncio.wait({everything}, timeout=GRACE_S)
            if everything.done():
                everything.result()
        finally:
            wish.cancel()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            everything.cancel()
            with suppress(asyncio.CancelledError, PropensityBenchError):
                await everything

    async def _work(self, floor: Floor, todo: Iterator[NumberedTask]) -> None:
        for task in todo:
            try:
                await drive(floor, task)
            except Stopped:
                return
            self._finished += 1
            self._tell(floor)

    async def _tick(self, floor: Floor) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tell(floor)

    def _tell(self, floor: Floor) -> None:
        if self._on_progress is None:
            return
        now = floor.clock()
        # Insertion order is that of asking, so the first ones have waited longest.
        longest = list(floor.waiting.items())[:STALLED_SHOWN]
        stalled = tuple((key, now - since) for key, since in longest if now - since > STALLED_S)
        spent = floor.spending
        self._on_progress(
            Progress(self._finished, self._total, floor.calls, spent.tokens, spent.usd, stalled)
        )


@contextmanager
def _patient_collector() -> Iterator[None]:
    """Python's garbage collector, called less often.

    By its own measure it walks every conversation in flight about once a second: with a thousand of them
    that was a third of all time (perf/http_cost.py).
    """
    usual = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


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
