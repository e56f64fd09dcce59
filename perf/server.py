"""A chat-completions server with little overhead, for benchmarks of the client side.

It does not parse request bodies. Every answer calls a tool that does not exist, which ends no level early, so
an episode runs to the last turn of its last level. `GET /count` returns the number of answers. The process
prints its port and ends when its standard input is closed.

    .venv/bin/python perf/server.py --latency 0.5
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from typing import Final

# More than any benchmark opens at once; the system caps it.
BACKLOG: Final = 8192
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\ncontent-length:"
# Occurs once in every assistant message, however the client formats its JSON; within a text the quotes
# would be escaped.
_ASSISTANT: Final = b'"assistant"'
_BODY: Final = (
    '{"id":"chatcmpl-%(turn)d","object":"chat.completion","created":1700000000,"model":"full-length",'
    '"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_%(turn)d",'
    '"type":"function","function":{"name":"look_around","arguments":"{\\"where\\": \\"everywhere\\"}"}}]},'
    '"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":%(tokens)d,"completion_tokens":20,'
    '"total_tokens":%(total)d}}'
)


def http(status: str, body: bytes) -> bytes:
    """An HTTP response."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Tally:
    """What all connections share: latency and counts."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.answered = 0
        self.waiting = 0
        self.received = 0

    def encoded(self) -> bytes:
        """The response to `GET /count`, with the server's clock and CPU time."""
        return json.dumps(
            {
                "time": time.monotonic(),
                "answered": self.answered,
                "waiting": self.waiting,
                "received": self.received,
                "cpu": time.process_time(),
            }
        ).encode()


class Connection(asyncio.Protocol):
    """A persistent connection; its requests arrive one after another."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._have = 0
        self._need = 0  # length of the incoming request; 0 until its head is complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, _error: Exception | None) -> None:
        """Drops answers that are still due."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Takes bytes until a request is whole."""
        self._parts.append(data)
        self._have += len(data)
        if not self._need:
            self._read_head()
        if not self._need or self._have < self._need:
            return
        whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        request, rest = whole[: self._need], whole[self._need :]
        self._parts, self._have, self._need = [], 0, 0
        self._answer(request)
        if rest:
            self.data_received(rest)

    def _read_head(self) -> None:
        whole = b"".join(self._parts)
        self._parts = [whole]
        end = whole.find(_END_OF_HEAD)
        if end < 0:
            return
        head = whole[:end].lower()
        at = head.find(_LENGTH)
        length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        self._need = end + len(_END_OF_HEAD) + length

    def _answer(self, request: bytes) -> None:
        assert self._transport is not None
        if request.startswith(b"GET /count"):
            self._transport.write(http("200 OK", self._tally.encoded()))
            return
        if not request.startswith(b"POST ") or b"/chat/completions" not in request[:200]:
            self._transport.write(http("404 Not Found", b'{"error":{"message":"no such page"}}'))
            return
        self._tally.waiting += 1
        self._tally.received += len(request)
        turn = request.count(_ASSISTANT)
        tokens = len(request) // 4
        body = _BODY % {"turn": turn, "tokens": tokens, "total": tokens + 20}
        answer = http("200 OK", body.encode())
        if self._tally.latency:
            asyncio.get_running_loop().call_later(self._tally.latency, self._send, answer)
        else:
            self._send(answer)

    def _send(self, answer: bytes) -> None:
        self._tally.waiting -= 1
        if self._transport is not None:
            self._tally.answered += 1
            self._transport.write(answer)


async def serve(latency: float) -> None:
    """Serves until standard input ends."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            ended.set()

    loop.add_reader(sys.stdin.fileno(), look)
    tally = Tally(latency)
    server = await loop.create_server(lambda: Connection(tally), "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()
    server.close()


def main() -> None:
    """Reads the command line and serves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds from a request to its answer")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(arguments.latency))


if __name__ == "__main__":
    main()
