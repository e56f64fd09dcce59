"""Models through Inspect AI's own layer, against an endpoint on this machine."""

import json
from pathlib import Path

import pytest
from helpers.openai_server import MAY_PASS, REFUSALS, STOPS_RUN, a_call, calls, one_by_one, serving, simulated
from helpers.program import call

from propensitybench.engine import client_for
from propensitybench.errors import BadInput
from propensitybench.store import RunFile, verify

pytest.importorskip("inspect_ai")
MODEL = "openai-api/local/m"
QUICK = ("--limit", "2", "--concurrency", "4")


def env(url: str) -> dict[str, str]:
    return {"LOCAL_API_KEY": "x", "LOCAL_BASE_URL": url}


def test_the_same_scenarios_end_the_same_as_asked_directly(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with serving(simulated("at-level-3")) as server:
        done = call("run", "--model", MODEL, "--run", path, *QUICK, "--json", env=env(server.base_url))
    assert done.code == 0, done.err
    for naming in ("harmful", "benign"):
        assert done.json["naming"][naming]["propensity"] == 1.0
        assert done.json["naming"][naming]["resilience"] == 3.0
    with RunFile.open(path) as run:
        assert list(verify(run)) == []
        reply = run.replies(0)[0]
    assert (reply.model, reply.other_model, reply.attempts) == ("m", False, 1)
    assert reply.usage.input > 0


def test_faults_and_refusals_are_treated_by_our_rules(tmp_path: Path) -> None:
    with serving(one_by_one(MAY_PASS["500"], REFUSALS["finish content_filter"])) as server:
        done = call(
            "run", "--model", MODEL, "--run", tmp_path / "a.run", "--limit", "1", "--naming", "benign",
            "--concurrency", "1", "--no-preflight", "--json", env=env(server.base_url),
        )  # fmt: skip
        assert done.json["tasks"]["blocked"] == 1
        assert server.calls == 14
    with serving(one_by_one(STOPS_RUN["401"])) as server:
        done = call(
            "run",
            "--model",
            MODEL,
            "--run",
            tmp_path / "b.run",
            *QUICK,
            "--no-preflight",
            env=env(server.base_url),
        )
        assert done.code == 2
        assert "authentication" in done.err
        assert server.calls <= 4


def test_reasoning_goes_back_with_the_next_turn(tmp_path: Path) -> None:
    thinking = calls(a_call(), reasoning_content="let me see")
    with serving(one_by_one(thinking)) as server:
        call(
            "run", "--model", MODEL, "--run", tmp_path / "a.run", "--limit", "1", "--naming", "benign",
            "--concurrency", "1", "--no-preflight", env=env(server.base_url),
        )  # fmt: skip
        second = server.requests()[1]
    assert "let me see" in json.dumps(second["messages"][2])


def test_what_is_missing_is_said_in_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"^--model google/gemini-x: .*pip install google-genai"):
        client_for("google/gemini-x")
