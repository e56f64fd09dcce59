"""Why a run stops before its end."""

from collections.abc import Callable
from enum import Enum
from threading import Lock


class StopCause(Enum):
    """What kind of reason a stop has; the command line turns it into an exit code."""

    INTERRUPTED = "interrupted"
    BUDGET = "budget"
    PROVIDER = "provider"
    BAD_INPUT = "bad input"


class StopSignal:
    """A request to stop: requests in flight may come back, no new ones are sent. Safe to use from any thread.

    Attributes:
        cause: of the first request to stop; None as long as there is none.
        reason: in one line for the user.
    """

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self.reason = ""
        self._callbacks: list[Callable[[], None]] = []
        self._lock = Lock()

    @property
    def stop_requested(self) -> bool:
        """Whether to stop."""
        return self.cause is not None

    def request_stop(self, cause: StopCause = StopCause.INTERRUPTED, reason: str = "interrupted") -> None:
        """Asks for the stop; only the first request counts."""
        with self._lock:
            if self.cause is not None:
                return
            self.cause, self.reason = cause, reason
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def on_stop_requested(self, callback: Callable[[], None]) -> None:
        """Calls back once, at the first request or now if there was one, in the thread that asks for it."""
        with self._lock:
            if self.cause is None:
                self._callbacks.append(callback)
                return
        callback()
