"""Requests of the HTTP client to a server of a test."""

import asyncio
from collections.abc import Sequence

from helpers.openai_server import (
    Answer,
    Behaviour,
    always,
    running,
)
from helpers.play import play

from propensitybench.chat import ConversationContext, Message, Reply, Request, ToolSpec
from propensitybench.clients import Client
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import PropensityBenchError

LABELS = play().metadata
CONTEXT = ConversationContext("a task", 0)
TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "integer"}}}),)
REQUEST = Request([Message("system", "be good"), Message("user", "go on")], TOOLS)
KEY = "sk-sentinel-4d1f0c"
ONCE = RequestLimits(timeout=20, max_retries=0)
Got = Reply | PropensityBenchError


def client_at(url: str, transport: RequestLimits = ONCE, keys: Sequence[str] = (KEY,)) -> OpenAIChatClient:
    """A client of the model ``m``."""
    return OpenAIChatClient(Endpoint("prov/m", "m", url, tuple(keys)), ModelOptions(), transport)


async def one(client: Client, request: Request = REQUEST) -> Got:
    """A reply to a conversation's first request, or why there is none."""
    try:
        return await client.open(CONTEXT).reply(request)
    except PropensityBenchError as error:
        return error


async def asked(
    behaviour: Behaviour, transport: RequestLimits = ONCE, times: int = 1, keys: Sequence[str] = (KEY,)
) -> tuple[list[Got], int]:
    """What came of requests made one after another, and the number of calls that it took."""
    async with running(behaviour) as server:
        client = client_at(server.base_url, transport, keys)
        try:
            return [await one(client) for _ in range(times)], server.calls
        finally:
            await client.close()


def ask(behaviour: Behaviour, transport: RequestLimits = ONCE) -> Got:
    """What came of one request."""
    ((got,), _) = asyncio.run(asked(behaviour, transport))
    return got


def reply_to(answer: Answer) -> Reply:
    """The reply that an answer is read as."""
    got = ask(always(answer))
    assert isinstance(got, Reply), got
    return got
