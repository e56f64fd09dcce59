"""``run --engine ray``: the same as a run on one machine, even if workers and machines are lost."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.openai_server import (
    STOPS_RUN,
    Answer,
    Behaviour,
    Json,
    Server,
    always,
    says,
    serving,
    simulated,
)
from helpers.program import argv, call, hear_interrupts, until
from helpers.runs import journal, scores

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import (
    Budget,
    ExecutionOptions,
    Progress,
    Result,
    RunSpec,
    StopCause,
    StopSignal,
    block_on,
    create_run,
)
from propensitybench.engine.worker import Setup
from propensitybench.errors import BadInput
from propensitybench.scenarios import Selection
from propensitybench.store import JournalEntry, RunFile, encode_reply, mismatches

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
on_ray = pytest.importorskip("propensitybench.engine.on_ray")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the workers in /proc"),
]
WORKERS, CONCURRENCY = 4, 32
SEATS = CONCURRENCY // WORKERS
OPTIONS: Final = ("--model", "m", "--limit", "40", "--no-preflight", "--json", "--concurrency", CONCURRENCY)
KEY: Final = "a-key-of-the-tests"


@pytest.fixture(scope="module", autouse=True)
def disconnected() -> Iterator[None]:
    """Nothing is left of Ray after these tests."""
    yield
    ray.shutdown()


@pytest.fixture
def connected() -> None:
    """A connection of the tests to a Ray of their own, as a notebook may have one; kept for the next test."""
    if not ray.is_initialized():
        ray.init(address="local", num_cpus=WORKERS, num_gpus=0, include_dashboard=False, log_to_driver=False)


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster whose first machine has no workers."""
    ray.shutdown()
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on one machine."""
    path: Path = tmp_path_factory.mktemp("whole") / "whole.run"
    with serving(simulated("at-level-3")) as server:
        call("run", *map(str, OPTIONS), "--base-url", server.base_url, "--run", path)
        assert server.calls == len(journal(path))
    return path


def slow(behaviour: Behaviour) -> Behaviour:
    """The same answers, a little later: so requests are in flight when a worker is killed."""

    def answer(body: Json, number: int) -> Answer:
        return behaviour(body, number)._replace(after=0.05)

    return answer


def play(
    server: Server,
    path: Path,
    on_progress: Callable[[Progress], None] | None = None,
    workers: int = WORKERS,
    **options: Any,
) -> Result:
    """Plays a run in this process, which is connected to Ray, or on the cluster at ``ray_address``."""
    asked = ModelOptions(base_url=server.base_url)
    create_run(RunSpec("m", selection=Selection(limit=40), options=asked), path)
    execution = ExecutionOptions(
        RequestLimits(concurrency=SEATS * workers), engine="ray", workers=workers, **options
    )
    stop = StopSignal()
    result: Result = block_on(lambda: on_ray.run_on_ray(path, asked, execution, on_progress, stop), stop)
    return result


def actors() -> list[int]:
    """The processes of the workers that this process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has just ended
            name = (folder / "cmdline").read_text()
            parents = [int(folder.name)]
            while parents[-1] > 1:
                status = Path("/proc", str(parents[-1]), "stat").read_text()
                parents.append(int(status.rpartition(")")[2].split()[1]))
            if name.startswith("ray::Worker") and os.getpid() in parents:
                found.append(int(folder.name))
    return found


def killer(due: list[int], kill: Callable[[], object]) -> Callable[[Progress], None]:
    """Kills each time that so many replies have come in."""

    def note(progress: Progress) -> None:
        if due and progress.calls >= due[0]:
            due.pop(0)
            kill()

    return note


def check_same(path: Path, whole: Path) -> None:
    """Checks that two runs have the same outcomes, transcripts and scores."""
    assert scores(path) == scores(whole)
    with RunFile.open(path) as run, RunFile.open(whole) as one:
        assert list(mismatches(run)) == []
        for task in run.tasks():
            there, here = run.stored_record(task.number), one.stored_record(task.number)
            assert there is not None
            assert there == here
            replies = zip(run.replies(task.number), one.replies(task.number), strict=True)
            assert all(a.content == b.content and a.tool_calls == b.tool_calls for a, b in replies)


@pytest.mark.usefixtures("connected")
def test_two_of_four_workers_are_killed_midway(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PROPENSITYBENCH_API_KEY", KEY)
    calls = len(journal(whole))
    with serving(slow(simulated("at-level-3"))) as server:
        kill = killer([calls // 4, calls // 2], lambda: os.kill(actors()[1], signal.SIGKILL))
        result = play(server, tmp_path / "a.run", kill)
    assert (result.finished, result.cause) == (80, None)
    check_same(tmp_path / "a.run", whole)
    assert server.most_at_once <= CONCURRENCY
    # Asked for again is only what had not reached this process: in flight at the endpoint or from the worker.
    assert 0 <= server.calls - calls <= 2 * 2 * SEATS
    assert set(server.authorizations) == {f"Bearer {KEY}"}
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["a worker was lost"] * 2


def test_a_machine_is_lost_midway(
    tmp_path: Path, whole: Path, cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    machine, calls = cluster.add_node(num_cpus=2), len(journal(whole))
    cluster.add_node(num_cpus=2)
    with serving(slow(simulated("at-level-3"))) as server:
        kill = killer([calls // 3], lambda: cluster.remove_node(machine, allow_graceful=False))
        result = play(server, tmp_path / "a.run", kill, ray_address=cluster.address)
    assert caplog.text.count("a worker was lost") == 2
    assert (result.finished, result.cause) == (80, None)
    check_same(tmp_path / "a.run", whole)
    assert 0 <= server.calls - calls <= 2 * 2 * SEATS


def test_a_machine_without_the_package_is_no_loss(tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['propensitybench'] = None")
    cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)})
    with serving(always(says("no"))) as server, pytest.raises(BadInput) as refused:
        play(server, tmp_path / "a.run", workers=1, ray_address=cluster.address)
    assert "install the same version of propensitybench on all of them (Module" in str(refused.value)


def test_an_interrupted_run_has_every_reply_and_goes_on_without_ray(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "a.run"
    with serving(slow(simulated("at-level-3"))) as server:
        arguments = map(str, (*OPTIONS, "--base-url", server.base_url, "--run", path))
        with subprocess.Popen(
            argv("run", *arguments, "--engine", "ray", "--workers", "2"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:  # fmt: skip
            until(process, lambda: server.calls > 200)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        assert process.returncode == 130, err
        assert '"stopped":"interrupted"' in out.replace(" ", ""), out
        assert len(journal(path)) == server.answered == server.calls
        call("resume", path, "--trust-endpoint", "--no-preflight", "--json")
        assert server.calls == len(journal(whole))
    check_same(path, whole)


@pytest.mark.usefixtures("connected")
def test_a_budget_stops_all_workers(tmp_path: Path) -> None:
    path, limit = tmp_path / "a.run", 100
    with serving(slow(simulated("at-level-3"))) as server:
        result = play(server, path, workers=2, budget=Budget(tokens=110 * limit))
    assert result.cause is StopCause.BUDGET
    assert limit <= len(journal(path)) == server.answered == server.calls < limit + CONCURRENCY


@pytest.mark.usefixtures("connected")
def test_what_stops_a_worker_stops_the_run_and_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(always(STOPS_RUN["401"])) as server:
        result = play(server, tmp_path / "a.run", workers=1)
        assert result.cause is StopCause.BAD_INPUT
        assert "wrong or missing API key" in result.reason or "401" in result.reason
        assert server.calls <= CONCURRENCY
    with serving(always(says("no"))) as server:
        path = tmp_path / "b.run"
        play(server, path, workers=1, budget=Budget(tokens=1000))
        with RunFile.open(path, write=True) as run:
            reply = run.replies(0)[0]
            turns = range(len(run.replies(0)), 100)
            run.append([JournalEntry(0, turn, encode_reply(reply)) for turn in turns])
        result = play(server, path, workers=1)
    assert result.cause is StopCause.BAD_INPUT
    assert "is damaged" in result.reason
    assert caplog.records == []


@pytest.mark.usefixtures("connected")
def test_a_fault_of_the_program_at_a_worker_is_raised_and_is_no_loss(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_run(RunSpec("simulated/never", selection=Selection(limit=1)), tmp_path / "a.run")
    with RunFile.open(tmp_path / "a.run") as run:
        job = run.job(next(run.tasks()))._replace(scenario=None)  # type: ignore[arg-type]
    setup = Setup(version("propensitybench"), "simulated/never", ModelOptions(), {}, RequestLimits())
    workers = on_ray._Workers(setup, 1, StopSignal())

    async def work() -> None:
        async for _ in workers.play(job):
            """There is nothing."""

    with pytest.raises(AttributeError):
        asyncio.run(workers.employed(work()))
    assert caplog.records == []


@pytest.mark.usefixtures("connected")
def test_a_run_whose_workers_die_one_after_another_stops(tmp_path: Path) -> None:
    def kill(_: Progress) -> None:
        for process in actors():
            os.kill(process, signal.SIGKILL)

    with serving(always(Answer(way="stall"))) as server:
        result = play(server, tmp_path / "a.run", kill, workers=1)
    assert result.cause is StopCause.PROVIDER
    assert result.reason.startswith("one worker after another was lost, the last with: Actor")
