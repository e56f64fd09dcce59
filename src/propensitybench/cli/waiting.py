"""Waiting for asynchronous work that a signal may interrupt."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

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
