"""Agents of one's own in `propensitybench.run`: functions, clients that keep state, and what goes wrong."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.program import call

import propensitybench as pb
from propensitybench.chat import ConversationContext, Request
from propensitybench.errors import BadInput, ModelError, RunMismatch, RunStopped

SMALL: dict[str, Any] = {"limit": 3, "levels": 1}
DONE = json.dumps({"thoughts": "", "message": "I will not do that", "interaction_status": "terminate"})
Json = dict[str, Any]


def refuses(messages: list[Json], tools: list[Json]) -> str:
    assert {message["role"] for message in messages[:2]} == {"system", "user"}
    assert all(tool["type"] == "function" for tool in tools)
    return DONE


async def gives_in(messages: list[Json], tools: list[Json]) -> Json:
    """Calls every tool in turn, as OpenAI's API writes calls; each message is its own to change."""
    names = [tool["function"]["name"] for tool in tools]
    done = [entry for message in messages for entry in message.get("tool_calls", ())]
    function = {"name": names[len(done) % len(names)], "arguments": "{}"}
    messages.clear()
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{len(done)}", "type": "function", "function": function}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }


def completes(messages: list[Json], tools: list[Json]) -> Json:
    del messages, tools
    return {
        "model": "m-2026",
        "choices": [{"message": {"role": "assistant", "content": DONE}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


def test_a_function_is_an_agent() -> None:
    run = pb.run("mine/refuses", client=refuses, **SMALL)
    assert {record.stats.outcome for record in run.records} == {"resisted"}
    assert {record.stats.terminations for record in run.records} == {2}
    with pb.RunFile.open(run.path) as file:
        assert list(pb.verify(file)) == []


def test_a_function_calls_tools_and_counts_its_tokens() -> None:
    run = pb.run("mine/gives-in", client=gives_in, price=(10, 100), **SMALL)
    assert {record.stats.outcome for record in run.records} == {"misaligned"}
    turns = sum(record.stats.turns for record in run.records)
    assert (run.usage.input, run.usage.output) == (100 * turns, 10 * turns)
    assert run.cost == pytest.approx(turns * 0.002)
    assert pb.open(run.path).cost == run.cost


def test_a_whole_chat_completion_is_a_reply() -> None:
    run = pb.run("mine/completes", client=completes, **SMALL)
    assert run.journal.models == {"m-2026": 12}
    assert (run.usage.input, run.usage.output) == (84, 36)
    assert run.cost is None


def test_functions_that_block_do_not_wait_for_each_other() -> None:
    together = threading.Barrier(6, timeout=20)

    def waits(messages: list[Json], tools: list[Json]) -> str:
        together.wait()
        return refuses(messages, tools)

    assert len(pb.run("mine/waits", client=waits, **SMALL).records) == 6


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    class Agent:
        async def answer(self, messages: list[Json]) -> str:
            await asyncio.sleep(0)
            return DONE if messages else ""

    agent = Agent()
    run = pb.run("mine/lambda", client=lambda messages, _: agent.answer(messages), **SMALL)
    assert {record.stats.outcome for record in run.records} == {"resisted"}


class Counted(pb.Client):
    """Keeps a count for each conversation."""

    def open(self, context: ConversationContext) -> pb.Conversation:
        seen: list[int] = []

        def answer(messages: list[Json], tools: list[Json]) -> str:
            seen.append(len(messages))
            assert len(seen) == context.replies + sum(one["role"] == "assistant" for one in messages) + 1
            return refuses(messages, tools)

        return pb.FunctionConversation(answer)


def test_a_changed_agent_is_told_that_its_run_is_an_earlier_one(caplog: pytest.LogCaptureFixture) -> None:
    old, new = (f"{one.__name__} ({place(one, 0)})" for one in (refuses, completes))
    run = pb.run("mine/changed", "a.run", client=refuses, **SMALL)
    assert caplog.messages == []
    again = pb.run("mine/changed", "a.run", client=completes, **SMALL)
    assert again.records == run.records
    assert caplog.messages == [
        f"a.run: is complete, so {new} is not called; a changed agent needs another name or file"
    ]
    pb.run("mine/changed", "a.run", client=completes, **{**SMALL, "limit": 4})
    assert caplog.messages[-1] == f"a.run: was begun by {old}, continues with {new}"


def test_a_client_keeps_state_for_each_conversation() -> None:
    run = pb.run("mine/counted", client=Counted(), **SMALL)
    assert {record.stats.outcome for record in run.records} == {"resisted"}


def fails_late(messages: list[Json], tools: list[Json]) -> str:
    if any(message["role"] == "assistant" for message in messages):
        return str(messages[0]["text"])
    return refuses(messages, tools)


def place(of: Callable[..., object], lines: int) -> str:
    return f"{Path(__file__).name}:{of.__code__.co_firstlineno + lines}"


def test_the_same_error_again_and_again_stops_the_run_and_names_its_place() -> None:
    settings: dict[str, Any] = {"limit": 40, "levels": 1, "concurrency": 1}
    with pytest.raises(RunStopped) as caught:
        pb.run("mine/late", "a.run", client=fails_late, **settings)
    error = f"{place(fails_late, 2)}: KeyError: 'text'"
    assert str(caught.value) == (
        "a.run: 0 of 80 tasks are finished; stopped: mine/late: 5 tasks in a row failed with the same error: "
        + error
    )
    assert isinstance(caught.value.__cause__, KeyError)
    run = pb.open("a.run")
    assert repr(run) == f"<Run a.run: mine/late, 4 of 80 tasks ended, 4 errored ({error})>"
    scores = run.score()
    assert scores.errors == {error: 4}
    for shown in (repr(scores), scores._repr_html_()):
        assert "a.run: 4 errored: " in shown
    assert len(pb.run("mine/late", "a.run", client=refuses, **settings).records) == 80


@pytest.mark.filterwarnings("error")
def test_an_agent_that_exits_has_failed() -> None:
    async def leaves(*_: Any) -> str:
        raise SystemExit(3)

    with pytest.raises(RunStopped, match=r"5 tasks in a row failed .*SystemExit: 3"):
        pb.run("mine/leaves", "a.run", client=leaves, limit=6, levels=0)


def test_failures_of_different_tasks_do_not_stop_a_run() -> None:
    count = iter(range(1000))

    def unsteady(messages: list[Json], tools: list[Json]) -> str:
        if next(count) % 4 == 0:
            raise ValueError("unsteady")
        return refuses(messages, tools)

    scores = pb.run("mine/unsteady", client=unsteady, concurrency=1, limit=20, levels=0).score()
    assert (scores.tasks.errored, scores.tasks.resisted) == (10, 30)
    assert [why.partition(": ")[2] for why in scores.errors] == ["ValueError: unsteady"]


def test_a_model_that_is_away_stops_the_run_after_as_many_tasks_as_an_endpoint() -> None:
    class Away(pb.Client):
        async def reply(self, _: Request, context: ConversationContext) -> pb.Reply:
            raise ModelError(f"no answer to {context.id}")

    with pytest.raises(RunStopped, match=r"20 tasks failed in a row, the last with: no answer to "):
        pb.run("mine/away", client=Away(), concurrency=1, limit=40, levels=0)


class Silent(pb.Client):
    async def reply(self, *_: object) -> pb.Reply:
        return DONE  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, "found NoneType"),
        ({"text": "x"}, "found a dict with 'text'"),
        ({"content": 1}, "content is int"),
        ({"tool_calls": [{"name": "x"}]}, "a tool call has no function.name"),
        ({"tool_calls": "x"}, "Expected `array"),
    ],
)
def test_what_is_no_reply_is_one_sentence(given: object, found: str) -> None:
    def odd(messages: list[Json], tools: list[Json]) -> Any:
        del messages, tools
        return given

    run = pb.run("mine/odd", client=odd, limit=1, levels=0, naming="benign")
    (error,) = run.score().errors
    assert error.startswith(f"TypeError: odd ({place(odd, 0)}) must return a text, a message like ")
    assert found in error
    (error,) = pb.run("mine/silent", client=Silent(), limit=1, levels=0, naming="benign").score().errors
    assert error.endswith("reply must return a propensitybench.Reply, found str")


def one_argument(messages: list[Json]) -> str:
    return str(messages)


@pytest.mark.parametrize(
    ("client", "settings", "complaint"),
    [
        (
            "text",
            {},
            "client: must be a function of messages and tools, or a propensitybench.Client, found str",
        ),
        (pb.Client, {}, "client: is the class Client; give an object of it"),
        (pb.Client(), {}, "client: Client overrides neither reply nor open"),
        (pb.ScriptedClient([], "other/name"), {}, "client: is other/name, not mine/x"),
        (one_argument, {}, "must take messages and tools, and takes messages (too many"),
        (refuses, {"engine": "ray"}, "client: cannot be sent to Ray's workers"),
        (refuses, {"budget_usd": 1}, "needs the price of mine/x"),
    ],
)
def test_a_client_that_cannot_work_leaves_no_file(
    client: Any, settings: dict[str, Any], complaint: str, folder: Path
) -> None:
    with pytest.raises((BadInput, RunMismatch)) as caught:
        pb.run("mine/x", client=client, **{**SMALL, **settings})
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_only_the_same_code_resumes_a_run_that_it_played() -> None:
    settings: dict[str, Any] = {**SMALL, "concurrency": 1, "max_tokens_total": 1500}
    run = pb.run("mine/gives-in", "a.run", client=gives_in, **settings)
    assert 0 < sum(record.stats.outcome == "misaligned" for record in run.records) < 6
    who = f"a.run: was played from Python by gives_in ({place(gives_in, 0)}); call propensitybench.run("
    for command in ("resume", "--max-tokens-total", "10000"), ("probe", "--probe", "awareness"):
        done = call(command[0], "a.run", *command[1:])
        assert done.code == 2
        assert who in done.err
    with pytest.raises(BadInput) as caught:
        pb.run("mine/gives-in", "a.run", **{**settings, "max_tokens_total": 10**6})
    assert str(caught.value).startswith(who)
    with pytest.raises(BadInput, match="was played from Python by gives_in"):
        pb.probe(pb.run("mine/gives-in", client=gives_in, limit=1, levels=0), "awareness")


def test_a_function_answers_probes_of_its_run() -> None:
    run = pb.run("mine/gives-in", client=gives_in, limit=1, levels=0, naming="benign")
    found = pb.probe(run, "awareness", client=lambda messages, _: "B" if "B" in str(messages) else "")
    assert [row["tasks"] for row in found.rows()] == [1, 1]
