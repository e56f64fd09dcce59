"""``propensitybench judge`` as a user calls it."""

import os
import shlex
import signal
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from helpers.judging import answers, played, words_of_agent
from helpers.openai_server import Answer, Json, says, serving
from helpers.program import argv, call, until

SCOUTED = Path(__file__).parents[1] / "inspect_adapter" / "scout" / "justification.parquet"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return played(tmp_path / "study.run", 4)


def test_a_judge_without_a_key_from_question_to_table(run: Path) -> None:
    planned = call("judge", run, "--judge", "keyless/words", "--plan", "--json")
    assert planned.json["calls"] == 24
    assert planned.json["episodes"] == {"awareness": 8, "justification": 8, "noticed-rule": 8}
    assert planned.json["usd"] == 0
    done = call("judge", run, "--judge", "keyless/words")
    assert done.code == 0, done.err
    for title in ("justification", "spoken awareness of being tested", "recalled the rule before the act"):
        assert f"{title}: 8 of 8 episodes read" in done.out
    again = call("judge", run, "--question", "awareness", "--json")
    (awareness,) = again.json["questions"]
    assert awareness["readers"][0]["categories"] == {"plain": 0, "hint": 0, "none": 8}
    assert [share["judges"]["value"] for share in awareness["shares"]] == [0, 0, 1]
    assert call("verify", run).code == 0


@pytest.mark.parametrize("question", ["justification", "own question.toml"])
def test_the_command_that_it_names_runs_as_it_stands(run: Path, question: str) -> None:
    text = (files("propensitybench.judging") / "data" / "questions" / "justification.toml").read_text("utf-8")
    (run.parent / "own question.toml").write_text(text.replace('"justification"', '"mine"', 1), "utf-8")
    judge = ("judge", "study.run", "--question", question, "--judge", "keyless/words")
    lines = call(*judge, cwd=run.parent).out.splitlines()
    (command,) = (line.strip() for line in lines if line.startswith("  propensitybench label study.run "))
    done = call(*shlex.split(command)[1:], cwd=run.parent)
    assert (done.code, done.err) == (0, "")
    assert "8 episodes to read in a browser" in done.out


def test_what_cannot_be_done_is_one_sentence(run: Path, tmp_path: Path) -> None:
    for arguments, sentence in (
        ((), "holds no answers; ask with: propensitybench judge"),
        (("--judge", "keyless/words", "--question", "why"), "--question: unknown question 'why'"),
        (("--judge", "simulated/never"), "--judge simulated/never: cannot read"),
        (("--judge", "openai/gpt-5-mini"), "needs a key; type: export OPENAI_API_KEY"),
        (("--read-scout", str(tmp_path)), "--read-scout: give one --question"),
        (("--read-scout", str(SCOUTED), "--question", "justification"), "results is about"),
    ):
        done = call("judge", run, *arguments, env={"OPENAI_API_KEY": ""})
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
        assert sentence in done.err


def test_without_any_reply_it_says_why(run: Path) -> None:
    nowhere = ("--judge", "m", "--base-url", "http://127.0.0.1:9/v1", "--max-retries", "0")
    done = call("judge", run, "--question", "awareness", *nowhere)
    assert (done.code, done.out) == (1, "")
    assert "8 requests got no reply; the last error: " in done.err
    assert "8 of 8 replies are missing; the same command asks for them" in done.err


def test_a_judge_that_never_gives_an_answer_is_told_and_is_no_success(run: Path) -> None:
    with serving(lambda _body, _number: says("It had no choice.")) as server:
        here = ("--judge", "m", "--base-url", server.base_url)
        done = call("judge", run, "--question", "awareness", *here)
    assert done.code == 1
    assert "m: 8 of 8 answers are unreadable; see docs/judging.md" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_what_is_left_and_the_same_command_asks_for_it(run: Path, number: int) -> None:
    def behave(body: Json, count: int) -> Answer:
        reply = answers("necessity", words_of_agent(body)[-1])
        return reply if count < 4 or stopped else reply._replace(after=60.0)

    stopped: list[int] = []
    command = ["judge", str(run), "--question", "justification", "--judge", "one", "--concurrency", "2"]
    environment = {key: value for key, value in os.environ.items() if "KEY" not in key}
    with serving(behave) as server:
        command += ["--base-url", server.base_url]
        process = subprocess.Popen(argv(*command), env=environment, text=True, stderr=subprocess.PIPE,
                                   stdout=subprocess.PIPE)  # fmt: skip
        until(process, lambda: server.calls == 5)
        process.send_signal(number)
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 130
        assert "stopped: interrupted; 5 of 8 replies are missing; the same command asks for them" in error
        stopped.append(number)
        assert call(*command).code == 0
        assert server.calls == 10
