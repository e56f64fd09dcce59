"""The requests to several replicas of a model: `Replicas` on an event loop."""

import asyncio
import warnings
from collections.abc import Iterable
from contextlib import suppress

from propensitybench.clients.failures import Failure
from propensitybench.clients.limits import Lease, Seat
from propensitybench.clients.replicas import Replica, Replicas
from propensitybench.clients.request_queue import CANCELLED, Back, Evicted, RequestQueue
from propensitybench.errors import RunStopped


class FleetQueue:
    """Admits requests to the replicas, each in order of arrival.

    Args:
        replicas: decides which request goes where.
        most: requests that are placed at a time, over all replicas.
    """

    def __init__(self, replicas: Replicas, most: int) -> None:
        self._replicas = replicas
        self._queues: dict[str, RequestQueue] = {}
        self._free = asyncio.Semaphore(most)
        self._shut = asyncio.Event()

    @property
    def is_shut(self) -> bool:
        """Whether no request is admitted any more."""
        return self._shut.is_set()

    def shut(self) -> None:
        """Admits no further requests; waiting ones raise `RunStopped`."""
        self._shut.set()
        for queue in self._queues.values():
            queue.shut()

    async def pause(self, seconds: float) -> None:
        """Waits that long, or until the queue is shut."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._shut.wait(), seconds)

    def serve(self) -> None:
        """Admits waiting requests, as many as the limits allow by now."""
        for queue in self._queues.values():
            queue.serve()

    def enlist(self, urls: Iterable[str]) -> None:
        """These are the replicas from now on; requests that wait for another one go elsewhere."""
        self._replicas.enlist(urls, asyncio.get_running_loop().time())
        for url, queue in self._queues.items():
            if not self._replicas[url].is_listed:
                queue.evict()

    async def enter(self, tokens: int, seat: Seat | None = None) -> Lease:
        """Waits for permission to send a request to the replica where its conversation then is.

        Raises:
            RunStopped: the queue is shut, or no replica is left.
        """
        assert seat is not None
        await self._free.acquire()
        try:
            while not self.is_shut:
                replica = self._replicas.place(seat, asyncio.get_running_loop().time())
                if replica is None:
                    raise RunStopped(f"no replica is left: {self._reasons()}", bad_input=True)
                try:
                    return await self._queue(replica).enter(tokens, seat)
                except Evicted:
                    self._replicas.unplace(seat)
                except BaseException:
                    self._replicas.unplace(seat)
                    raise
            raise RunStopped("requests have stopped")
        except BaseException:
            self._free.release()
            raise

    def leave(self, lease: Lease, failed: Failure | None = None, used: int = 0) -> Back:
        """Returns a lease; whether a request that has failed goes to another replica."""
        seat = lease.seat
        assert seat is not None
        replica = self._replicas[seat.url]
        lived, moves = replica.lives, False
        now = asyncio.get_running_loop().time()
        if failed is None:
            self._replicas.answered(seat, now, used)
        elif failed is CANCELLED:
            self._replicas.unplace(seat)
        else:
            moves = self._replicas.failed(seat, failed, lease.since, now)
        if replica.is_listed and lived != replica.lives:
            self._tell(replica, failed)
        if not replica.lives:
            self._queue(replica).evict()
        back = self._queue(replica).leave(lease, failed, used)
        self._free.release()
        return Back.MOVES if moves else back

    def _queue(self, replica: Replica) -> RequestQueue:
        if replica.url not in self._queues:
            self._queues[replica.url] = RequestQueue(replica.limits)
        return self._queues[replica.url]

    def _tell(self, replica: Replica, failed: Failure | None) -> None:
        if replica.lives:
            text = "answers again"
        elif replica.barred:
            text = f"is no longer asked: {replica.barred}"
        else:
            assert failed is not None
            others = any(one.lives for one in self._replicas.listed)
            then = "its tasks continue at other replicas" if others else "no replica answers"
            text = f"does not answer ({failed.kind.value}: {failed}); {then}"
        warnings.warn(f"{replica.url}: {text}", stacklevel=2)

    def _reasons(self) -> str:
        return "; ".join(f"{one.url}: {one.barred}" for one in self._replicas.listed)
