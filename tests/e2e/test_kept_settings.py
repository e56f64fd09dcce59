"""`resume` plays a run as it was played: budget, price, concurrency and the rest are kept in the run file."""

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.openai_server import Answer, Json, Server, serving, simulated
from helpers.program import argv, call, hear_interrupts, until
from helpers.run_edits import edit

import propensitybench as pb

# At --price 1,4 a reply costs 5 cents.
USAGE = {"prompt_tokens": 40_000, "completion_tokens": 2_500}
LIMITS = ("--concurrency", "4", "--price", "1,4", "--budget-usd", "1")


@pytest.fixture
def server() -> Iterator[Server]:
    agent = simulated("at-level-9")

    def answer(body: Json, number: int) -> Answer:
        made = agent(body, number)
        return made._replace(body=json.dumps({**json.loads(made.body), "usage": USAGE}).encode())

    with serving(answer) as one:
        yield one


def begun(server: Server, path: Path) -> list[str]:
    """The command of a run of 120 tasks."""
    model = ("--model", "persona/competent-cracks-at-9", "--base-url", server.base_url)
    return ["run", *model, "--run", str(path), "--limit", "60", *LIMITS]


def kept(path: Path) -> dict[str, object]:
    with pb.RunFile.open(path) as file:
        return dict(file.execution)


@pytest.mark.slow
def test_a_budget_is_that_of_the_whole_run_until_another_is_typed(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "b.run"
    stopped = call(*begun(server, path))
    again = f"  propensitybench resume {path} --budget-usd N\n"
    ending = f"tasks are unfinished; resume the run with a higher budget:\n{again}"
    assert stopped.code == 1
    assert "stopped: the budget of $1 is used up ($1." in stopped.err
    assert stopped.err.endswith(ending)
    calls = server.calls
    assert call(*shlex.split(again)[1:]).code == 2
    plain = call("resume", path)
    assert (plain.code, server.calls) == (1, calls)
    assert plain.err.startswith(
        f"as before: {' '.join(LIMITS[:2])} --budget-usd 1 --price 1,4\nstopped: the budget of $1 "
    )
    assert plain.err.endswith(ending)
    more = call("resume", path, "--budget-usd", "3")
    assert more.code == 1
    assert "stopped: the budget of $3 is used up ($3." in more.err
    assert server.most_at_once <= 4
    calls = server.calls
    assert "stopped: the budget of $3 is used up" in call("resume", path).err
    assert server.calls == calls
    pb.run("persona/competent-cracks-at-9", path, base_url=server.base_url, limit=60)
    assert "the budget of $3 is used up" in caplog.text
    assert "; a higher one resumes the run" in caplog.text
    assert server.calls == calls


def test_the_command_that_is_printed_after_ctrl_c_plays_on_as_before(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "b.run"
    process = subprocess.Popen(
        argv(*begun(server, path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
    )
    until(process, lambda: server.calls > 5)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1]
    assert process.returncode == 130, error
    words = shlex.split(error.splitlines()[-1])
    assert words == ["propensitybench", "resume", str(path)]
    done = call(*words[1:])
    assert "stopped: the budget of $1 is used up ($1." in done.err
    assert f"as before: {' '.join(LIMITS[:2])} --budget-usd 1 --price 1,4\n" in done.err
    assert server.most_at_once <= 4


def test_all_that_resume_takes_is_kept_but_places_and_secrets(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "b.run"
    more = ["--rpm", "6000", "--tpm", "90000000", "--timeout", "30", "--max-retries", "2", "--no-preflight"]
    secret = {"PROPENSITYBENCH_API_KEY": "sk-a-key-of-the-user", "HTTPS_PROXY": "http://me:word@127.0.0.1:9"}
    call(*begun(server, path), *more, "--max-tokens-total", "100000", "--shard", "1/2", env=secret)
    assert kept(path) == {
        "concurrency": 4, "timeout": 30, "max_retries": 2, "rpm": 6000, "tpm": 90_000_000, "budget_usd": 1,
        "max_tokens_total": 100_000, "price": [1, 4], "preflight": False,
    }  # fmt: skip
    assert call("merge", path, "--run", tmp_path / "merged.run").code == 0
    assert kept(tmp_path / "merged.run") == kept(path)
    assert "the budget of 100000 tokens is used up" in call("resume", tmp_path / "merged.run").err


OF_SOMEBODY_ELSE = (
    ('{"concurrency": 0}', "concurrency: must be a whole number of 1 or more, found 0"),
    ('{"concurrency": 1.5}', "concurrency: must be a whole number of 1 or more, found 1.5"),
    ('{"timeout": 1e9}', "timeout: must be from 1 to 86400, found"),
    ('{"budget_usd": -1}', "budget_usd: must be 0 or more, found -1"),
    ('{"price": [0]}', "price: must be US dollars per million tokens"),
    ('{"trust_endpoint": true}', "unknown setting 'trust_endpoint'"),
    ('{"workers": 3}', "unknown setting 'workers'"),
    ('{"base_url": "http://198.51.100.1/v1"}', "is damaged (how it was played: "),
    ('{"concurrency": ' + "[" * 5000 + "]" * 5000 + "}", "is damaged (how it was played: "),
)


def test_a_file_of_somebody_else_keeps_only_what_could_be_typed(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "b.run"
    call(*begun(server, path))
    calls = server.calls
    for body, complaint in OF_SOMEBODY_ELSE:
        edit(path, "UPDATE execution SET body = ?", body)
        done = call("resume", path)
        assert (done.code, len(done.err.splitlines()), server.calls) == (2, 1, calls)
        assert f"{path}: " in done.err
        assert complaint in done.err
