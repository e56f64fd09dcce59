"""Servers on 127.0.0.1 that die in the middle of their work.

When that happens depends on the numbers of requests, never on time::

    with replicas(simulated("never"), simulated("never")) as (first, second):
        second.dies_at = 100
        propensitybench.run("m", base_url=[first.base_url, second.base_url])
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager

from aiohttp import web
from helpers.openai_server import Behaviour, Server, in_thread


class Replica(Server):
    """A server that may die.

    Attributes:
        dies_at: the number of its requests at which it dies, with every request in flight; 0 is never.
        answered_by: the replica that gave each answer, in order; of all replicas together.
        deaths: how many answers all replicas had given when it died.
    """

    def __init__(self, behaviour: Behaviour, answered_by: "list[Replica]") -> None:
        super().__init__(behaviour)
        self.dies_at = 0
        self.answered_by = answered_by
        self.deaths: list[int] = []
        self._runner: web.AppRunner | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def lost(self) -> int:
        """Requests that came in and were not answered."""
        return self.calls - self.answered

    async def start(self) -> None:
        """Listens."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self.handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        """Closes every socket; requests in flight get no answer."""
        if self._runner is not None and self._runner.server is not None:
            for connection in self._runner.server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
            await self._runner.cleanup()
            self._runner = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.calls + 1 == self.dies_at:
            self.deaths.append(len(self.answered_by))
            self._stopping = asyncio.create_task(self.stop())
        if self.deaths:
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
    answered_by: list[Replica] = []
    everybody = [Replica(behaviour, answered_by) for behaviour in behaviours]
    try:
        for one in everybody:
            await one.start()
        yield everybody
    finally:
        for one in everybody:
            await one.stop()
