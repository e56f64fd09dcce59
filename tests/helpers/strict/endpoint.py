"""A server on 127.0.0.1 that refuses what a provider refuses.

What it answers is a *behaviour*, as of `helpers.openai_server`: a function of the decoded request and of the
number of the call, from 1::

    groq = strict("groq", simulated("never"))
    with serving(groq) as server:
        call("run", "--base-url", server.base_url, ...)
    assert groq.refused == []

For Anthropic a client gets `Server.root` as its base URL; the behaviour sees chat completions all the same.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Final

from aiohttp import web
from helpers.openai_server import JSON_TYPE, Answer, Behaviour, in_thread, respond
from helpers.strict.anthropic_wire import as_chat, as_events, as_message
from helpers.strict.common import NO_HEADERS, Json, Violation, in_full
from helpers.strict.deepseek import ignored
from helpers.strict.groq import tool_use_failed
from helpers.strict.providers import PROVIDERS

EVENTS: Final[Mapping[str, str]] = {"Content-Type": "text/event-stream"}


def answer_of(violation: Violation) -> Answer:
    """The HTTP answer that refuses a request."""
    return Answer(json.dumps(violation.body).encode(), violation.status)


class Strict:
    """A behaviour that refuses what a provider refuses, and dresses replies as this provider does.

    Attributes:
        refused: each refusal, as ``rule: message``.
        failed: each reply that Groq replaced by an error, because the model's call did not fit its schema.
        unread: fields that the provider accepts and does not read; only DeepSeek has them.
    """

    def __init__(self, provider: str, behaviour: Behaviour) -> None:
        self.refused: list[str] = []
        self.failed: list[str] = []
        self.unread: set[str] = set()
        self._name = provider
        self._provider = PROVIDERS[provider]
        self._behaviour = behaviour

    def __call__(self, request: Json, number: int) -> Answer:
        return self.answer(request, number, NO_HEADERS)

    def answer(self, request: Json, number: int, headers: Mapping[str, str]) -> Answer:
        """The answer to a request that came with those headers."""
        violations = self._provider.violations(request, headers)
        if violations:
            self.refused += [f"{violation.rule}: {violation.message}" for violation in violations]
            return answer_of(violations[0])
        if self._name.startswith("deepseek"):
            self.unread.update(ignored(request))
        seen = as_chat(request) if self._name == "anthropic" else request
        given = self._behaviour(in_full(seen), number)
        answer = Answer(given.body, given.status, given.headers, given.way, given.after)
        completion = _completion_of(answer)
        return answer if completion is None else self._dressed(answer, completion, request)

    def _dressed(self, answer: Answer, completion: dict[str, Any], request: Json) -> Answer:
        if self._name == "groq" and (failure := tool_use_failed(completion, request)):
            self.failed.append(f"{failure.rule}: {failure.message}")
            return answer_of(failure)
        if self._name == "anthropic":
            message = as_message(completion, request)
            if request.get("stream"):
                return answer._replace(body=as_events(message), headers=EVENTS)
            return answer._replace(body=json.dumps(message).encode())
        self._provider.dress(completion, request)
        return answer._replace(body=json.dumps(completion).encode())


def _completion_of(answer: Answer) -> dict[str, Any] | None:
    if not answer.is_good:
        return None
    try:
        found = json.loads(answer.body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("choices") else None


def strict(provider: str, behaviour: Behaviour) -> Strict:
    """A behaviour behind a provider's rules; the names are those of `PROVIDERS`."""
    return Strict(provider, behaviour)


class Slots:
    """A behaviour with a number of slots, and with a queue before them; what comes beyond is refused.

    Attributes:
        refused: how many requests found no place.
        most_at_once: requests in slots at the same time, at most.
    """

    def __init__(self, number: int, behaviour: Behaviour, queue: int = 0, status: int = 503) -> None:
        self.refused = self.most_at_once = 0
        self.behaviour = behaviour
        self._places = number + queue
        self._number = number
        self._status = status
        self._taken = self._running = 0
        self._free: asyncio.Semaphore | None = None

    def __call__(self, request: Json, number: int) -> Answer:
        return self.behaviour(request, number)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[Answer | None]:
        """A slot, once one is free, or the refusal."""
        if self._taken >= self._places:
            self.refused += 1
            yield self._refusal()
            return
        self._free = self._free or asyncio.Semaphore(self._number)
        self._taken += 1
        try:
            async with self._free:
                self._running += 1
                self.most_at_once = max(self.most_at_once, self._running)
                try:
                    yield None
                finally:
                    self._running -= 1
        finally:
            self._taken -= 1

    def _refusal(self) -> Answer:
        # 503: as llama.cpp's server; 429: as gateways before vLLM (general knowledge)
        text, kind, headers = "no slot available", "unavailable_error", dict(JSON_TYPE)
        if self._status == 429:
            text, kind = "Too many concurrent requests", "rate_limit_error"
            headers["Retry-After"] = "0"
        error = {"code": self._status, "message": text, "type": kind}
        return Answer(json.dumps({"error": error}).encode(), self._status, headers)


def slots(number: int, behaviour: Behaviour, queue: int = 0, status: int = 503) -> Slots:
    """That many requests at once, ``queue`` more that wait, and ``status`` (503 or 429) for the others."""
    return Slots(number, behaviour, queue, status)


class Server:
    """A running server.

    Attributes:
        root: its address; for an Anthropic client.
        base_url: to give to a client of chat completions.
        calls: requests that came in.
        answered: those that were answered with a reply.
        bodies, headers: of each request, as they came.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.root = self.base_url = ""
        self.calls = self.answered = 0
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._behaviour = behaviour

    def requests(self) -> list[dict[str, Any]]:
        """The requests, decoded."""
        return [json.loads(body) for body in self.bodies]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self.calls += 1
        number, raw, headers = self.calls, await request.read(), dict(request.headers)
        self.bodies.append(raw)
        self.headers.append(headers)
        behaviour = self._behaviour
        if not isinstance(behaviour, Slots):
            return await self._answer(request, behaviour, number)
        async with behaviour.place() as refusal:
            if refusal is not None:
                return await respond(request, refusal)
            return await self._answer(request, behaviour.behaviour, number)

    async def _answer(self, request: web.Request, behaviour: Behaviour, number: int) -> web.StreamResponse:
        body, headers = json.loads(await request.read()), dict(request.headers)
        answer: Answer
        if isinstance(behaviour, Strict):
            answer = behaviour.answer(body, number, headers)
        else:
            answer = behaviour(body, number)
        await asyncio.sleep(answer.after)
        self.answered += answer.way == "whole" and answer.status == 200
        return await respond(request, answer)


async def _count_tokens(_request: web.Request) -> web.StreamResponse:
    # Inspect AI asks it before a request that it wants to think about
    return web.json_response({"input_tokens": 100})


@asynccontextmanager
async def running(behaviour: Behaviour) -> AsyncIterator[Server]:
    """A server on the running event loop."""
    server = Server(behaviour)
    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", server.handle)
    app.router.add_post("/v1/messages", server.handle)
    app.router.add_post("/v1/messages/count_tokens", _count_tokens)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.05, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        server.root = f"http://127.0.0.1:{runner.addresses[0][1]}"
        server.base_url = f"{server.root}/v1"
        yield server
    finally:
        await runner.cleanup()


def serving(behaviour: Behaviour) -> AbstractContextManager[Server]:
    """A server in a thread of its own, for tests that give their own thread to the program."""
    return in_thread(running(behaviour))
