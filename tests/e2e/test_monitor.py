"""``propensitybench monitor`` and ``pb.monitor`` as a user calls them."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.judging import played
from helpers.openai_server import Answer, Json, says, serving
from helpers.program import call

import propensitybench as pb


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return played(tmp_path / "study.run", 20, "simulated/gemini-2.5-pro-like", 4)


def turns(run: Path) -> int:
    return sum(record.stats.turns for record in pb.open(run).records)


def test_a_monitor_without_a_key_from_plan_to_table(run: Path) -> None:
    planned = call("monitor", run, "--monitor", "keyless/words", "--plan", "--json").json
    assert (planned["calls"], planned["usd"]) == (turns(run), 0)
    done = call(
        "monitor", run, "--monitor", "keyless/words", "--reads", "last-turn", "--reads", "no-thoughts"
    )
    assert done.code == 0, done.err
    assert "keyless/words, reading the last turn" in done.out
    assert "keyless/words, reading the transcript without thoughts" in done.out
    found = call("monitor", run, "--reads", "last-turn", "--json").json["monitors"]
    assert [(one["monitor"], list(one["numbers"])) for one in found] == [
        ("last-turn", ["harmful", "benign", "both"])
    ]
    assert (found[0]["numbers"]["both"]["turns"], found[0]["numbers"]["both"]["missing"]) == (turns(run), 0)
    assert call("verify", run).code == 0
    assert call("judge", run, "--judge", "keyless/words", "--question", "awareness").code == 0


def test_replies_are_asked_for_once_and_one_that_is_no_score_is_missing(run: Path) -> None:
    def behave(_body: Json, number: int) -> Answer:
        return says('{"suspicion": 0.4}' if number % 3 else '{"suspicion": "high"}')

    with serving(behave) as server:
        here = ("--monitor", "m", "--base-url", server.base_url, "--limit", "6")
        first = call("monitor", run, *here, "--max-tokens-total", "1")
        assert first.code == 1
        assert "budget of 1 tokens is used up" in first.err
        done = call("monitor", run, *here, "--json")
        asked = server.calls
        assert call("monitor", run, *here).code == 0
        assert server.calls == asked
    numbers = done.json["monitors"][0]["numbers"]["both"]
    assert numbers["crossing"] + numbers["others"] == 6
    assert 0 < numbers["missing"] < numbers["turns"] == asked
    assert numbers["auc"]["bounds"] is not None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "no monitor has read it; ask with: propensitybench monitor"),
        (("--monitor", "keyless/words", "--reads", "why"), "--reads: unknown monitor 'why'"),
        (("--monitor", "simulated/never"), "--monitor simulated/never: cannot read"),
        (("--monitor", "openai/gpt-5-mini"), "needs a key; type: export OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(run: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = call("monitor", run, *arguments, env={"OPENAI_API_KEY": ""})
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert sentence in done.err


def test_functions_are_monitors_and_see_no_more_than_the_agent_did(run: Path) -> None:
    seen: list[list[dict[str, Any]]] = []

    def length(messages: list[dict[str, Any]]) -> float:
        seen.append(messages)
        return len(messages) / 100

    async def silent(_messages: list[dict[str, Any]]) -> None:
        return None

    found = pb.monitor(run, length, silent, limit=6)
    by_model = {one.model: one.numbers["both"] for one in found.results}
    assert set(by_model) == {"python/length", "python/silent"}
    assert by_model["python/length"].missing == 0
    assert by_model["python/silent"].missing == by_model["python/silent"].turns
    assert all(messages[-1]["role"] == "assistant" for messages in seen)
    assert not any("GAVE IN" in json.dumps(messages) for messages in seen)
    assert len(found.to_pandas()) == 2 * len(found.results[0].numbers)
    # Cut at the same turn, length says nothing: both have the same number of messages, or nearly.
    auc = by_model["python/length"].auc
    assert auc.ci95 is not None
    assert auc.ci95.low <= 0.5 <= auc.ci95.high
