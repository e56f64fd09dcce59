"""Plays the unfinished tasks of a run file on one event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from propensitybench.clients import Client
from propensitybench.engine.agents import use_recorded_dialect
from propensitybench.engine.episodes import run_episode
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.session import Draw, Listener, Result, Session
from propensitybench.engine.stop import StopSignal, until_stopped
from propensitybench.errors import RunMismatch
from propensitybench.store import RunFile

# For processes of our own, the program and Ray's workers. By default Python's garbage collector walks every
# conversation in flight about once a second. With a thousand of them that took a third of all time
# (perf/http_cost.py).
GC_THRESHOLDS: Final = (20_000, 50, 100)

T = TypeVar("T")


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
    stop = stop or StopSignal()
    session = Session(run, partial(run_episode, client, stop), options, stop, on_progress, draw)
    use_recorded_dialect(client, run.manifest.dialect)
    at_once = options.transport.concurrency
    if client.has_endpoint:  # its requests need connections
        at_once = within_open_files(at_once)
    await until_stopped(session.play(at_once), stop, [client])
    return session.result()
