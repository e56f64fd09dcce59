"""Work with models that can be stopped: replies in flight have a few seconds to arrive."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from propensitybench.clients import Client
from propensitybench.engine.episodes import Stopped
from propensitybench.engine.stop import GRACE_S, StopSignal, stopped_by_cancelling


async def until_stopped(work: Coroutine[Any, Any, None], stop: StopSignal, clients: Sequence[Client]) -> None:
    """Waits for work until it is done or a stop was requested, then closes the clients.

    Cancelling requests a stop.

    Args:
        work: ends with `Stopped` once a stop was requested.
        stop: may be requested from any thread.
        clients: that the work uses; they send no requests after a stop.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def stop_requests() -> None:
        stopping.set()
        for client in clients:
            client.stop_requests()

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
        for client in clients:
            await client.close()
