"""A scripted OpenAI-compatible chat-completions server on 127.0.0.1, as good or as bad as a test wants it.

What it answers is a *behaviour*: a function of the decoded request and of the number of the call, from 1::

    with serving(one_by_one(MAY_PASS["500"], says("done"))) as server:   # in a thread of its own
        call("run", "--base-url", server.base_url, ...)
    async with running(simulated("never")) as server:                   # on the test's own event loop
        client = OpenAIChatClient(Endpoint("m", "m", server.base_url))

It stops by itself when the block is left.
"""

import asyncio
import json
import re
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from helpers.scenario_data import built_in

from propensitybench.chat import Message, Reply, Request, ToolCall, ToolSpec
from propensitybench.digests import digest, seed_from
from propensitybench.engine.preflight import REPORT
from propensitybench.episode import system_message
from propensitybench.scenarios import TaskMetadata, task_metadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

S = TypeVar("S")
Json = Mapping[str, Any]
JSON_TYPE: Final = {"Content-Type": "application/json"}
LARGE: Final = 5 * 2**20
# More than a client in a test may wait for; a stalled call ends when the client goes or the server stops.
_FOR_EVER_S: Final = 3600.0


class Answer(NamedTuple):
    """What to do with a request.

    Attributes:
        body, status, headers: of the HTTP answer.
        way: ``whole``, or how it fails on the wire: ``reset`` (no answer, the connection is reset),
            ``truncated`` (less than announced, then closed), ``stall`` (no answer, nothing happens).
        after: seconds that pass before it.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = JSON_TYPE
    way: Literal["whole", "reset", "truncated", "stall"] = "whole"
    after: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether it is a chat completion with something in it."""
        if self.status != 200 or self.way != "whole":
            return False
        try:
            return bool(json.loads(self.body).get("choices"))
        except ValueError:
            return False


Behaviour = Callable[[Json, int], Answer]


class Server:
    """A running server.

    Attributes:
        base_url: to give to a client; without ``/chat/completions``.
        root: the same for a client of Anthropic's.
        calls: requests that came in.
        answered: those that were answered with a chat completion.
        bodies: what each request said, as it came.
        authorizations: the header of that name of each request; empty if there was none.
        most_at_once: requests in flight at the same time, at most, without those that found no slot.
        refused: requests that found no slot.
    """

    def __init__(self, behaviour: Behaviour, slots: int = 0, busy: Answer | None = None) -> None:
        self.base_url = self.root = ""
        self.calls = self.answered = self.most_at_once = self.refused = 0
        self.bodies: list[bytes] = []
        self.authorizations: list[str] = []
        self._behaviour = behaviour
        self._slots, self._busy = slots, busy
        self._in_flight = 0

    def requests(self) -> list[dict[str, Any]]:
        """The requests, decoded."""
        return [json.loads(body) for body in self.bodies]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        number = self.calls
        raw = await request.read()
        self.bodies.append(raw)
        self.authorizations.append(request.headers.get("Authorization", ""))
        if self._busy and self._in_flight == self._slots:
            self.refused += 1
            return await respond(request, self._busy)
        self._in_flight += 1
        self.most_at_once = max(self.most_at_once, self._in_flight)
        try:
            answer = self._behaviour(json.loads(raw), number)
            await asyncio.sleep(answer.after)
            self.answered += answer.is_good
            return await respond(request, answer)
        finally:
            self._in_flight -= 1


async def respond(request: web.Request, answer: Answer) -> web.StreamResponse:
    """Gives an answer, or fails on the wire as it says."""
    if answer.way == "whole":
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
    if answer.way == "stall":
        await asyncio.sleep(_FOR_EVER_S)
    assert request.transport is not None
    response = web.StreamResponse(headers={**answer.headers, "Content-Length": str(len(answer.body) + 99)})
    if answer.way == "reset":
        linger = struct.pack("ii", 1, 0)  # closing sends RST instead of FIN
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        request.transport.abort()
        return response
    await response.prepare(request)
    await response.write(answer.body)
    request.transport.close()
    return response


@asynccontextmanager
async def running(behaviour: Behaviour, slots: int = 0, busy: Answer | None = None) -> AsyncIterator[Server]:
    """A server on the running event loop; with ``busy``, that is what comes beyond so many at once."""
    server = Server(behaviour, slots, busy)
    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", server.handle)
    app.router.add_post("/v1/messages", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        server.root = f"http://127.0.0.1:{runner.addresses[0][1]}"
        server.base_url = f"{server.root}/v1"
        yield server
    finally:
        await runner.cleanup()


@contextmanager
def in_thread(server: AbstractAsyncContextManager[S]) -> Iterator[S]:
    """A server in a thread of its own, for tests that give their own thread to the program."""
    started: list[tuple[S, asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def serve() -> None:
        stop = asyncio.Event()
        async with server as one:
            started.append((one, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="server", daemon=True)
    thread.start()
    if not ready.wait(10):
        raise RuntimeError("the server did not start")
    ((one, loop, stop),) = started
    try:
        yield one
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def serving(
    behaviour: Behaviour, slots: int = 0, busy: Answer | None = None
) -> AbstractContextManager[Server]:
    """A server in a thread of its own; see `running` and `in_thread`."""
    return in_thread(running(behaviour, slots, busy))


def always(answer: Answer) -> Behaviour:
    """The same answer to every request."""
    return lambda _request, _number: answer


def one_by_one(*answers: Answer) -> Behaviour:
    """The answers in order, by the number of the call; the last one again and again."""
    return lambda _request, number: answers[min(number, len(answers)) - 1]


def completion(message: Json, finish: str | None = "stop", **fields: Any) -> Answer:
    """A chat completion with that message; ``fields`` are added to the whole, or replace what is there."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    return Answer(json.dumps({**body, **fields}).encode())


def says(text: str = "hello", **fields: Any) -> Answer:
    """A message; ``fields`` are added to it."""
    return completion({"content": text, **fields})


def a_call(name: str = "look", arguments: Any = '{"at":1}', call_id: str = "c1", **fields: Any) -> Json:
    """One tool call, as it stands in a message; ``fields`` are added to it."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **fields}


def calls(*made: Json, content: str | None = None, **fields: Any) -> Answer:
    """A message with tool calls (one good call, if none is given); ``fields`` are added to it."""
    message = {"content": content, "tool_calls": list(made or [a_call()]), **fields}
    return completion(message, "tool_calls")


def error(status: int, message: str = "went wrong", /, headers: Json | None = None, **fields: Any) -> Answer:
    """An HTTP error as OpenAI writes it; ``fields`` are added to the error object."""
    body = {"error": {"message": message, **fields}}
    return Answer(json.dumps(body).encode(), status, {**JSON_TYPE, **(headers or {})})


_LIMITED: Final = {"type": "requests", "code": "rate_limit_exceeded"}
_TEXT: Final = {"Content-Type": "text/html"}

MAY_PASS: Final[Mapping[str, Answer]] = {
    "429 seconds": error(429, headers={"Retry-After": "0.01"}, **_LIMITED),
    "429 date": error(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, **_LIMITED),
    "429 milliseconds": error(429, headers={"retry-after-ms": "10"}, **_LIMITED),
    "500": error(500, "The server had an error", type="server_error"),
    "502": Answer(b"<html><body><h1>502 Bad Gateway</h1></body></html>", 502, _TEXT),
    "503": error(503, "overloaded"),
    "reset": Answer(way="reset"),
    "truncated": says("half of it")._replace(way="truncated"),
    "wrong JSON": Answer(b'{"choices": [{"message": '),
    "no JSON": Answer(b"<html>Service temporarily unavailable</html>", 200, _TEXT),
    "empty body": Answer(b""),
    "error in 200": error(200, "upstream had an error", code=502),
}
"""Failures that are worth another try; a stall is one too, but takes the client's whole patience."""
STALL: Final = Answer(way="stall")

REFUSALS: Final[Mapping[str, Answer]] = {
    "finish content_filter": completion({"content": ""}, "content_filter"),
    "finish refusal": completion({"content": "I can not"}, "refusal"),
    "OpenAI": error(
        400, "Invalid prompt: your prompt was flagged as violating our usage policy.", code="invalid_prompt"
    ),
    "OpenAI code": error(400, "rejected by the safety system", code="content_policy_violation"),
    "Azure": error(
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        code="content_filter",
        innererror={"code": "ResponsibleAIPolicyViolation"},
    ),
    "router": error(
        403,
        "Your chosen model requires moderation and your input was flagged",
        code=403,
        metadata={"reasons": ["violence"], "flagged_input": "...", "provider_name": "p"},
    ),
}
"""Ways in which a provider says that it would not answer."""

STOPS_RUN: Final[Mapping[str, Answer]] = {
    "401": error(401, "Incorrect API key provided", code="invalid_api_key"),
    "403": error(403, "no access to this project"),
    "404": error(404, "The model `m` does not exist", code="model_not_found"),
    "400 model": error(400, "m is not a valid model ID: no such model"),
    "402": error(402, "Payment Required"),
    "429 quota": error(429, "You exceeded your current quota", code="insufficient_quota"),
}
"""The same for every request: a run has to stop."""

HUGE: Final = Answer(b'{"choices":[' + b" " * LARGE + b"]}")
NATIVE_CALL: Final = a_call(extra_content={"google": {"thought_signature": "c2ln"}})
PROVIDER_FIELDS: Final = calls(
    NATIVE_CALL, reasoning_content="let me see", reasoning_details=[{"type": "x", "data": "e30="}]
)


def faulty(behaviour: Behaviour, share: float, kinds: Sequence[Answer], seed: int) -> Behaviour:
    """A behaviour of which a share of the calls fails, in one of several ways.

    Whether a call fails depends on the seed, on the request and on how often it has come, not on the order
    in which requests of different conversations come. No request fails more than 3 times in a row, of
    however many conversations it is (at their beginning those of one scenario are the same).
    """
    seen: dict[str, tuple[int, int]] = {}

    def answer(request: Json, number: int) -> Answer:
        key = digest(json.dumps(request))
        times, in_a_row = seen.get(key, (0, 0))
        rng = Random(seed_from(seed, key, times))
        fails = in_a_row < 3 and rng.random() < share
        seen[key] = (times + 1, in_a_row + 1 if fails else 0)
        return rng.choice(kinds) if fails else behaviour(request, number)

    return answer


def simulated(profile: str, metadata: Mapping[str, TaskMetadata] | None = None) -> Behaviour:
    """Answers as a simulated agent would, from the request alone: it remembers nothing.

    A wire does not tell which task a request is of. The agent's metadata are those that ``metadata`` has for
    the system message (see `metadata_in`); else there are none but the misaligned tool, which the system
    message names, and a seed, which comes from the system message and the task message. So tasks of one
    scenario and naming share their agent's chance over all dimensions and epochs: use profiles that do not
    depend on the dimension (``never``, ``at-level-3``, ...).
    Endings are then those of the simulated client itself; its wording and number of turns are its own.

    The preflight gets a call of two tools, and after a tool's answer a message.
    """
    client = SimulatedClient(profile)

    def answer(body: Json, _number: int) -> Answer:
        request = request_of(body)
        if not request.tools or any(tool.name == REPORT for tool in request.tools):
            return _plain(request)
        system, task = (message.content for message in request.messages[:2])
        full = full_names(request.tools)
        context = (metadata or {}).get(system) or _unnamed(seed_from(system, task), system, full.values())
        known = [msgspec.structs.replace(tool, name=full[tool.name]) for tool in request.tools]
        reply = client.open_task(context).answer(Request(request.messages, tuple(known)))
        short = {name: wire for wire, name in full.items()}
        made = [msgspec.structs.replace(call, name=short[call.name]) for call in reply.tool_calls]
        return encoded(msgspec.structs.replace(reply, tool_calls=tuple(made)), body["model"])

    return answer


def full_names(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """The full name of each tool, by its name on the wire: as a model reads it in the description."""
    found = {tool.name: re.match(r"Full name: (\S+)\. ", tool.description) for tool in tools}
    return {name: match[1] if match else name for name, match in found.items()}


def _unnamed(seed: int, system: str, tools: Iterable[str]) -> TaskMetadata:
    (named,) = [name for name in tools if f"`{name}`" in system]
    aligned = next((name for name in tools if name in _aligned_of().get(named, ())), "")
    return TaskMetadata(
        "", "", "", "", "", None, "", "harmful", 1, seed, misaligned_tool=named, aligned_tool=aligned
    )


@cache
def _aligned_of() -> Mapping[str, set[str]]:
    """The aligned tools of the built-in scenarios, by the misaligned tool's name."""
    found: dict[str, set[str]] = {}
    for scenario in built_in().scenarios:
        for face in (scenario.misaligned.harmful, scenario.misaligned.benign):
            found.setdefault(face.name, set()).add(scenario.aligned.name)
    return found


def metadata_in(path: Path) -> dict[str, TaskMetadata]:
    """For each system message of a run file the metadata of the first task that begins with it."""
    found: dict[str, TaskMetadata] = {}
    seen = set()
    with RunFile.open(path) as run:
        for _, task in run.tasks():
            if (task.scenario, task.naming) not in seen:
                seen.add((task.scenario, task.naming))
                scenario = run.scenario(task.scenario)
                text = system_message(run.manifest.template, scenario, task.naming)
                found[text] = task_metadata(task, scenario, run.manifest.seed)
    return found


def _plain(request: Request) -> Answer:
    if not request.tools or request.messages[-1].role != "user" or len(request.messages) > 2:
        return says("Done.")
    made = [
        a_call(tool.name, json.dumps(dict.fromkeys(tool.parameters["required"], "amber")), f"c{number}")
        for number, tool in enumerate(request.tools[:2])
    ]
    return calls(*made)


def request_of(body: Json) -> Request:
    """The request that a body stands for."""
    messages = [
        Message(
            role=message["role"],
            content=message["content"] or "",
            tool_calls=tuple(
                ToolCall(call["id"], **call["function"]) for call in message.get("tool_calls", ())
            ),
            tool_call_id=message.get("tool_call_id", ""),
        )
        for message in body["messages"]
    ]
    functions = [tool["function"] for tool in body.get("tools", ())]
    tools = [ToolSpec(f["name"], f["description"], f["parameters"]) for f in functions]
    return Request(messages, tuple(tools))


def encoded(reply: Reply, model: str) -> Answer:
    """A reply as an endpoint writes it."""
    message: dict[str, Any] = {"content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [a_call(call.name, call.arguments, call.id) for call in reply.tool_calls]
    return completion(message, reply.stop.value, model=model)
