"""Plays the unfinished tasks of a run file on one event loop."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar

from propensitybench.clients import Client, Stoppable
from propensitybench.engine.agents import adopt
from propensitybench.engine.episodes import RunContext, Stopped, run_episode
from propensitybench.engine.journal import JournalWriter
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.prices import Spending, price_table
from propensitybench.engine.sequential import is_drawn, tasks_drawn, tasks_to_draw
from propensitybench.engine.stop import StopCause, StopSignal
from propensitybench.episode import RULES_VERSION
from propensitybench.errors import BadInput, PropensityBenchError, RunMismatch
from propensitybench.store import NumberedTask, RunFile

# How long to wait, after a request to stop, for replies in flight: they are paid for.
GRACE_S: Final = 5.0
# Tasks that have waited longer than this for a reply are reported as stalled.
STALLED_S: Final = 60.0
TICK_S: Final = 1.0
STALLED_SHOWN: Final = 3
GC_THRESHOLDS: Final = (20_000, 50, 100)


class Progress(NamedTuple):
    """The progress of a run, reported after each task and every second.

    Attributes:
        finished, total: tasks; a stopping rule may raise the total as it draws more.
        calls: replies received in this session.
        tokens, usd: spent over all sessions; ``usd`` is None if the price is unknown.
        stalled: tasks that have waited long for a reply, longest first, with the seconds.
    """

    finished: int
    total: int
    calls: int
    tokens: int
    usd: float | None
    stalled: tuple[tuple[str, float], ...]


class Result(NamedTuple):
    """The state of a run file after execution; ``cause`` is None if nothing stopped it.

    ``total`` is the number of tasks to play; under a stopping rule, of those drawn.
    """

    finished: int
    total: int
    cause: StopCause | None
    reason: str


T = TypeVar("T")
Listener = Callable[[Progress], None]


def run_tasks(
    run: RunFile,
    client: Client,
    options: ExecutionOptions = ExecutionOptions(),
    *,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
) -> Result:
    """`run_tasks_async` as a blocking call; works inside a running event loop too."""
    stop = stop or StopSignal()
    return block_on(lambda: run_tasks_async(run, client, options, on_progress=on_progress, stop=stop), stop)


def block_on(work: Callable[[], Coroutine[Any, Any, T]], stop: StopSignal) -> T:
    """Runs a coroutine and waits for its result.

    Inside a running event loop, such as a notebook's, it runs in a thread with its own loop, and Ctrl-C
    requests a stop, after which the work ends by itself.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(lambda: asyncio.run(work()))
        try:
            return result.result()
        except KeyboardInterrupt:
            stop.request_stop()
            return result.result()


async def run_tasks_async(
    run: RunFile,
    client: Client,
    options: ExecutionOptions = ExecutionOptions(),
    *,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
) -> Result:
    """Plays every unfinished task of a run file; errored tasks are retried.

    Under a stopping rule, tasks are played in batches until the rule is met.

    Ctrl-C and SIGTERM stop the run: replies in flight have a few seconds to arrive and are journaled, and
    the run can be resumed. A second Ctrl-C ends the program at once.

    Args:
        run: the run file, open for writing.
        client: the client; its model must be the run's.
        options: concurrency, budget and price.
        on_progress: called after each task and every second.
        stop: stops the run when set, from any thread.

    Raises:
        RunMismatch: the client's model is not the run's, or the rules have changed.
        BadInput: the options are invalid, or the file cannot be written to.
    """
    manifest, concurrency = run.manifest, options.transport.concurrency
    price = options.price or price_table().find(manifest.model)
    if options.budget.usd is not None and price is None:
        raise BadInput(f"a budget in US dollars needs the price of {client.model}: give --price INPUT,OUTPUT")
    if client.model != manifest.model:
        raise RunMismatch(f"{run.path}: is a run of {manifest.model}, not of {client.model}")
    if manifest.rules != RULES_VERSION:
        raise RunMismatch(
            f"{run.path}: was made under version {manifest.rules} of the rules, and this version of "
            f"propensitybench uses version {RULES_VERSION}; resume it with propensitybench {manifest.package}"
        )
    adopt(client, manifest.wire)
    run.reopen_errored()
    clock = asyncio.get_running_loop().time
    spending = Spending(run.usage(), price, options.budget)
    if isinstance(client, Stoppable):  # its requests need connections
        concurrency = within_open_files(concurrency)
    context = RunContext(client, stop or StopSignal(), spending, clock)
    with _patient_collector():
        return await _Engine(run, context, concurrency, on_progress).run()


class _Engine:
    def __init__(
        self, run: RunFile, context: RunContext, concurrency: int, on_progress: Listener | None
    ) -> None:
        self._run = run
        self._context = context
        self._concurrency = concurrency
        self._on_progress = on_progress
        self._journal = JournalWriter(run)
        self._finished = run.count("outcome")
        self._total = tasks_drawn(run)

    async def run(self) -> Result:
        loop = asyncio.get_running_loop()
        client, stop = self._context.client, self._context.stop
        if exhausted := self._context.spending.exhausted():
            stop.request_stop(StopCause.BUDGET, exhausted)
        if isinstance(client, Stoppable):
            stop.on_stop_requested(lambda: _in_loop(loop, client.stop_requests))
        ticker = asyncio.create_task(self._tick())
        with signals_stop(stop):
            try:
                await self._play()
            finally:
                ticker.cancel()
                await client.close()
        return Result(self._finished, self._total, stop.cause, stop.reason)

    async def _play(self) -> None:
        """Plays the drawn tasks, then draws more for as long as the stopping rule requires it."""
        while True:
            todo = takewhile(
                lambda task: is_drawn(self._run, task.number, self._total), self._run.unfinished()
            )
            number = min(self._concurrency, max(1, self._total - self._finished))
            await self._finish([asyncio.create_task(self._work(todo)) for _ in range(number)])
            if self._finished < self._total or (more := tasks_to_draw(self._run)) == self._total:
                return
            self._total = more

    async def _finish(self, workers: "list[asyncio.Task[None]]") -> None:
        """Waits for the workers, but only a few seconds after a request to stop."""
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._context.stop.on_stop_requested(lambda: _in_loop(loop, stopping.set))
        requested = asyncio.create_task(stopping.wait())
        everything = asyncio.gather(*workers)
        try:
            watched: set[asyncio.Future[Any]] = {everything, requested}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                await asyncio.wait({everything}, timeout=GRACE_S)
            if everything.done():
                everything.result()
        finally:
            requested.cancel()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            everything.cancel()
            with suppress(asyncio.CancelledError, PropensityBenchError):
                await everything

    async def _work(self, todo: Iterator[NumberedTask]) -> None:
        for task in todo:
            try:
                async with aclosing(run_episode(self._context, self._run.job(task))) as episode:
                    async for entries in episode:
                        await self._journal.add(entries)
            except Stopped:
                return
            self._finished += 1
            self._tell()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tell()

    def _tell(self) -> None:
        if self._on_progress is None:
            return
        context = self._context
        now = context.clock()
        # In insertion order, so the first ones have waited longest.
        longest = list(context.waiting.items())[:STALLED_SHOWN]
        stalled = tuple((key, now - since) for key, since in longest if now - since > STALLED_S)
        spent = context.spending
        self._on_progress(
            Progress(self._finished, self._total, context.calls, spent.tokens, spent.usd, stalled)
        )


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Schedules a callback in a loop from any thread; does nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


@contextmanager
def _patient_collector() -> Iterator[None]:
    """Runs Python's garbage collector less often.

    By default it walks every conversation in flight about once a second. With a thousand of them that took
    a third of all time (perf/http_cost.py).
    """
    usual = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def signals_stop(stop: StopSignal) -> Iterator[None]:
    """Turns the first Ctrl-C or SIGTERM into a request to stop; a second one is handled as before."""
    loop = asyncio.get_running_loop()
    usual: dict[signal.Signals, Any] = {}

    def restore() -> None:
        # `remove_signal_handler` alone would leave the system default.
        while usual:
            number, handler = usual.popitem()
            loop.remove_signal_handler(number)
            signal.signal(number, handler)

    def request_stop() -> None:
        stop.request_stop()
        restore()

    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is None:
            continue  # not installed by Python, so it cannot be restored
        try:
            loop.add_signal_handler(number, request_stop)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # on Windows and outside the main thread, the default handling stays
        usual[number] = handler
    try:
        yield
    finally:
        restore()
