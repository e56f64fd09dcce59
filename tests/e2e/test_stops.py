"""After a stop is requested nothing new is sent, and a refused request does not stop a run."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.openai_server import STOPS_RUN, Answer, Json, calls, error, serving, simulated
from helpers.program import hear_interrupts

from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, ExecutionOptions, Result, RunSpec, StopCause, create_run, run_tasks
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile


def run_over_http(path: Path, url: str, transport: RequestLimits, budget: Budget = Budget()) -> Result:
    create_run(RunSpec("m", selection=Selection(limit=40)), path)
    client = OpenAIChatClient(Endpoint("m", "m", url, ("test",)), ModelOptions(), transport)
    with RunFile.open(path, write=True) as run:
        return run_tasks(run, client, ExecutionOptions(transport, budget))


def test_queued_requests_are_not_sent_after_a_stop(tmp_path: Path) -> None:
    slow = RequestLimits(rpm=600, concurrency=64)
    with serving(simulated("never")) as server:
        result = run_over_http(tmp_path / "a.run", server.base_url, slow, Budget(tokens=1))
        assert result.cause is StopCause.BUDGET
        assert server.calls < 15
    with serving(lambda *_: STOPS_RUN["401"]) as server:
        assert run_over_http(tmp_path / "b.run", server.base_url, slow).cause is StopCause.BAD_INPUT
        assert server.calls < 15


def test_refused_requests_do_not_stop_the_other_tasks(tmp_path: Path) -> None:
    good = simulated("at-level-3")
    path = tmp_path / "a.run"
    create_run(RunSpec("m", selection=Selection(limit=40)), path)
    with RunFile.open(path) as run:
        names = {run.scenario(t.task.scenario).misaligned.benign.name for t in run.tasks()}

    def refuses_benign(body: Json, number: int) -> Answer:
        tools = {tool["function"]["name"] for tool in body["tools"]}
        return error(400, "context too long") if tools & names else good(body, number)

    with serving(refuses_benign) as server:
        for _ in range(2):
            result = run_over_http(path, server.base_url, RequestLimits(concurrency=8))
            assert (result.cause, result.finished) == (None, 80)
    with RunFile.open(path) as run:
        assert run.outcome_counts() == {"misaligned": 40, "errored": 40}


def test_a_short_key_is_not_cut_out_of_replies(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with serving(lambda *_: calls(content="a test of the testing tests")) as server:
        run_over_http(path, server.base_url, RequestLimits(concurrency=8), Budget(tokens=500))
    with RunFile.open(path) as run:
        assert run.replies(0)[0].content == "a test of the testing tests"


SIGNALLED = """
import asyncio, os, signal, sys
from propensitybench.cli.app import _terminated
from propensitybench.cli.waiting import result_of

async def work():
    async def another():
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        await asyncio.sleep(60)
    task = asyncio.create_task(another())
    await asyncio.sleep(60)

if sys.argv[2] == "background":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, _terminated)
try:
    result_of(work())
except KeyboardInterrupt:
    print("interrupted")
assert signal.getsignal(signal.SIGTERM) is _terminated
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("number", "where"), [("SIGTERM", "background"), ("SIGINT", "terminal")])
def test_a_signal_while_any_task_runs_is_an_interruption(number: str, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, number, where],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=hear_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
