"""Asynchronous work of a command, which has the process to itself: signals, limits and garbage collection."""

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from propensitybench.engine import StopSignal
from propensitybench.engine.local import GC_THRESHOLDS

# More connections than one process keeps up with, and what macOS allows at least.
MAX_OPEN_FILES: Final = (65_536, 10_240)

Result = TypeVar("Result")


def result_of(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of asynchronous work, which SIGTERM cancels as Ctrl-C does.

    In background jobs, which ignore Ctrl-C, the handler of SIGTERM would raise in whichever task is running.

    Raises:
        KeyboardInterrupt: it was cancelled.
    """

    async def cancelled_by_sigterm() -> Result:
        task = asyncio.current_task()
        assert task is not None
        with suppress(NotImplementedError):  # on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    usual = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(cancelled_by_sigterm())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGTERM, usual)


def result_until_stopped(work: Callable[[StopSignal], Coroutine[Any, Any, Result]]) -> Result:
    """The result of asynchronous work with many requests, which Ctrl-C and SIGTERM ask to stop.

    Args:
        work: takes what asks it to stop, and ends by itself soon after.
    """

    async def stopped_by_signals() -> Result:
        stop = StopSignal()
        with _signals_stop(stop):
            return await work(stop)

    _allow_open_files()
    gc.set_threshold(*GC_THRESHOLDS)
    return asyncio.run(stopped_by_signals())


@contextmanager
def _signals_stop(stop: StopSignal) -> Iterator[None]:
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
        try:
            loop.add_signal_handler(number, request_stop)
        except NotImplementedError:
            continue  # on Windows, Ctrl-C cancels
        usual[number] = handler
    try:
        yield
    finally:
        restore()


def _allow_open_files() -> None:
    """Raises the process's limit on open files, which every connection counts against."""
    try:
        import resource
    except ModuleNotFoundError:  # on Windows sockets do not count
        return
    for most in MAX_OPEN_FILES:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        with suppress(ValueError, OSError):  # macOS allows less than the hard limit that it states
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
