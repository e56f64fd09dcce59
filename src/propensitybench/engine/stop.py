"""Why a run stops before its end."""

from collections.abc import Callable
from enum import Enum


class Cause(Enum):
    """What kind of reason a stop has; the command line turns it into an exit code."""

    INTERRUPTED = "interrupted"
    BUDGET = "budget"
    PROVIDER = "provider"
    BAD_INPUT = "bad input"


class Stop:
    """A wish to stop. What is in flight may come back; nothing new is asked.

    Attributes:
        cause: of the first wish; None as long as there is none.
        reason: in one line for the user.
    """

    def __init__(self) -> None:
        self.cause: Cause | None = None
        self.reason = ""
        self._heard: list[Callable[[], None]] = []

    @property
    def wished(self) -> bool:
        """Whether to stop."""
        return self.cause is not None

    def wish(self, cause: Cause = Cause.INTERRUPTED, reason: str = "interrupted") -> None:
        """Asks for the stop; only the first wish counts."""
        if self.cause is None:
            self.cause, self.reason = cause, reason
            for heard in self._heard:
                heard()

    def on_wish(self, heard: Callable[[], None]) -> None:
        """Calls back at the first wish."""
        self._heard.append(heard)
