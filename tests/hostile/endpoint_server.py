"""A raw HTTP/1.1 server for hostile answers: strict about requests, and free to send any bytes.

Ordinary answers come from a simulated agent, so that tasks whose hostile answers are over can finish.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from helpers.openai_server import Answer, Behaviour, Json

PATH: Final = "/v1/chat/completions"
# Of an answer that drips: short enough for many pieces within a client's timeout.
PAUSE_S: Final = 0.05


class Asked(NamedTuple):
    """A request: its number from 1, the key in its header, and its decoded body."""

    number: int
    key: str
    body: Json


class Script(NamedTuple):
    """The bytes of an answer.

    Attributes:
        parts: sent one after another.
        drip: whether to pause between the parts.
        endless: whether to send the last part until the client goes.
        end: ``keep`` the connection, ``close`` it, or ``reset`` it.
    """

    parts: Sequence[bytes]
    drip: bool = False
    endless: bool = False
    end: str = "close"


Hostile = Callable[[Asked], Script | None]


def http(answer: Answer) -> Script:
    """An ordinary answer as bytes."""
    headers = {**answer.headers, "Content-Length": str(len(answer.body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return Script([f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode() + answer.body], end="keep")


class RawServer:
    """A running server.

    Attributes:
        base_url: for a client.
        hostile: gives the script for a request, or None for an ordinary answer; may be replaced.
        calls: requests so far; may be set to 0.
        complaints: what was wrong with requests.
    """

    def __init__(self, hostile: Hostile, ordinary: Behaviour) -> None:
        self.base_url = ""
        self.hostile = hostile
        self.ordinary = ordinary
        self.calls = 0
        self.complaints: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection."""
        end = "keep"
        while end == "keep":
            asked = await self._request(reader)
            script = self.hostile(asked) or http(self.ordinary(asked.body, asked.number))
            await _send(writer, script)
            end = script.end

    async def _request(self, reader: asyncio.StreamReader) -> Asked:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if first != f"POST {PATH} HTTP/1.1":
            self.complaints.append(first)
        body: Any = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.calls += 1
        return Asked(self.calls, headers.get("authorization", "").removeprefix("Bearer "), body)


async def _send(writer: asyncio.StreamWriter, script: Script) -> None:
    for part in script.parts:
        writer.write(part)
        await writer.drain()
        if script.drip:
            await asyncio.sleep(PAUSE_S)
    while script.endless and not writer.is_closing():
        writer.write(script.parts[-1])
        await writer.drain()
        await asyncio.sleep(PAUSE_S if script.drip else 0)
    if script.end == "reset":
        linger = struct.pack("ii", 1, 0)  # closing sends RST instead of FIN
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[int]:
    """Serves connections on 127.0.0.1, and closes what is left of them; gives the port."""
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server stops
        finally:
            writer.close()
            connections.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


@asynccontextmanager
async def running(hostile: Hostile, ordinary: Behaviour) -> AsyncIterator[RawServer]:
    """A hostile server on the running event loop."""
    raw = RawServer(hostile, ordinary)
    async with listening(raw.serve) as port:
        raw.base_url = f"http://127.0.0.1:{port}/v1"
        yield raw
