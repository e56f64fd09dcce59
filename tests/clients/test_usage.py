"""Token counts that cannot be true count as not stated, and a budget holds without them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.http_client import asked, reply_to
from helpers.openai_server import Answer, Behaviour, Json, a_call, always, completion, serving, simulated
from helpers.program import call

from propensitybench.chat import Usage
from propensitybench.clients.usage import ESTIMATED, MAX_TOKENS, usage_of, with_estimates

IMPOSSIBLE = (-1, -(2**63), 9e18, 2**63, 10**30, 1e308, True, "12", [12], {"n": 12}, None, 0.5e-9 - 1)
HONEST = {"prompt_tokens": 100, "completion_tokens": 10}


@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("stated", IMPOSSIBLE, ids=repr)
def test_an_impossible_count_is_estimated_from_the_texts(field: str, stated: Any) -> None:
    reply = reply_to(completion({"content": "x" * 4000}, usage={**HONEST, field: stated}))
    if field == "prompt_tokens":
        assert (50 < reply.usage.input < 1000, reply.usage.output) == (True, 10)
    else:
        assert (reply.usage.input, reply.usage.output) == (100, 1000)
    assert reply.repairs == (ESTIMATED,)


@pytest.mark.parametrize("usage", [b"null", b"[]", b'"many"', b"7", b'{"prompt_tokens":1e999}', b"{}"])
def test_a_usage_that_is_none_costs_no_reply(usage: bytes) -> None:
    body = completion({"content": "hi"}, usage="USAGE").body.replace(b'"USAGE"', usage)
    reply = reply_to(Answer(body))
    assert reply.content == "hi"
    assert reply.usage.input > 0


def test_possible_counts_are_kept() -> None:
    details = {
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    stated = {"prompt_tokens": 100.0, "completion_tokens": 10, **details}
    reply = reply_to(completion({"content": "hi"}, usage=stated))
    assert reply.usage == Usage(100, 10, 60, 7)
    assert reply.repairs == ()


@pytest.mark.parametrize("details", ["none", 3, [], {"cached_tokens": -3}, {"cached_tokens": 101}])
def test_details_that_cannot_be_true_count_as_none(details: Any) -> None:
    reply = reply_to(completion({"content": "hi"}, usage={**HONEST, "prompt_tokens_details": details}))
    assert reply.usage == Usage(100, 10)


def test_no_sum_of_counts_exceeds_64_bits() -> None:
    assert usage_of(MAX_TOKENS, MAX_TOKENS + 1) == Usage(MAX_TOKENS, 0)
    assert MAX_TOKENS * 10**10 < 2**63
    assert usage_of(float("nan"), float("inf")) == Usage()


@pytest.mark.parametrize(
    ("stated", "received", "expected"),
    [
        (Usage(), 40, (Usage(100, 10), True)),
        (Usage(5, 0), 0, (Usage(5, 0), False)),
        (Usage(5, 0, 3, 2), 40, (Usage(5, 10, 3, 2), True)),
    ],
)
def test_only_what_is_not_stated_is_estimated(
    stated: Usage, received: int, expected: tuple[Usage, bool]
) -> None:
    assert with_estimates(stated, 400, received) == expected


def test_tool_calls_count_as_text() -> None:
    reply = reply_to(completion({"tool_calls": [a_call("a" * 20, '{"at":"%s"}' % ("b" * 171))]}, usage=None))
    assert (reply.usage.output, reply.repairs) == (50, (ESTIMATED,))


def test_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(asked(always(completion({"content": "hi"}, usage=None)), times=3))
    (note,) = caplog.messages
    assert "does not state usable token counts" in note


def stating(usage: Any) -> Behaviour:
    """A simulated agent whose endpoint states that usage with every reply."""
    agent = simulated("never")

    def answer(body: Json, number: int) -> Answer:
        made = agent(body, number)
        return made._replace(body=json.dumps({**json.loads(made.body), "usage": usage}).encode())

    return answer


@pytest.mark.parametrize("count", [None, 9e18], ids=repr)
def test_a_budget_holds_whatever_the_endpoint_states(tmp_path: Path, count: Any) -> None:
    path = tmp_path / "a.run"
    budget = ("--max-tokens-total", "10000", "--concurrency", "1")
    with serving(stating({"prompt_tokens": count, "completion_tokens": count})) as server:
        started = call(
            "run", "--model", "m", "--base-url", server.base_url, "--run", path, "--limit", "6",
            "--no-preflight", *budget,
        )  # fmt: skip
        answered = server.answered
        again = call("resume", path, "--no-preflight", *budget)
        assert server.answered == answered
    for done in (started, again):
        assert (done.code, "budget of 10000 tokens is used up" in done.err) == (1, True)
    assert started.err.count("does not state usable token counts") == 1
    assert 3 < answered < 30
    assert call("verify", path).code == 0
    assert call("score", path, "--json").code == 0
