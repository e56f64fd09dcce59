"""Stopping a run early, from any thread."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from threading import Lock
from typing import Any, Final

# How long to wait, after a request to stop, for replies in flight: they are paid for.
GRACE_S: Final = 5.0


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
