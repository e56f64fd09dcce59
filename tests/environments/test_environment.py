"""An environment is the played episode: the same conversation, outcome and numbers."""

import re
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from helpers.scenario_data import published_copy

import propensitybench as pb
from propensitybench.chat import ConversationContext, Reply, Request, ToolCall
from propensitybench.environments.environment import Environment
from propensitybench.errors import BadInput
from propensitybench.runs import StoredRun


def scripted(observation: dict[str, Any], chance: Random) -> dict[str, Any]:
    """A turn that calls some tool with arguments that are known, or says something, or nothing."""
    if chance.random() < 0.25:
        status = chance.choice(["continue", "continue", "terminate"])
        message = {"thoughts": "t", "message": "Working on it.", "interaction_status": status}
        return {"content": chance.choice([msgspec.json.encode(message).decode(), "not JSON", ""])}
    tool = chance.choice(observation["tools"])["function"]
    seen = "\n".join(message["content"] or "" for message in observation["messages"])
    wanted = tool["parameters"]["required"]
    arguments = {name: f"value of {name}" if chance.random() < 0.2 else _known(seen, name) for name in wanted}
    call = {"name": tool["name"], "arguments": msgspec.json.encode(arguments).decode()}
    return {"content": "", "tool_calls": [{"id": "c", "type": "function", "function": call}]}


def _known(seen: str, name: str) -> str:
    """The value of an argument that the conversation gives."""
    found = re.search(rf'"{name}"\s*:\s*(?:{{[^}}]*"value"\s*:\s*)?"([^"]*)"', seen)
    return found[1] if found else "unknown"


@pytest.mark.parametrize("is_built_in", [True, False])
def test_tasks_end_as_in_a_run(tmp_path: Path, is_built_in: bool) -> None:
    data = None if is_built_in else published_copy(tmp_path / "data").parents[2]
    settings: dict[str, Any] = {"limit": 20, "levels": 3, "data": data}
    environment = Environment(**settings)
    assert len(environment.tasks) == (40 if is_built_in else 24)
    replies: dict[str, list[dict[str, Any]]] = {}
    records = {}
    for task in environment.tasks:
        chance, actions = Random(task), replies.setdefault(task, [])
        observation, info = environment.reset(options={"task": task})
        assert info == {"task": task, "level": 0}
        while True:
            actions.append(scripted(observation, chance))
            step = environment.step(actions[-1])
            observation = step.observation
            if step.terminated or step.truncated:
                break
            assert step.reward == 0
        records[task] = step.info["record"]
        assert step.reward == float(records[task]["stats"]["outcome"] in ("resisted", "completed"))

    left = {task: iter(actions) for task, actions in replies.items()}

    class Script(pb.Client):
        model = "mine/script"
        knows_task = True

        async def reply(self, _request: Request, context: ConversationContext) -> Reply:
            given = next(left[context.task.task])
            calls = (one["function"] for one in given.get("tool_calls", []))
            return Reply(
                given["content"], tuple(ToolCall("c", one["name"], one["arguments"]) for one in calls)
            )

    path = tmp_path / "played.run"
    pb.run("mine/script", path, client=Script(), **settings)
    played = {one.metadata.task: msgspec.to_builtins(one) for one in StoredRun(path).records}
    for task, record in records.items():
        for numbers in (record["stats"], played[task]["stats"]):
            numbers.pop("usage", None)
        assert record == played[task]
    assert len({record["stats"]["outcome"] for record in records.values()}) > 1


def test_what_cannot_be_done_is_one_sentence() -> None:
    environment = Environment(limit=1)
    with pytest.raises(BadInput, match="no episode is under way; call reset first"):
        environment.step("hello")
    with pytest.raises(BadInput, match="unknown task 'nowhere'"):
        environment.reset(options={"task": "nowhere"})
    with pytest.raises(BadInput, match="unknown option 'taks'; did you mean 'task'"):
        environment.reset(options={"taks": "x"})
    environment.reset()
    with pytest.raises(BadInput, match="an action must be a text"):
        environment.step(3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="unknown setting 'budget_usd'"):
        Environment(budget_usd=3)


def test_the_seed_gives_the_order_of_the_tasks() -> None:
    first, second = Environment(limit=30), Environment(limit=30)
    drawn = [first.reset(seed=5)[1]["task"]] + [first.reset()[1]["task"] for _ in range(5)]
    assert drawn == [second.reset(seed=5)[1]["task"]] + [second.reset()[1]["task"] for _ in range(5)]
    assert len(set(drawn)) > 1


def test_the_canary_is_shown_once(caplog: pytest.LogCaptureFixture) -> None:
    from propensitybench.environments import environment

    environment._warn_of_training.cache_clear()
    Environment(limit=1)
    Environment(limit=1)
    assert caplog.text.count("do not train on them") == 1
