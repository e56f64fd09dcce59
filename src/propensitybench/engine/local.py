"""Plays the unfinished tasks of a run file on one event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar

from propensitybench.clients import Client, Stoppable
from propensitybench.engine.agents import adopt
from propensitybench.engine.episodes import Entry, RunContext, Stopped, run_episode
from propensitybench.engine.journal import JournalWriter
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.prices import Price, Spending, price_table
from propensitybench.engine.session import STALLED_S, STALLED_SHOWN, Draw, Listener, Result, Session, Stalled
from propensitybench.engine.stop import GRACE_S, StopSignal, in_loop
from propensitybench.errors import BadInput, PropensityBenchError, RunMismatch
from propensitybench.store import NumberedTask, OutcomeEntry, RunFile

# For processes of our own, the program and Ray's workers. By default Python's garbage collector walks every
# conversation in flight about once a second. With a thousand of them that took a third of all time
# (perf/http_cost.py).
GC_THRESHOLDS: Final = (20_000, 50, 100)

T = TypeVar("T")
# Gives the next task to play; None once there are no more.
NextTask = Callable[[], Awaitable[NumberedTask | None]]


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
    """Runs a coroutine that stops when cancelled, and waits for its result.

    Inside a running event loop, such as a notebook's, it runs in a thread with its own loop.

    Raises:
        KeyboardInterrupt: Ctrl-C, after the work has stopped.
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
            result.result()
            raise


async def run_tasks_async(
    run: RunFile,
    client: Client,
    options: ExecutionOptions = ExecutionOptions(),
    *,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
    draw: Draw | None = None,
) -> Result:
    """Plays every unfinished task of a run file; errored tasks are retried.

    Under a stopping rule, tasks are played in batches until the rule is met.

    Cancelling stops the run, as ``stop`` does: replies in flight have a few seconds to arrive and are
    journaled, and the run can be resumed. Cancelling again does not wait for them.

    Args:
        run: the run file, open for writing.
        client: the client; its model must be the run's.
        options: concurrency, budget and price.
        on_progress: called after each task and every second.
        stop: stops the run when set, from any thread.
        draw: says how many tasks to play once all drawn so far have ended; None follows the stopping rule.

    Raises:
        RunMismatch: the client's model is not the run's, or the rules have changed.
        BadInput: the options are invalid, or the file cannot be written to.
    """
    if client.model != run.manifest.model:
        raise RunMismatch(f"{run.path}: is a run of {run.manifest.model}, not of {client.model}")
    spending = begin(run, options)
    adopt(client, run.manifest.wire)
    context = RunContext(client, stop or StopSignal(), spending, asyncio.get_running_loop().time)
    player = LocalPlayer(run, context, options.transport.concurrency)
    return await Session(run, player, spending, context.stop, on_progress, draw).run()


def begin(run: RunFile, options: ExecutionOptions) -> Spending:
    """Prepares a run file for its next session, in which errored tasks are retried.

    Returns:
        What the run has cost so far.

    Raises:
        RunMismatch: the rules have changed.
        BadInput: there is a budget in US dollars and no price, or the file cannot be written to.
    """
    spending = spending_of(run, options)
    run.check_rules()
    run.reopen_errored()
    return spending


def spending_of(run: RunFile, options: ExecutionOptions) -> Spending:
    """What a run has cost so far; raises `BadInput` if there is a budget in US dollars and no price."""
    price = price_of(run.manifest.model, options)
    return Spending(run.usage(), price, options.budget)


def price_of(model: str, options: ExecutionOptions) -> Price | None:
    """The price of a model, None if it is unknown; raises `BadInput` if a budget in US dollars needs it."""
    price = options.price or price_table().find(model)
    if options.budget.usd is not None and price is None:
        raise BadInput(f"a budget in US dollars needs the price of {model}: give --price INPUT,OUTPUT")
    return price


class LocalPlayer:
    """Plays tasks in this event loop, and is the only writer of their run file.

    Args:
        run: the file, open for writing.
        context: of its episodes.
        concurrency: episodes in flight; fewer if the system allows fewer connections.
    """

    def __init__(self, run: RunFile, context: RunContext, concurrency: int) -> None:
        self._run = run
        self._context = context
        self._journal = JournalWriter(run)
        self._concurrency = concurrency
        if isinstance(context.client, Stoppable):  # its requests need connections
            self._concurrency = within_open_files(concurrency)
            loop, stop_requests = asyncio.get_running_loop(), context.client.stop_requests
            context.stop.on_stop_requested(lambda: in_loop(loop, stop_requests))

    @property
    def calls(self) -> int:
        """Replies received so far."""
        return self._context.calls

    def stalled(self) -> Stalled:
        """Tasks that have waited long for a reply."""
        now = self._context.clock()
        # In insertion order, so the first ones have waited longest.
        longest = list(self._context.waiting.items())[:STALLED_SHOWN]
        return tuple((key, now - since) for key, since in longest if now - since > STALLED_S)

    async def close(self) -> None:
        """Closes the client."""
        await self._context.client.close()

    async def play(self, tasks: Iterator[NumberedTask], number: int, ended: Callable[[], None]) -> None:
        """See `Player`."""

        async def following() -> NumberedTask | None:
            return next(tasks, None)

        def stored(entries: Sequence[Entry]) -> None:
            if isinstance(entries[-1], OutcomeEntry):
                ended()

        await self.play_each(following, number, stored)

    async def play_each(
        self, following: NextTask, number: int, stored: Callable[[Sequence[Entry]], None]
    ) -> None:
        """Plays tasks that may come later, as `play` does.

        Args:
            following: gives the next one.
            number: at most so many at a time.
            stored: called with the entries of a step of an episode, once they are in the file.
        """
        at_once = min(self._concurrency, number)
        await self._finish([asyncio.create_task(self._work(following, stored)) for _ in range(at_once)])

    async def _work(self, following: NextTask, stored: Callable[[Sequence[Entry]], None]) -> None:
        while (task := await following()) is not None:
            try:
                async with aclosing(run_episode(self._context, self._run.job(task))) as episode:
                    async for entries in episode:
                        await self._journal.add(entries)
                        stored(entries)
            except Stopped:
                return

    async def _finish(self, workers: "list[asyncio.Task[None]]") -> None:
        """Waits for the workers, but only a few seconds after a request to stop."""
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._context.stop.on_stop_requested(lambda: in_loop(loop, stopping.set))
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
