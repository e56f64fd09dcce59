"""The strict fakes as servers: their replies, and clients that send back the wrong fields."""

import asyncio
import copy
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import aiohttp
import pytest
from helpers.strict import Answer, Slots, running, serving, slots, strict
from helpers.strict.common import mismatches
from helpers.strict.groq import tool_use_failed
from helpers.strict.samples import CALL, LOOK, MODELS, chat, edited, messages_api

AT: Final = "tools.0.function.parameters.properties.at"
ENABLED: Final = {"type": "enabled", "budget_tokens": 1024}
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


def calls_look(_request: Any, number: int) -> Answer:
    """One call of the tool, then a message."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "c1"}]}
    if number > 1:
        message = {"role": "assistant", "content": "Seen."}
    finish = "stop" if number > 1 else "tool_calls"
    choice = {"index": 0, "message": copy.deepcopy(message), "finish_reason": finish}
    return Answer(json.dumps({"id": "x", "choices": [choice], "usage": {"prompt_tokens": 1}}).encode())


ECHO: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("role", "content", "tool_calls"),
    "mistral": ("role", "content", "tool_calls"),
    "gemini": ("role", "content", "tool_calls"),
    "groq": ("role", "content", "tool_calls"),
    "deepseek": ("role", "content", "tool_calls", "reasoning_content"),
    "deepseek-v3.2": ("role", "content", "tool_calls", "reasoning_content"),
    "deepseek-r1": ("role", "content", "tool_calls"),
}


def turns(provider: str, keep: tuple[str, ...] | None, model: str = "") -> list[str]:
    """What is refused of two turns, if a client sends back those fields of the reply, or all."""
    fake = strict(provider, calls_look)
    body = {**chat(provider), "model": model or MODELS[provider]}
    body["messages"] = body["messages"][:2]
    reply = json.loads(fake(body, 1).body)["choices"][0]["message"]
    kept = {name: value for name, value in reply.items() if keep is None or name in keep}
    answer = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": "a tree"}
    if provider == "gemini":
        answer["name"] = "look"
    body["messages"] += [kept, answer]
    if fake(body, 2).status == 200:
        assert fake.refused == []
    return fake.refused


@pytest.mark.parametrize("provider", list(ECHO))
def test_the_right_echo_passes(provider: str) -> None:
    assert turns(provider, ECHO[provider]) == []


@pytest.mark.parametrize(
    ("provider", "keep"),
    [
        ("groq", None),  # with `reasoning`, of a model that has none
        ("deepseek", ECHO["openai"]),
        ("deepseek-v3.2", ECHO["openai"]),
        ("deepseek-r1", None),
    ],
)
def test_the_wrong_echo_is_refused(provider: str, keep: tuple[str, ...] | None) -> None:
    assert turns(provider, keep, "llama-3.3-70b-versatile" if provider == "groq" else "")


def test_magistral_thinks_in_chunks() -> None:
    reply = strict("mistral", calls_look)({**chat("mistral"), "model": "magistral-medium-latest"}, 2)
    content = json.loads(reply.body)["choices"][0]["message"]["content"]
    assert [chunk["type"] for chunk in content] == ["thinking", "text"]


def test_deepseek_tells_what_it_left_unread() -> None:
    fake = strict("deepseek", calls_look)
    assert fake({**chat("deepseek"), "max_completion_tokens": 9}, 1).status == 200
    assert fake.unread == {"max_completion_tokens"}


def test_groq_checks_the_calls_of_the_model() -> None:
    def failure(name: str, arguments: str, **options: Any) -> str:
        made = {"function": {"name": name, "arguments": arguments}}
        found = tool_use_failed(
            {"choices": [{"message": {"tool_calls": [made]}}]}, {**chat("groq"), **options}
        )
        return found.body["error"]["code"] + ": " + found.message if found else ""

    assert failure("look", '{"at": 1}') == ""
    assert "missing properties: 'at'" in failure("look", "{}")
    assert "expected integer, but got string" in failure("look", '{"at": "1"}')
    assert failure("jump", "{}").startswith("tool_use_failed: ")
    assert failure("look", "{").startswith("tool_use_failed: ")
    assert failure("look", "{}", disable_tool_validation=True) == ""
    fake = strict("groq", calls_look)
    assert fake(edited(chat("groq"), {AT: {"type": "string"}}), 1).status == 400
    assert fake.refused == []
    assert len(fake.failed) == 1


def test_what_does_not_fit_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "additionalProperties": False}
    assert mismatches(schema, {"a": 1}) == []
    assert len(mismatches(schema, {"a": 2, "b": 1})) == 2
    assert mismatches({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "x")
    assert mismatches({"type": "array", "items": {"type": "integer"}}, [1, True])


def test_anthropic_in_two_turns_and_as_a_stream() -> None:
    fake = strict("anthropic", calls_look)
    body = edited(messages_api(), {"thinking": ENABLED})
    body["messages"] = body["messages"][:1]
    reply = json.loads(fake(body, 1).body)
    assert [block["type"] for block in reply["content"]] == ["thinking", "tool_use"]
    assert reply["stop_reason"] == "tool_use"
    result = {"type": "tool_result", "tool_use_id": reply["content"][1]["id"], "content": "a tree"}
    body["messages"] += [
        {"role": "assistant", "content": reply["content"]},
        {"role": "user", "content": [result]},
    ]
    streamed = fake({**body, "stream": True}, 2)
    assert fake.refused == []
    assert streamed.headers["Content-Type"] == "text/event-stream"
    assert b"event: message_stop" in streamed.body
    assert b'"text": "Seen."' in streamed.body
    del body["messages"][1]["content"][0]
    assert fake(body, 2).status == 400


def test_what_the_behaviour_sees_of_anthropic() -> None:
    seen: list[Any] = []

    def behaviour(request: Any, _number: int) -> Answer:
        seen.append(request)
        return Answer(b"{}", 500)

    assert strict("anthropic", behaviour)(messages_api(), 1).status == 500
    assert [message["role"] for message in seen[0]["messages"]] == ["system", "user", "assistant", "tool"]
    assert seen[0]["tools"][0]["function"]["parameters"] == LOOK


def test_a_behaviour_sees_what_was_left_out() -> None:
    seen: list[Any] = []

    def behaviour(request: Any, _number: int) -> Answer:
        seen.append(request)
        return Answer(b"{}", 500)

    request = edited(chat("gemini"), {"tools.0.function": {"name": "look"}})
    strict("gemini", behaviour)(edited(request, {"messages.0.content": [{"type": "text", "text": "Hm."}]}), 1)
    assert seen[0]["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
    }
    assert seen[0]["messages"][0]["content"] == "Hm."


async def post(url: str, body: Any, headers: Mapping[str, str] = {}) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as response:
        await response.read()
        return response.status


def test_over_http() -> None:
    async def both(chat_url: str, messages_url: str) -> list[int]:
        key = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        bad = edited(chat("openai"), {"odd": 1})
        posts = [post(chat_url, chat("openai")), post(chat_url, bad)]
        return [*[await one for one in posts], await post(messages_url, messages_api(), key)]

    fakes = [strict("openai", calls_look), strict("anthropic", calls_look)]
    with serving(fakes[0]) as one, serving(fakes[1]) as other:
        statuses = asyncio.run(both(f"{one.base_url}/chat/completions", f"{other.root}/v1/messages"))
    assert statuses == [200, 400, 200]
    assert fakes[0].refused == ["top.unknown: Unknown parameter: 'odd'."]
    assert (one.calls, one.answered) == (2, 1)
    assert other.headers[0]["x-api-key"] == "k"


@pytest.mark.parametrize("status", [503, 429])
def test_slots(status: int) -> None:
    async def play() -> tuple[Slots, list[int]]:
        arrived = asyncio.Semaphore(0)

        def behaviour(_request: Any, number: int) -> Answer:
            arrived.release()
            return Answer(way="stall") if number <= 2 else Answer(b"{}")

        limited = slots(2, behaviour, queue=1, status=status)
        async with running(limited) as server:
            url = f"{server.base_url}/chat/completions"
            stalled = [asyncio.create_task(post(url, {})) for _ in range(2)]
            for _ in stalled:
                await arrived.acquire()
            later = [asyncio.create_task(post(url, {})) for _ in range(2)]
            refused, waiting = await asyncio.wait(later, return_when=asyncio.FIRST_COMPLETED)
            stalled[0].cancel()  # gives its slot to the one that waits
            statuses = [task.result() for task in refused] + [await task for task in waiting]
            stalled[1].cancel()
            await asyncio.gather(*stalled, return_exceptions=True)
        return limited, statuses

    limited, statuses = asyncio.run(play())
    assert statuses == [status, 200]
    assert (limited.refused, limited.most_at_once) == (1, 2)
