"""A queue of requests: `SendingLimits` on an event loop."""

import asyncio
from collections import deque
from contextlib import suppress
from math import isinf

from propensitybench.clients.failures import FailureKind
from propensitybench.clients.limits import RequestPermit, SendingLimits
from propensitybench.errors import RunStopped


class RequestQueue:
    """Admits requests as the limits allow, in order of arrival."""

    def __init__(self, limits: SendingLimits) -> None:
        self._limits = limits
        self._waiting: deque[tuple[int, asyncio.Future[RequestPermit]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._shut = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def is_shut(self) -> bool:
        """Whether no request is admitted any more."""
        return self._shut.is_set()

    def shut(self) -> None:
        """Admits no further requests; waiting ones raise `RunStopped`."""
        self._shut.set()
        while self._waiting:
            _, turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(RunStopped("requests have stopped"))

    async def pause(self, seconds: float) -> None:
        """Waits that long, or until the queue is shut."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._shut.wait(), seconds)

    async def enter(self, tokens: int) -> RequestPermit:
        """Waits for permission to send a request of that expected cost.

        Raises:
            RunStopped: the queue is shut.
        """
        if self._shut.is_set():
            raise RunStopped("requests have stopped")
        if not self._waiting:
            permit = self._limits.enter(self._loop.time(), tokens)
            if isinstance(permit, RequestPermit):
                return permit
        turn: asyncio.Future[RequestPermit] = self._loop.create_future()
        self._waiting.append((tokens, turn))
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._limits.failed(turn.result(), self._loop.time(), FailureKind.NETWORK)
            self._serve()
            raise

    def answered(self, permit: RequestPermit, used: int) -> None:
        """Returns a permit after an answer, and admits waiting requests; see `SendingLimits.answered`."""
        self._limits.answered(permit, used)
        if self._waiting:
            self._serve()

    def failed(self, permit: RequestPermit, kind: FailureKind, retry_after: float = 0.0) -> bool:
        """Returns a permit after a failure, and admits waiting requests; see `SendingLimits.failed`."""
        counts = self._limits.failed(permit, self._loop.time(), kind, retry_after)
        self._serve()
        return counts

    def _serve(self) -> None:
        """Admits waiting requests, as many as the limits allow by now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            tokens, turn = self._waiting[0]
            if turn.done():  # cancelled while it waited
                self._waiting.popleft()
                continue
            permit = self._limits.enter(self._loop.time(), tokens)
            if not isinstance(permit, RequestPermit):
                if not isinf(permit):
                    self._timer = self._loop.call_later(permit, self._serve)
                return
            self._waiting.popleft()
            turn.set_result(permit)
