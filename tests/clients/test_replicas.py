"""A client of several addresses that serve the same model, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from helpers.http_client import CONTEXT, KEY, ONCE, REQUEST, Got, one
from helpers.openai_server import MAY_PASS, STOPS_RUN, Behaviour, Server, always, error, running, says

from propensitybench.chat import Reply
from propensitybench.clients.breaker import FAILURES_TO_STOP
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import ModelError, RunStopped

# Nothing listens there.
NOWHERE = "http://127.0.0.1:9/v1"


def client_at(urls: Sequence[str], transport: RequestLimits = ONCE) -> OpenAIChatClient:
    first, *others = [Endpoint("prov/m", "m", url, (KEY,)) for url in urls]
    return OpenAIChatClient(first, ModelOptions(), transport, others=others)


@asynccontextmanager
async def serving(*behaviours: Behaviour) -> AsyncIterator[list[Server]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(behaviour)) for behaviour in behaviours]


async def ask(urls: Sequence[str], times: int, transport: RequestLimits = ONCE) -> list[Got]:
    """What came of new conversations' first requests, sent together."""
    client = client_at(urls, transport)
    try:
        return await asyncio.gather(*(one(client) for _ in range(times)))
    finally:
        await client.close()


def test_conversations_are_dealt_out_and_stay_where_they_are() -> None:
    async def work() -> None:
        async with serving(always(says()), always(says()), always(says())) as servers:
            client = client_at([server.base_url for server in servers])
            conversations = [client.open(CONTEXT) for _ in range(6)]
            for _ in range(5):
                await asyncio.gather(*(conversation.reply(REQUEST) for conversation in conversations))
            await client.close()
            assert [server.calls for server in servers] == [10, 10, 10]

    asyncio.run(work())


def test_all_addresses_together_stay_within_the_concurrency() -> None:
    async def work() -> None:
        slow = always(says()._replace(after=0.01))
        async with serving(slow, slow) as servers:
            await ask([server.base_url for server in servers], 60, RequestLimits(concurrency=5))
            assert sum(server.most_at_once for server in servers) <= 6
            assert [server.calls for server in servers] == [30, 30]

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["500", "503", "reset", "no JSON"])
def test_without_any_retries_nothing_fails_that_another_address_can_answer(kind: str) -> None:
    async def work() -> None:
        async with serving(always(MAY_PASS[kind]), always(says())) as (bad, good):
            got = await ask([bad.base_url, NOWHERE, good.base_url], 30)
            assert {type(one) for one in got} == {Reply}
            assert (bad.calls, good.calls) == (10, 30)

    asyncio.run(work())


def test_a_conversation_that_has_moved_stays_there() -> None:
    async def work() -> None:
        async with serving(always(MAY_PASS["500"]), always(says())) as (bad, good):
            client = client_at([bad.base_url, good.base_url])
            conversation = client.open(CONTEXT)
            attempts = [(await conversation.reply(REQUEST)).attempts for _ in range(3)]
            await client.close()
            assert (attempts, bad.calls) == ([2, 1, 1], 1)

    asyncio.run(work())


def test_a_request_that_fails_everywhere_is_given_up_after_its_retries() -> None:
    async def work() -> None:
        async with serving(*[always(MAY_PASS["reset"])] * 2) as servers:
            (got,) = await ask([server.base_url for server in servers], 1, RequestLimits(max_retries=1))
            assert isinstance(got, ModelError)
            assert str(got).startswith("network after 4 attempts: ")
            assert [server.calls for server in servers] == [2, 2]

    asyncio.run(work())


def test_when_no_address_answers_the_run_stops() -> None:
    got = asyncio.run(ask([NOWHERE, NOWHERE.replace(":9/", ":10/")], FAILURES_TO_STOP + 5))
    stop = next(one for one in got if isinstance(one, RunStopped))
    assert f"{FAILURES_TO_STOP} tasks failed in a row, the last with network after 2 attempts" in str(stop)


@pytest.mark.parametrize("kind", STOPS_RUN)
def test_an_address_that_refuses_every_request_stops_the_run_and_is_named(kind: str) -> None:
    async def work() -> None:
        async with serving(always(says()), always(STOPS_RUN[kind])) as (right, wrong):
            first, second = await ask([right.base_url, wrong.base_url], 2)
            assert isinstance(first, Reply)
            assert isinstance(second, RunStopped)
            assert str(second).startswith(f"prov/m at {wrong.base_url}: ")

    asyncio.run(work())


def test_a_key_that_an_address_repeats_is_in_no_error() -> None:
    async def work() -> None:
        async with serving(always(says()), always(error(400, f"the key is {KEY}"))) as servers:
            _, got = await ask([server.base_url for server in servers], 2)
            assert str(got) == "request refused after 1 attempt: HTTP 400: the key is [key]"

    asyncio.run(work())
