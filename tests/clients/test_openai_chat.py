"""The client against a server that is as bad as servers are."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from helpers.http_client import (
    CONTEXT,
    KEY,
    REQUEST,
    TOOLS,
    Got,
    ask,
    asked,
    client_at,
    one,
    reply_to,
)
from helpers.openai_server import (
    MAY_PASS,
    PROVIDER_FIELDS,
    REFUSALS,
    STALL,
    STOPS_RUN,
    Answer,
    Behaviour,
    Json,
    a_call,
    always,
    calls,
    completion,
    error,
    one_by_one,
    running,
    says,
    serving,
)

from propensitybench.chat import BLOCKED, Message, Reply, Request
from propensitybench.clients.breaker import FAILURES_TO_STOP
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.limits import RECOVERY
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import ModelError, PropensityBenchError, RequestRefused, RunStopped


@pytest.mark.parametrize("name", MAY_PASS)
def test_a_transient_error_is_an_error_when_no_retry_is_left(name: str) -> None:
    got = ask(always(MAY_PASS[name]))
    assert isinstance(got, ModelError)
    assert "after 1 attempt: " in str(got)


def test_transient_errors_are_retried() -> None:
    async def all_at_once() -> dict[str, tuple[list[Got], int]]:
        once_more = RequestLimits(timeout=20, max_retries=1)
        every = [asked(one_by_one(answer, says()), once_more) for answer in MAY_PASS.values()]
        every.append(asked(one_by_one(STALL, says()), RequestLimits(timeout=1, max_retries=1)))
        return dict(zip([*MAY_PASS, "stall"], await asyncio.gather(*every), strict=True))

    for name, (got, attempts) in asyncio.run(all_at_once()).items():
        assert attempts == 2, name
        assert isinstance(got[0], Reply), name
        assert (got[0].content, got[0].attempts) == ("hello", 2), name


def test_retries_are_bounded_and_counted() -> None:
    got, attempts = asyncio.run(asked(always(MAY_PASS["500"]), RequestLimits(timeout=20, max_retries=2)))
    assert attempts == 3
    assert isinstance(got[0], ModelError)
    assert str(got[0]) == "server error after 3 attempts: HTTP 500: server_error The server had an error"


def test_a_stall_ends_with_a_timeout() -> None:
    began = time.monotonic()
    got = ask(always(STALL), RequestLimits(timeout=0.2, max_retries=0))
    assert isinstance(got, ModelError)
    assert "timeout" in str(got)
    assert time.monotonic() - began < 5


def test_retry_after_is_obeyed() -> None:
    limited = error(429, headers={"Retry-After": "0.7"})
    began = time.monotonic()
    assert isinstance(ask(one_by_one(limited, says()), RequestLimits(max_retries=1)), Reply)
    assert time.monotonic() - began >= 0.7


def test_a_retry_after_of_hours_stops_the_run() -> None:
    got = ask(always(error(429, headers={"Retry-After": "7200"})), RequestLimits(max_retries=3))
    assert isinstance(got, RunStopped)
    assert not got.bad_input
    assert "asks to wait 7200 seconds" in str(got)


def test_a_retry_after_of_hours_on_the_last_attempt_does_not_leave_others_waiting() -> None:
    async def twice() -> Got:
        async with running(always(error(429, headers={"Retry-After": "7200"}))) as server:
            client = client_at(server.base_url)
            try:
                first = await one(client)
                if isinstance(first, ModelError):
                    await asyncio.wait_for(one(client), 0.5)
                return first
            finally:
                await client.close()

    assert isinstance(asyncio.run(twice()), PropensityBenchError)


def test_an_endpoint_that_is_not_there_is_an_error() -> None:
    async def ask_nobody() -> Got:
        async with running(always(says())) as server:
            url = server.base_url
        client = client_at(url)
        try:
            return await one(client)
        finally:
            await client.close()

    got = asyncio.run(ask_nobody())
    assert isinstance(got, ModelError)
    assert "network" in str(got)


@pytest.mark.parametrize("name", STOPS_RUN)
def test_what_is_the_same_for_every_task_stops_the_run_at_once(name: str) -> None:
    (got,), attempts = asyncio.run(asked(always(STOPS_RUN[name]), RequestLimits(max_retries=5)))
    assert isinstance(got, RunStopped)
    assert got.bad_input == (name not in ("402", "429 quota"))
    assert str(got).startswith("prov/m: ")
    assert attempts == 1


@pytest.mark.parametrize("name", REFUSALS)
def test_a_provider_that_would_not_answer_has_answered(name: str) -> None:
    reply = reply_to(REFUSALS[name])
    assert reply.stop in BLOCKED
    assert not reply.tool_calls


def test_a_refused_request_is_not_retried() -> None:
    (got,), attempts = asyncio.run(
        asked(always(error(400, "context too long")), RequestLimits(max_retries=5))
    )
    assert isinstance(got, ModelError)
    assert attempts == 1
    assert "request refused" in str(got)
    assert "context too long" in str(got)


def test_an_endpoint_that_is_gone_stops_the_run() -> None:
    got, _ = asyncio.run(asked(always(MAY_PASS["500"]), times=FAILURES_TO_STOP))
    assert [type(each) for each in got] == [ModelError] * (FAILURES_TO_STOP - 1) + [RunStopped]
    assert isinstance(got[-1], RunStopped)
    assert not got[-1].bad_input


def test_one_answer_between_them_shows_that_it_is_not_gone() -> None:
    bad = [MAY_PASS["500"]] * (FAILURES_TO_STOP - 1)
    got, _ = asyncio.run(asked(one_by_one(*bad, says(), *bad), times=2 * FAILURES_TO_STOP - 1))
    assert Counter(type(each) for each in got) == {ModelError: 2 * len(bad), Reply: 1}


def body_of(text: str) -> Request:
    """A first request with that text."""
    return Request([Message("system", "be good"), Message("user", text)], TOOLS)


async def all_at_once(
    behaviour: Behaviour, requests: Sequence[Request], transport: RequestLimits
) -> list[Got]:
    """What came of requests of as many conversations, sent together."""
    async with running(behaviour) as server:
        client = client_at(server.base_url, transport)
        try:
            return await asyncio.gather(*(one(client, request) for request in requests))
        finally:
            await client.close()


def test_requests_that_never_work_do_not_stop_a_run() -> None:
    """Their retries end long after everybody else's, so they give up in a row."""

    def some_dead(request: Json, _number: int) -> Answer:
        return MAY_PASS["500"] if "dead" in request["messages"][1]["content"] else says()

    requests = [body_of(f"{'dead' if n % 20 == 0 else 'good'} {n}") for n in range(20 * 30)]
    got = asyncio.run(all_at_once(some_dead, requests, RequestLimits(max_retries=2)))
    assert Counter(type(each) for each in got) == {Reply: 570, ModelError: 30}


def test_an_endpoint_that_goes_away_stops_a_run_while_many_are_in_flight() -> None:
    def gone_after(_request: Json, number: int) -> Answer:
        return says() if number <= 50 else MAY_PASS["503"]

    got = asyncio.run(
        all_at_once(gone_after, [body_of(str(n)) for n in range(200)], RequestLimits(max_retries=1))
    )
    kinds = Counter(type(each) for each in got)
    assert kinds[Reply] == 50
    assert kinds[ModelError] == FAILURES_TO_STOP - 1
    assert any("tasks failed in a row" in str(each) for each in got if isinstance(each, RunStopped))


def test_a_refusal_that_repeats_from_task_to_task_stops_the_run() -> None:
    def refuses(request: Json, _number: int) -> Answer:
        return error(400, f"Invalid schema for function '{request['messages'][1]['content']}': no items")

    got = asyncio.run(
        all_at_once(refuses, [body_of(str(n)) for n in range(80)], RequestLimits(concurrency=1))
    )
    assert [type(each) for each in got[:5]] == [RequestRefused] * 4 + [RunStopped]
    assert all(isinstance(each, RunStopped) for each in got[4:])
    assert isinstance(got[4], RunStopped)
    assert got[4].bad_input
    assert "5 tasks in a row were refused for the same reason (HTTP 400: Invalid schema" in str(got[4])


@pytest.mark.parametrize(
    "message", ["This model's maximum context length is 8192 tokens", "{number} is a reason of its own"]
)
def test_other_refusals_are_those_of_their_tasks(message: str) -> None:
    words = ["one", "two", "three"]

    def refuses(_request: Json, number: int) -> Answer:
        return error(400, message.format(number=words[number % 3]))

    got = asyncio.run(
        all_at_once(refuses, [body_of(str(n)) for n in range(30)], RequestLimits(concurrency=1))
    )
    assert {type(each) for each in got} == {RequestRefused}


def test_requests_throttled_together_wait_their_turn_and_keep_their_retries() -> None:
    """64 at once on 8 slots: what finds no slot would use up its retries, one volley after another."""

    async def talk() -> tuple[list[Got], int, int]:
        async with running(always(says()._replace(after=0.01)), 8, error(503, "no slot available")) as server:
            client = client_at(server.base_url, RequestLimits(concurrency=64, max_retries=2))
            try:
                requests = [body_of(str(n)) for n in range(300)]
                got = await asyncio.gather(*(one(client, request) for request in requests))
            finally:
                await client.close()
            return got, server.calls, server.most_at_once

    got, sent, at_once = asyncio.run(talk())
    assert {type(each) for each in got} == {Reply}
    assert at_once == 8
    # Of the first 64, and of half as many again and again, until as many are sent as there are slots.
    assert sent < (1 + RECOVERY) * len(got) + 2 * 64


@pytest.mark.parametrize(
    ("keys", "advice"),
    [((), "no key was sent, type: export MY_KEY=..."), ((KEY,), "check the key in MY_KEY")],
)
def test_a_refused_key_names_the_variable_to_set(keys: tuple[str, ...], advice: str) -> None:
    async def talk() -> Got:
        async with running(always(STOPS_RUN["401"])) as server:
            client = OpenAIChatClient(Endpoint("m", "m", server.base_url, keys, "MY_KEY"))
            try:
                return await one(client)
            finally:
                await client.close()

    assert advice in str(asyncio.run(talk()))


def test_repairs_are_recorded() -> None:
    assert reply_to(calls(a_call(arguments={"at": 1}))).repairs == ("arguments not written as a text",)
    assert reply_to(calls(a_call(arguments='{"at":1}"'))).repairs == ("quotes behind the arguments",)
    in_text = reply_to(says('<tool_call>{"name":"look","arguments":{"at":1}}</tool_call>'))
    assert in_text.repairs == ("call left in the text",)
    assert in_text.tool_calls[0].name == "look"
    assert reply_to(completion({"content": [{"type": "text", "text": "a"}]})).content == "a"


@pytest.mark.parametrize(
    ("served", "other"),
    [
        ("m", False),
        ("M", False),
        ("m-2026-05-01", False),
        ("org/m", False),
        ("", False),
        ("n", True),
        ("org/n", True),
        pytest.param("m-mini", True),
        pytest.param("m2", True),
    ],
)
def test_another_model_s_answer_is_told_from_the_one_asked_for(served: str, *, other: bool) -> None:
    assert reply_to(completion({"content": "x"}, model=served)).other_model == other


def test_the_endpoint_gets_the_model_the_options_and_the_key() -> None:
    async def talk() -> None:
        async with running(one_by_one(PROVIDER_FIELDS, says())) as server:
            options = ModelOptions(temperature=0.0, extra_body={"top_k": 5})
            endpoint = Endpoint("prov/m", "m", server.base_url + "/", (KEY,))
            client = OpenAIChatClient(endpoint, options)
            conversation = client.open(CONTEXT)
            messages = list(REQUEST.messages)
            reply = await conversation.reply(Request(messages, TOOLS))
            messages.append(
                Message("assistant", reply.content, reply.tool_calls, provider_fields=reply.provider_fields)
            )
            messages.append(Message("tool", "{}", tool_call_id="c1"))
            await conversation.reply(Request(messages, TOOLS))
            await client.close()
            first, second = server.requests()
            assert server.authorizations == [f"Bearer {KEY}"] * 2
        assert first.keys() == {"model", "messages", "tools", "temperature", "top_k"}
        assert (first["model"], first["temperature"], first["top_k"]) == ("m", 0.0, 5)
        assert second["messages"][:2] == first["messages"]
        assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
        assistant = second["messages"][2]
        assert assistant["reasoning_content"] == "let me see"
        assert assistant["reasoning_details"] == [{"type": "x", "data": "e30="}]
        assert assistant["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}

    asyncio.run(talk())


@pytest.mark.parametrize(("keys", "expected"), [((), [""] * 4), (("a", "b"), ["Bearer a", "Bearer b"] * 2)])
def test_keys_take_turns_and_none_is_needed(keys: tuple[str, ...], expected: list[str]) -> None:
    with serving(always(says())) as server:

        async def talk() -> None:
            client = client_at(server.base_url, keys=keys)
            for _ in range(4):
                await one(client)
            await client.close()

        asyncio.run(talk())
        assert (server.authorizations, server.answered) == (expected, 4)


def many(behaviour: Behaviour, transport: RequestLimits, times: int) -> tuple[int, float]:
    """The most requests in flight while so many are asked at once, and the seconds that they took."""

    async def talk() -> tuple[int, float]:
        async with running(behaviour) as server:
            client = client_at(server.base_url, transport)
            began = time.monotonic()
            got = await asyncio.gather(*(one(client) for _ in range(times)))
            took = time.monotonic() - began
            await client.close()
            assert all(isinstance(each, Reply) for each in got)
            return server.most_at_once, took

    return asyncio.run(talk())


def test_no_more_are_in_flight_than_allowed() -> None:
    assert many(always(says()._replace(after=0.05)), RequestLimits(concurrency=3), 12)[0] == 3


def test_no_more_are_sent_a_minute_than_allowed() -> None:
    assert many(always(says()), RequestLimits(rpm=1200), 26)[1] >= 0.25  # 20 at once, then 20 a second


def test_nobody_starves_behind_one_who_gives_up() -> None:
    async def talk() -> None:
        async with running(one_by_one(STALL, says())) as server:
            client = client_at(server.base_url, RequestLimits(concurrency=1))
            tasks = [asyncio.create_task(one(client)) for _ in range(5)]
            while not server.calls:
                await asyncio.sleep(0.01)
            tasks[0].cancel()
            tasks[2].cancel()
            got = await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()
        assert [isinstance(each, Reply) for each in got] == [False, True, False, True, True]

    asyncio.run(talk())


def test_a_redirect_is_not_followed() -> None:
    async def redirected() -> tuple[list[Got], int]:
        async with running(always(calls())) as elsewhere:
            location = {"Location": f"{elsewhere.base_url}/chat/completions"}
            got, _ = await asked(always(Answer(b"", 307, location)))
            return got, elsewhere.calls

    (got,), calls_elsewhere = asyncio.run(redirected())
    assert "HTTP 307" in str(got)
    assert "redirects are not followed" in str(got)
    assert calls_elsewhere == 0
