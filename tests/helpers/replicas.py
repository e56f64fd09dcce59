"""Servers on 127.0.0.1 that die in the middle of their work, and come back at the same address.

When that happens depends on the numbers of requests, never on time::

    with replicas(simulated("never"), simulated("never")) as (first, second):
        second.dies_at, second.returns_at = 100, 400
        propensitybench.run("m", base_url=[first.base_url, second.base_url])
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager

from aiohttp import web
from helpers.openai_server import Behaviour, Server, in_thread


class Replica(Server):
    """A server whose address stays, whether it is there or not.

    Attributes:
        dies_at: the number of its requests at which it dies, with every request in flight; 0 is never.
        returns_at: the number of requests to all replicas at which it comes back; 0 is never.
        answered_by: the replica that gave each answer, in order; of all replicas together.
        deaths, returns: how many answers all replicas had given when it died, and came back.
    """

    def __init__(
        self, behaviour: Behaviour, everybody: "list[Replica]", answered_by: "list[Replica]"
    ) -> None:
        super().__init__(behaviour)
        self.dies_at = self.returns_at = 0
        self.answered_by = answered_by
        self.deaths: list[int] = []
        self.returns: list[int] = []
        self._everybody = everybody
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._changes: list[asyncio.Task[None]] = []

    @property
    def lost(self) -> int:
        """Requests that came in and were not answered."""
        return self.calls - self.answered

    async def start(self) -> None:
        """Listens, at the same address as before."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self.handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}/v1"

    async def stop(self) -> None:
        """Closes every socket; requests in flight get no answer."""
        if self._runner is not None and self._runner.server is not None:
            for connection in self._runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
            await self._runner.cleanup()
            self._runner = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        calls = 1 + sum(one.calls for one in self._everybody)
        for one in self._everybody:
            if len(one.deaths) > len(one.returns) and 0 < one.returns_at <= calls:
                one.returns.append(len(self.answered_by))
                self._changes.append(asyncio.create_task(one.start()))
        if self.calls + 1 == self.dies_at:
            self.deaths.append(len(self.answered_by))
            self._changes.append(asyncio.create_task(self.stop()))
        if len(self.deaths) > len(self.returns):
            self.calls += 1
            await asyncio.Event().wait()  # until it is stopped
        response = await super().handle(request)
        self.answered_by.append(self)
        return response


def replicas(*behaviours: Behaviour) -> AbstractContextManager[Sequence[Replica]]:
    """A replica of each behaviour, in a thread of their own."""
    return in_thread(_running(behaviours))


@asynccontextmanager
async def _running(behaviours: Sequence[Behaviour]) -> AsyncIterator[Sequence[Replica]]:
    everybody: list[Replica] = []
    answered_by: list[Replica] = []
    everybody += [Replica(behaviour, everybody, answered_by) for behaviour in behaviours]
    try:
        for one in everybody:
            await one.start()
        yield everybody
    finally:
        for one in everybody:
            await one.stop()
