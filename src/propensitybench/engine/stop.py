"""Stopping a run early, from any thread."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import Enum
from threading import Lock
from typing import Any, Final, TypeVar

# How long to wait, after a request to stop, for replies in flight: they are paid for.
GRACE_S: Final = 5.0

T = TypeVar("T")


class StopCause(Enum):
    """The kind of reason for a stop; the command line maps it to an exit code."""

    INTERRUPTED = "interrupted"
    BUDGET = "budget"
    PROVIDER = "provider"
    BAD_INPUT = "bad input"


class StopSignal:
    """Tells a run to stop: replies in flight may arrive, no new requests are sent. Thread-safe.

    Attributes:
        cause: the cause of the first request to stop; None before it.
        reason: the reason in one line, for the user.
    """

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self.reason = ""
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    @property
    def stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self.cause is not None

    def request_stop(self, cause: StopCause = StopCause.INTERRUPTED, reason: str = "interrupted") -> None:
        """Requests a stop. Only the first request counts."""
        with self._lock:
            if self.cause is not None:
                return
            self.cause, self.reason = cause, reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def on_stop_requested(self, callback: Callable[[], None]) -> None:
        """Calls back once, in the requesting thread; at once if a stop was requested already."""
        with self._lock:
            if self.cause is None:
                self._callbacks.append(callback)
                return
        callback()


def in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Schedules a callback in a loop from any thread; does nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


async def stopped_by_cancelling(work: Coroutine[Any, Any, T], stop: StopSignal) -> T:
    """Waits for work that ends by itself soon after a request to stop.

    Cancelling requests a stop, waits for the end, and then raises `CancelledError`. If a stop was requested
    before, cancelling ends the work at once.
    """
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        if stop.stop_requested:
            working.cancel()
        stop.request_stop()
        await working
        raise
