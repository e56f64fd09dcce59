"""Stopping a run early, from any thread."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from enum import Enum
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

# How long to wait, after a request to stop, for replies in flight: they are paid for.
GRACE_S: Final = 5.0

T = TypeVar("T")


class Stopped(Exception):
    """The run is being stopped; the episode stays where its journal ends."""


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
        error: the exception behind it, if it is one of the user's own code.
    """

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self.reason = ""
        self.error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    @property
    def stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self.cause is not None

    def request_stop(
        self,
        cause: StopCause = StopCause.INTERRUPTED,
        reason: str = "interrupted",
        error: BaseException | None = None,
    ) -> None:
        """Requests a stop. Only the first request counts."""
        with self._lock:
            if self.cause is not None:
                return
            self.cause, self.reason, self.error = cause, reason, error
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


class Stoppable(Protocol):
    """What work needs: a client, or the workers of a cluster."""

    def stop_requests(self) -> None:
        """Sends no further requests."""
        ...

    async def close(self) -> None:
        """Ends the connections."""
        ...


async def until_stopped(
    work: Coroutine[Any, Any, None], stop: StopSignal, needed: Sequence[Stoppable]
) -> None:
    """Waits until work is done, at most a few seconds after a request to stop, and closes what it needed.

    Cancelling requests a stop.

    Args:
        work: may end with `Stopped` once a stop was requested.
        stop: may be requested from any thread.
        needed: sends no requests after a stop.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def stop_requests() -> None:
        stopping.set()
        for one in needed:
            one.stop_requests()

    def in_loop() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(stop_requests)

    async def wait() -> None:
        working = asyncio.create_task(work)
        requested = asyncio.create_task(stopping.wait())
        try:
            watched: set[asyncio.Future[Any]] = {working, requested}
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await asyncio.wait({working}, timeout=GRACE_S)
            if working.done():
                with suppress(Stopped):
                    working.result()
        finally:
            requested.cancel()
            working.cancel()
            await asyncio.gather(working, requested, return_exceptions=True)

    stop.on_stop_requested(in_loop)
    try:
        await stopped_by_cancelling(wait(), stop)
    finally:
        for one in needed:
            await one.close()


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
