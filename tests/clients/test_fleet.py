"""A client of several replicas, over real sockets."""

import asyncio
import re
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.http_client import CONTEXT, KEY, REQUEST, Got, one
from helpers.openai_server import (
    MAY_PASS,
    STALL,
    STOPS_RUN,
    Behaviour,
    Server,
    always,
    error,
    one_by_one,
    running,
    says,
)

from propensitybench.chat import Reply
from propensitybench.clients import Adaptable, Paced, Stoppable
from propensitybench.clients.breaker import FAILURES_TO_STOP
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.fleet import FleetClient
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.replicas import DEAD_AFTER
from propensitybench.engine.endpoints import Endpoints
from propensitybench.errors import ModelError, RunStopped

ONCE = Transport(timeout=20, max_retries=0)
# Nothing listens there.
NOWHERE = "http://127.0.0.1:9/v1"


def endpoint(url: str) -> Endpoint:
    return Endpoint("prov/m", "m", url, (KEY,), "THE_KEY")


def client_at(
    urls: Sequence[str], transport: Transport = ONCE, look: Callable[[], Sequence[str]] | None = None
) -> FleetClient:
    client = FleetClient(endpoint, urls, ModelOptions(), transport, look)
    client.look_every = 0.01
    return client


@asynccontextmanager
async def serving(*behaviours: Behaviour) -> AsyncIterator[list[Server]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(behaviour)) for behaviour in behaviours]


async def ask(client: FleetClient, times: int) -> list[Got]:
    """What came of new conversations' first requests, sent together."""
    try:
        return await asyncio.gather(*(one(client) for _ in range(times)))
    finally:
        await client.close()


def replies(got: Sequence[Got]) -> int:
    return sum(isinstance(reply, Reply) for reply in got)


def told(work: Callable[[], Any]) -> list[str]:
    """The warnings of a piece of work."""
    with warnings.catch_warnings(record=True, action="always") as found:
        work()
    return [str(one.message) for one in found]


def test_it_can_be_stopped_adapted_and_paced_like_a_client_of_one_endpoint() -> None:
    for client in (client_at([NOWHERE]), OpenAIChatClient(endpoint(NOWHERE))):
        assert isinstance(client, Stoppable)
        assert isinstance(client, Adaptable)
        assert isinstance(client, Paced)


def test_all_replicas_together_stay_within_the_concurrency() -> None:
    async def work() -> None:
        slow = says()._replace(after=0.01)
        async with serving(always(slow), always(slow)) as servers:
            client = client_at([server.base_url for server in servers], Transport(concurrency=5))
            assert replies(await ask(client, 60)) == 60
            assert 5 <= sum(server.most_at_once for server in servers) <= 6
            assert sorted(server.calls for server in servers)[0] >= 20

    asyncio.run(work())


def test_a_conversation_stays_at_its_replica() -> None:
    async def work() -> None:
        async with serving(always(says()), always(says()), always(says())) as servers:
            client = client_at([server.base_url for server in servers])
            conversations = [client.open(CONTEXT) for _ in range(6)]
            for _ in range(5):
                await asyncio.gather(*(conversation.reply(REQUEST) for conversation in conversations))
            await client.close()
            assert [server.calls for server in servers] == [10, 10, 10]

    asyncio.run(work())


def test_without_any_retries_nothing_fails_that_a_living_replica_can_answer() -> None:
    async def work() -> None:
        async with serving(always(says())) as (server,):
            client = client_at([NOWHERE, server.base_url])
            assert replies(await ask(client, 30)) == server.calls == 30

    (note,) = told(lambda: asyncio.run(work()))
    assert note.startswith(f"{NOWHERE}: does not answer (network: Cannot connect to host")
    assert note.endswith("; its tasks continue at other replicas")


def test_a_request_that_no_replica_survives_is_given_up_after_its_retries() -> None:
    async def work() -> None:
        async with serving(*[always(MAY_PASS["reset"])] * 2) as servers:
            client = client_at([server.base_url for server in servers])
            (got,) = await ask(client, 1)
            assert isinstance(got, ModelError)
            assert str(got).startswith("network after ")
            assert 2 <= sum(server.calls for server in servers) <= 2 * DEAD_AFTER

    told(lambda: asyncio.run(work()))


def test_when_no_replica_answers_the_run_stops_and_they_are_named() -> None:
    elsewhere = NOWHERE.replace(":9/", ":10/")

    async def work() -> None:
        got = await ask(client_at([NOWHERE, elsewhere]), FAILURES_TO_STOP + 5)
        stop = next(one for one in got if isinstance(one, RunStopped))
        assert re.match(rf"prov/m at {NOWHERE}, {elsewhere}: 2\d tasks failed in a row, ", str(stop))

    notes = told(lambda: asyncio.run(work()))
    assert sorted(note.partition(": ")[0] for note in notes) == sorted((NOWHERE, elsewhere))
    assert notes[-1].endswith("; no replica answers")


@pytest.mark.parametrize("kind", STOPS_RUN)
def test_a_replica_that_can_answer_nothing_is_left_out_and_the_last_one_stops_the_run(kind: str) -> None:
    async def work() -> None:
        later_too = one_by_one(*[says()] * 20, STOPS_RUN[kind])
        async with serving(always(STOPS_RUN[kind]), later_too) as (wrong, right):
            client = client_at([wrong.base_url, right.base_url])
            for _ in range(20):
                assert isinstance(await one(client), Reply)
            assert (wrong.calls, right.calls) == (1, 20)
            stop = await one(client)
            await client.close()
            assert isinstance(stop, RunStopped)
            assert str(stop).startswith(f"prov/m at {wrong.base_url}, {right.base_url}: ")
            names.append(wrong.base_url)

    names: list[str] = []
    notes = told(lambda: asyncio.run(work()))
    assert notes[0].startswith(f"{names[0]}: is no longer asked: ")


def test_a_rate_limit_of_one_replica_slows_only_that_one() -> None:
    async def work() -> None:
        limited = one_by_one(error(429, headers={"Retry-After": "600"}), says())
        async with serving(limited, always(says())) as (busy, free):
            client = client_at([busy.base_url, free.base_url], Transport(concurrency=8))
            first = asyncio.create_task(one(client))
            await asyncio.sleep(0)
            while not client.throttled:
                assert isinstance(await one(client), Reply)
            for _ in range(20):
                assert isinstance(await one(client), Reply)
            assert busy.calls == client.throttled == 1
            client.stop_requests()
            assert isinstance(await first, RunStopped)
            await client.close()

    assert told(lambda: asyncio.run(work())) == []


def test_an_address_that_asks_to_wait_for_hours_is_left_and_does_not_stop_the_run() -> None:
    async def work() -> None:
        limited = always(error(429, headers={"Retry-After": "7200"}))
        async with serving(limited, always(says())) as (busy, free):
            assert replies(await ask(client_at([busy.base_url, free.base_url]), 10)) == free.calls == 10

    (note,) = told(lambda: asyncio.run(work()))
    assert "rate limit" in note


def test_a_key_that_a_replica_repeats_is_in_no_error() -> None:
    async def work() -> None:
        async with serving(always(says()), always(error(400, f"the key is {KEY}"))) as servers:
            got = await ask(client_at([server.base_url for server in servers]), 2)
            assert sorted(map(str, (one for one in got if not isinstance(one, Reply)))) == [
                "request refused after 1 attempt: HTTP 400: the key is [key]"
            ]

    asyncio.run(work())


def test_replicas_join_and_leave_as_the_file_says_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "hosts"

    async def until(client: FleetClient, happened: Callable[[], bool]) -> None:
        for _ in range(5000):
            if happened():
                return
            assert isinstance(await one(client), Reply)
        raise AssertionError

    async def work() -> None:
        async with serving(always(says()), always(says())) as (first, second):
            file.write_text(f"{first.base_url}  # the first\n")
            endpoints = Endpoints(file=file)
            client = client_at(endpoints.read(), look=endpoints.read)
            stays = client.open(CONTEXT)
            await stays.reply(REQUEST)
            file.write_text(f"{first.base_url}\n\n# new\n{second.base_url}/\n")
            await until(client, lambda: second.calls > 0)
            file.write_text("")
            await until(client, lambda: len(notes) == 1)
            before = first.calls + second.calls
            await until(client, lambda: first.calls + second.calls > before + 200)
            file.write_text(f"{second.base_url}/\n")
            # Two living replicas take turns, so that neither is passed over fifty times.
            calls = -1
            while calls != first.calls:
                calls = first.calls
                assert replies([await one(client) for _ in range(50)]) == 50
            assert isinstance(await stays.reply(REQUEST), Reply)
            assert first.calls == calls
            await client.close()

    notes: list[Any]
    with warnings.catch_warnings(record=True, action="always") as notes:
        asyncio.run(work())
    (note,) = notes
    assert str(note.message).endswith(
        "hosts: holds no address; write one base URL on each line; the replicas stay as they were"
    )


def test_requests_that_wait_for_a_replica_go_elsewhere_when_it_is_left_out() -> None:
    async def work() -> None:
        async with serving(always(STOPS_RUN["401"]), always(says())) as (wrong, right):
            # Two are sent at once, one to each; the other two wait for half a second.
            client = client_at([wrong.base_url, right.base_url], Transport(rpm=120))
            assert replies(await ask(client, 4)) == right.calls == 4
            assert wrong.calls == 1

    assert len(told(lambda: asyncio.run(work()))) == 1


def test_requests_that_wait_for_a_replica_go_elsewhere_when_it_is_no_longer_listed() -> None:
    async def work() -> None:
        async with serving(always(error(429, headers={"Retry-After": "600"})), always(says())) as servers:
            listed = [servers[0].base_url]
            client = client_at(listed, Transport(), lambda: tuple(listed))
            first = asyncio.create_task(one(client))
            await until(lambda: client.throttled == 1)
            waits = asyncio.create_task(one(client))
            listed[0] = servers[1].base_url
            assert isinstance(await asyncio.wait_for(waits, 30), Reply)
            client.stop_requests()
            assert isinstance(await first, RunStopped)
            await client.close()

    asyncio.run(work())


async def until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0)


def test_requests_that_are_cancelled_say_nothing_about_a_replica() -> None:
    async def work() -> None:
        async with serving(always(STALL), always(says())) as (stalled, _):
            client = client_at([stalled.base_url])
            asked = [asyncio.create_task(one(client)) for _ in range(2 * DEAD_AFTER)]
            await until(lambda: stalled.calls == len(asked))
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await client.close()

    assert told(lambda: asyncio.run(work())) == []


@pytest.mark.parametrize("several", [True, False])
def test_rates_can_be_set_and_requests_held_while_a_client_is_in_use(several: bool) -> None:
    async def work() -> None:
        async with serving(always(says()), always(says())) as servers:
            urls = [server.base_url for server in servers]
            client = client_at(urls) if several else OpenAIChatClient(endpoint(urls[0]), transport=ONCE)
            other = OpenAIChatClient(endpoint(urls[0]), transport=ONCE)

            async def still_waits(asked: "asyncio.Task[Got]") -> bool:
                # Long enough for any request that was sent.
                assert all([isinstance(await one(other), Reply) for _ in range(20)])
                return not asked.done()

            assert isinstance(await one(client), Reply)
            client.set_rates(0.001, None)
            waits = asyncio.create_task(one(client))
            assert await still_waits(waits)
            client.set_rates(None, None)
            assert isinstance(await waits, Reply)
            client.hold(1000.0)
            held = asyncio.create_task(one(client))
            assert await still_waits(held)
            client.stop_requests()
            assert isinstance(await held, RunStopped)
            for rpm, tpm in ((0.0, None), (None, -1.0)):
                with pytest.raises(ValueError, match="above 0"):
                    client.set_rates(rpm, tpm)
            await client.close()
            await other.close()

    asyncio.run(work())
