"""Stopping a run early, from any thread."""

from collections.abc import Callable
from enum import Enum
from threading import Lock


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
