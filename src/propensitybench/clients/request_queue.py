"""A queue of requests: `Limits` on an event loop."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from math import isinf
from typing import Final

from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.clients.limits import Lease, Limits, Seat
from propensitybench.errors import RunStopped


class Back(Enum):
    """What follows from a failed attempt for its request."""

    COUNTS = "counts against the retries"
    SPARED = "does not count: it was throttled together with others"
    MOVES = "goes to another replica at once"


# The task that waited for the reply was cancelled.
CANCELLED: Final = Failure(FailureKind.NETWORK, "cancelled")


class Evicted(Exception):
    """The request has to wait somewhere else."""


class RequestQueue:
    """Admits requests as the limits allow, in order of arrival."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[tuple[int, Seat | None, asyncio.Future[Lease]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._shut = asyncio.Event()

    @property
    def is_shut(self) -> bool:
        """Whether no request is admitted any more."""
        return self._shut.is_set()

    def shut(self) -> None:
        """Admits no further requests; waiting ones raise `RunStopped`."""
        self._shut.set()
        self._dismiss(lambda: RunStopped("requests have stopped"))

    def evict(self) -> None:
        """Waiting requests raise `Evicted`."""
        self._dismiss(Evicted)

    def _dismiss(self, reason: Callable[[], Exception]) -> None:
        while self._waiting:
            *_, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(reason())

    async def pause(self, seconds: float) -> None:
        """Waits that long, or until the queue is shut."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._shut.wait(), seconds)

    async def enter(self, tokens: int, seat: Seat | None = None) -> Lease:
        """Waits for permission to send a request.

        Args:
            tokens: its expected cost.
            seat: of its conversation, which the lease then carries.

        Raises:
            RunStopped: the queue is shut.
            Evicted: see `evict`.
        """
        if self._shut.is_set():
            raise RunStopped("requests have stopped")
        loop = asyncio.get_running_loop()
        if not self._waiting:
            lease = self._limits.enter(loop.time(), tokens, seat)
            if isinstance(lease, Lease):
                return lease
        turn: asyncio.Future[Lease] = loop.create_future()
        self._waiting.append((tokens, seat, turn))
        self.serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._limits.leave(turn.result(), loop.time(), FailureKind.NETWORK)
            self.serve()
            raise

    def leave(self, lease: Lease, failed: Failure | None = None, used: int = 0) -> Back:
        """Returns a lease and admits waiting requests; see `Limits.leave`."""
        now = asyncio.get_running_loop().time()
        kind = failed.kind if failed else None
        wait = failed.retry_after or 0.0 if failed else 0.0
        counts = self._limits.leave(lease, now, kind, wait, used)
        self.serve()
        return Back.COUNTS if counts else Back.SPARED

    def serve(self) -> None:
        """Admits waiting requests, as many as the limits allow by now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting:
            tokens, seat, turn = self._waiting[0]
            if turn.done():  # cancelled while it waited
                self._waiting.popleft()
                continue
            lease = self._limits.enter(loop.time(), tokens, seat)
            if not isinstance(lease, Lease):
                if not isinf(lease):
                    self._timer = loop.call_later(lease, self.serve)
                return
            self._waiting.popleft()
            turn.set_result(lease)
