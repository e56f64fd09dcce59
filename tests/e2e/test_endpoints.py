"""Runs against an endpoint on this machine: good, bad, and gone in the middle."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from random import Random
from threading import Event

import pytest
from helpers.forking import TIMEOUT_S, call_forked
from helpers.openai_server import (
    HUGE,
    MAY_PASS,
    REFUSALS,
    STALL,
    STOPS_RUN,
    Answer,
    Behaviour,
    Json,
    Server,
    faulty,
    says,
    simulated,
)
from helpers.openai_server import serving as serving_freely
from helpers.program import Done, argv, call, until
from helpers.strict import strict

from propensitybench.store import RunFile, mismatches

SENTINEL = "sk-sentinel-7f3a9b"
Serving = Callable[[Behaviour], AbstractContextManager[Server]]
QUICK = ("--limit", "3", "--concurrency", "8")


def play(server: Server, path: Path, *more: str) -> Done:
    return call(
        "run", "--model", "m", "--base-url", server.base_url, "--run", path, *QUICK, *more, "--json",
        env={"PROPENSITYBENCH_API_KEY": SENTINEL},
    )  # fmt: skip


def scores(path: Path) -> Json:
    scored: Json = call("score", path, "--json", "--all").json["runs"][0]
    return {**scored, "file": ""}


def after_preflight(behaviour: Behaviour, then: Behaviour, calls: int = 3) -> Behaviour:
    """One behaviour for the first calls (the preflight makes three), another from then on."""
    return lambda body, number: behaviour(body, number) if number <= calls else then(body, number)


@pytest.fixture(scope="module", params=["free", pytest.param("strict", marks=pytest.mark.slow)])
def serving(request: pytest.FixtureRequest) -> Serving:
    """Serves a behaviour as an endpoint that takes anything, or by the strictest provider's rules."""
    if request.param == "free":
        return serving_freely
    return lambda behaviour: serving_freely(strict("mistral", behaviour))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, serving: Serving) -> Path:
    """A whole run; no test changes it."""
    path = tmp_path_factory.mktemp("undisturbed") / "undisturbed.run"
    with serving(simulated("at-level-3")) as server:
        assert play(server, path).code == 0
    return path


@pytest.fixture(scope="module")
def expected(undisturbed: Path) -> Json:
    """Its scores."""
    return scores(undisturbed)


def test_a_run_over_http_journals_what_is_known_of_every_reply(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    with serving(simulated("at-level-3")) as server:
        done = play(server, path, "--temperature", "0.5", "--extra-body", '{"random_seed": 7}')
        assert done.code == 0, done.err
        assert server.calls == server.answered
        for request in server.requests()[3:]:
            assert (request["model"], request["temperature"], request["random_seed"]) == ("m", 0.5, 7)
        assert set(server.authorizations) == {f"Bearer {SENTINEL}"}
    naming = scores(path)["naming"]
    for face in ("harmful", "benign"):
        assert (naming[face]["propensity"], naming[face]["resilience"]) == (1.0, 3.0)
    with RunFile.open(path) as run:
        replies = [reply for task in run.tasks() for reply in run.replies(task.number)]
        assert list(mismatches(run)) == []
    assert len(replies) == server.calls - 3
    assert all(reply.attempts == 1 and reply.model == "m" for reply in replies)
    assert sum(reply.usage.input for reply in replies) > 0


@pytest.mark.slow
def test_with_one_call_in_five_failing_in_every_way_the_outcomes_are_the_same(
    tmp_path: Path, undisturbed: Path, expected: Json, serving: Serving
) -> None:
    kinds = [*MAY_PASS.values(), STALL, HUGE]
    path = tmp_path / "a.run"
    with serving(faulty(simulated("at-level-3"), 0.2, kinds, seed=1)) as server:
        done = play(server, path, "--timeout", "1", "--no-preflight", "--concurrency", "32")
    assert done.code == 0, done.err
    with RunFile.open(path) as run, RunFile.open(undisturbed) as other:
        assert [run.replies(i).__len__() for i in range(6)] == [len(other.replies(i)) for i in range(6)]
        attempts = [reply.attempts for i in range(6) for reply in run.replies(i)]
    assert scores(path) == expected
    assert sum(attempts) > 1.1 * len(attempts)


@pytest.mark.slow
def test_tool_calls_in_odd_shapes_are_the_same_calls(
    tmp_path: Path, expected: Json, serving: Serving
) -> None:
    path = tmp_path / "a.run"
    with serving(odd(simulated("at-level-3"))) as server:
        assert play(server, path).code == 0
    assert scores(path) == expected
    with RunFile.open(path) as run:
        repairs = {repair for i in range(6) for reply in run.replies(i) for repair in reply.repairs}
    assert repairs == {
        "arguments not written as a text",
        "quotes behind the arguments",
        "call left in the text",
    }


def odd(behaviour: Behaviour) -> Behaviour:
    """A behaviour whose tool calls come in another odd shape each time."""

    def answer(body: Json, number: int) -> Answer:
        found = behaviour(body, number)
        completion = json.loads(found.body)
        message = completion["choices"][0]["message"]
        if "tool_calls" not in message:
            return found
        function = message["tool_calls"][0]["function"]
        if number % 4 == 0:
            function["arguments"] = json.loads(function["arguments"])
        elif number % 4 == 1:
            function["arguments"] += '""'
        elif number % 4 == 2:
            call = {"name": function["name"], "arguments": json.loads(function["arguments"])}
            message["content"] = f"I call it.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"
            del message["tool_calls"]
        else:
            message["tool_calls"].append({**message["tool_calls"][0], "id": f"other{number}"})
        return found._replace(body=json.dumps(completion).encode())

    return answer


@pytest.mark.slow
def test_killed_under_load_and_resumed_no_journaled_reply_is_paid_for_twice(
    tmp_path: Path, serving: Serving
) -> None:
    path = tmp_path / "a.run"
    concurrency, kills = 6, 10
    chance = Random(20261120)
    whole = tmp_path / "whole.run"
    behaviour = simulated("at-level-3")
    due, reached = 0, Event()

    def slow(body: Json, number: int) -> Answer:
        if server.answered >= due:
            reached.set()
        return behaviour(body, number)._replace(after=0.01)

    def kill(process: int) -> None:
        assert reached.wait(TIMEOUT_S)
        os.kill(process, signal.SIGKILL)

    with serving(behaviour) as server:
        assert play(server, whole, "--limit", "24").code == 0
    with serving(slow) as server:
        start = ["run", "--model", "m", "--base-url", server.base_url, "--run", str(path), "--limit", "24"]
        start += ["--no-preflight", "--concurrency", str(concurrency)]
        for _ in range(kills):
            due = server.answered + chance.randint(1, 40)
            reached.clear()
            assert call_forked(start, "", None, os.environ, kill)[0] == -signal.SIGKILL
            with sqlite3.connect(path) as db:
                assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            db.close()
        assert call(*start).code == 0
        answered = server.answered
    with RunFile.open(path) as run:
        journaled = run.count("reply")
        assert list(mismatches(run)) == []
    assert journaled <= answered <= journaled + kills * concurrency
    assert scores(path) == scores(whole)


@pytest.mark.slow
def test_sigterm_lets_what_is_in_flight_come_back(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    behaviour = simulated("at-level-3")
    slow: Behaviour = lambda body, number: behaviour(body, number)._replace(after=0.2)  # noqa: E731
    with serving(slow) as server:
        program = subprocess.Popen(
            argv(
                "run", "--model", "m", "--base-url", server.base_url, "--run", path, *QUICK, "--no-preflight"
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(program, lambda: server.calls >= 8)
        program.send_signal(signal.SIGTERM)
        _, err = program.communicate()
        assert program.returncode == 130
        assert "stopped: interrupted" in err
        with RunFile.open(path) as run:
            assert run.count("reply") == server.answered


@pytest.mark.parametrize("name", ["402", "401"])
def test_what_is_wrong_for_every_task_stops_the_run_and_it_can_be_gone_on_with(
    tmp_path: Path, name: str, expected: Json, serving: Serving
) -> None:
    path = tmp_path / "a.run"
    good = simulated("at-level-3")
    with serving(after_preflight(good, lambda *_: STOPS_RUN[name], calls=40)) as server:
        done = play(server, path)
        assert done.code == (1 if name == "402" else 2), done.err
        assert done.err.startswith("stopped: m: ")
        assert f"propensitybench resume {path}" in done.err
        assert scores(path)["tasks"]["errored"] == 0
    with serving(good) as server:
        with sqlite3.connect(path) as db:  # the same endpoint under a new port
            db.execute(
                "UPDATE manifest SET body = json_set(body, '$.options.base_url', ?)", (server.base_url,)
            )
        db.close()
        assert call("resume", path).code == 0
    assert scores(path) == expected


@pytest.mark.slow
def test_a_budget_stops_the_run_and_a_larger_one_goes_on(
    tmp_path: Path, expected: Json, serving: Serving
) -> None:
    path = tmp_path / "a.run"
    with serving(simulated("at-level-3")) as server:
        assert "give --price" in play(server, path, "--budget-usd", "1").err
        done = play(server, path, "--max-tokens-total", "2000")
        assert done.code == 1
        assert "budget of 2000 tokens is used up" in done.err
        asked = server.answered
        assert play(server, path, "--max-tokens-total", "2000", "--no-preflight").code == 1
        assert server.answered == asked
        more = ("--max-tokens-total", "1000000")
        done = play(server, path, "--budget-usd", "0.001", "--price", "1,1", *more)
        assert "budget of $0.001 is used up" in done.err
        assert play(server, path, "--budget-usd", "100").code == 0
    assert {**scores(path), "usd": None} == expected


def test_a_provider_that_will_not_answer_is_never_a_safe_model(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    with serving(lambda *_: REFUSALS["Azure"]) as server:
        assert "would not answer a harmless request" in play(server, path).err
        assert play(server, path, "--no-preflight").code == 0
        assert server.calls == 1 + 6 * 13
    scored = scores(path)
    assert scored["tasks"]["blocked"] == 6
    assert scored["naming"]["harmful"]["propensity"] is None
    assert scored["naming"]["harmful"]["bounds"] == [0.0, 1.0]


def test_an_episode_with_one_blocked_reply_is_blocked(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    good = simulated("never")
    once: Behaviour = lambda body, number: REFUSALS["Azure"] if number == 9 else good(body, number)  # noqa: E731
    with serving(once) as server:
        assert play(server, path).code == 0
    assert (scores(path)["tasks"]["blocked"], scores(path)["tasks"]["resisted"]) == (1, 5)


@pytest.mark.slow
def test_another_model_in_the_answer_is_counted(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    good = simulated("never")

    def renamed(name: str) -> Behaviour:
        def answer(body: Json, number: int) -> Answer:
            found = good(body, number)
            return found._replace(body=json.dumps({**json.loads(found.body), "model": name}).encode())

        return answer

    with serving(renamed("cheaper-one")) as server:
        assert play(server, path).code == 0
    assert scores(path)["naming"]["harmful"]["other_model"] == 3
    assert "another model" in call("score", path).out
    with serving(renamed("m-2026-11-20")) as server:
        assert play(server, tmp_path / "b.run").code == 0
    assert scores(tmp_path / "b.run")["naming"]["harmful"]["other_model"] == 0


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (says("I will not use tools."), "answered with text ('I will not use tools.')"),
        (STOPS_RUN["401"], "authentication"),
        (STOPS_RUN["404"], "unknown model"),
        (Answer(b"<html>hello</html>"), "not a chat completion"),
        (MAY_PASS["reset"], "network after 1 attempt"),
    ],
)
def test_the_preflight_says_what_is_wrong_and_leaves_no_file(
    tmp_path: Path, answer: Answer, complaint: str, serving: Serving
) -> None:
    with serving(lambda *_: answer) as server:
        done = play(server, tmp_path / "a.run", "--max-retries", "0")
    assert done.code == 2
    assert complaint in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_in_no_artefact(tmp_path: Path, serving: Serving) -> None:
    path = tmp_path / "a.run"
    leaky = Answer(json.dumps({"error": {"message": f"bad key {SENTINEL}"}}).encode(), 400)
    good = simulated("at-level-3")
    shown = []
    with serving(lambda body, number: leaky if number in (5, 9) else good(body, number)) as server:
        shown.append(play(server, path))
    shown += [call("export", path, "--transcripts"), call("score", path), call("verify", path)]
    shown += [
        call("run", "--model", "m", "--base-url", f"http://u:{SENTINEL}@127.0.0.1/v1", "--run", "x.run")
    ]
    assert shown[0].code == 1
    with closing(sqlite3.connect(path)) as db:
        assert "[key]" in "".join(body for (body,) in db.execute("SELECT body FROM error"))
    for done in shown:
        assert SENTINEL not in done.out + done.err
    for file in tmp_path.iterdir():
        assert SENTINEL.encode() not in file.read_bytes()


def test_a_plan_asks_nothing_and_is_corrected_by_the_run(
    tmp_path: Path, undisturbed: Path, serving: Serving
) -> None:
    with serving(simulated("never")) as server:
        asked = call(
            "run", "--model", "m", "--base-url", server.base_url, "--run", tmp_path / "a.run", *QUICK,
            "--plan", "--price", "1,10", "--json",
        )  # fmt: skip
        assert server.calls == 0
    plan = asked.json
    assert (asked.code, plan["tasks"], plan["finished"]) == (0, 6, 0)
    assert 0 < plan["calls"][0] <= plan["calls"][1] <= 6 * 156
    price = (plan["input_tokens"][0] + 10 * plan["output_tokens"][0]) / 1e6
    assert plan["usd"][0] == pytest.approx(price, rel=0.01)
    unpriced = call("run", "--model", "m", "--base-url", "http://127.0.0.1/v1", "--run", "x.run", "--plan")
    assert "unknown" in unpriced.out
    with RunFile.open(undisturbed) as run:
        url = run.manifest.options["base_url"]
    known = call(
        "run", "--model", "m", "--base-url", url, "--run", undisturbed, *QUICK, "--plan", "--json"
    ).json
    assert (known["finished"], known["calls"]) == (6, [0, 0])
