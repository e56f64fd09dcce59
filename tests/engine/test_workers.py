"""A run on several workers: the same as on one, whoever is killed."""

import asyncio
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from helpers.clients import ByTask, at
from helpers.runs import client_of, finish, journal, make, scores
from helpers.worker_processes import Processes

from propensitybench.chat import Reply, Usage
from propensitybench.clients import Client, Conversation, ScriptedClient, says
from propensitybench.engine import Budget, Result, StopCause, StopSignal
from propensitybench.engine.episodes import Entry
from propensitybench.engine.exchange import Order, Rates, Report
from propensitybench.engine.local import begin
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.session import Session
from propensitybench.engine.worker import Worker, rest_of
from propensitybench.engine.workers import Cluster, WorkerLost, WorkersPlayer, slots_of
from propensitybench.errors import ModelError, RunStopped
from propensitybench.scenarios import TaskMetadata
from propensitybench.store import JournalEntry, RunFile, blank_copy, encode_reply, verify

UNLIMITED: Final = Rates()


class Here:
    """Workers in the test's own event loop; what becomes of one that is to start is decided by its client."""

    def __init__(self, blank: Path, client: Callable[[int], Client]) -> None:
        self._blank, self._client = blank, client
        self._workers: dict[int, Worker] = {}

    async def start(self, worker: int, slots: int, replaces: int | None) -> None:  # noqa: ARG002
        path = self._blank.with_name(f"{worker}.run")
        shutil.copy(self._blank, path)
        client = self._client(worker)
        self._workers[worker] = Worker(RunFile.open(path, write=True), client, slots)

    async def exchange(self, worker: int, order: Order) -> Report:
        return await self._workers[worker].exchange(order)

    async def rescue(self, worker: int, lost: int, stored: Mapping[int, int]) -> tuple[Entry, ...]:  # noqa: ARG002
        return rest_of(self._blank.with_name(f"{lost}.run"), stored)

    async def drop(self, worker: int) -> None:
        if worker in self._workers:
            await self._workers.pop(worker).close()

    async def close(self) -> None:
        for worker in list(self._workers):
            await self.drop(worker)


def play(
    path: Path,
    cluster: Cluster,
    slots: list[int],
    options: ExecutionOptions = at(1),
    rates: Rates = UNLIMITED,
) -> Result:
    """Plays a run file on the workers of a cluster."""

    async def session() -> Result:
        with RunFile.open(path, write=True) as run:
            stop = StopSignal()
            spending = begin(run, options)
            player = WorkersPlayer(run, cluster, slots, rates, spending, stop)
            return await Session(run, player, spending, stop, None).run()

    return asyncio.run(session())


def new(folder: Path, limit: int = 20) -> tuple[Path, Path]:
    """A run file, and a blank copy of it."""
    path, blank = make(folder / "a.run", limit=limit), folder / "blank" / "blank.run"
    blank.parent.mkdir()
    blank_copy(path, blank)
    return path, blank


class Failing(ByTask):
    """A simulated client that raises an error at its first request."""

    model = "simulated/o3-like"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def open_task(self, _task: TaskMetadata, _replies: int = 0) -> Conversation:
        raise self._error

    async def close(self) -> None:
        """There is nothing to close."""


def test_the_budget_is_of_all_workers_together(tmp_path: Path) -> None:
    path, blank = new(tmp_path)
    options = ExecutionOptions(budget=Budget(tokens=0))
    result = play(path, Here(blank, lambda _: client_of("simulated/o3-like")), [4, 4], options)
    assert (result.cause, result.finished) == (StopCause.BUDGET, 0)
    # Simulated replies cost nothing, so these are given a price in tokens.
    script = ScriptedClient([Reply("no", usage=Usage(input=100))], "simulated/o3-like")
    result = play(path, Here(blank, lambda _: script), [2, 2], ExecutionOptions(budget=Budget(tokens=3000)))
    assert result.cause is StopCause.BUDGET
    assert "the budget of 3000 tokens is used up" in result.reason
    assert len(journal(path)) > 0
    assert result.finished < 40


@pytest.mark.parametrize("bad_input", [True, False])
def test_a_worker_that_cannot_be_answered_any_more_stops_the_run(tmp_path: Path, bad_input: bool) -> None:
    path, blank = new(tmp_path)
    wrong = Failing(RunStopped("wrong key", bad_input=bad_input))
    sound = ScriptedClient([says("no")] * 10_000, "simulated/o3-like")
    result = play(path, Here(blank, lambda worker: wrong if worker else sound), [1, 1])
    cause = StopCause.BAD_INPUT if bad_input else StopCause.PROVIDER
    assert (result.cause, result.reason) == (cause, "wrong key")
    assert result.finished < result.total == 40


def test_workers_that_cannot_begin_end_the_run_with_the_reason(tmp_path: Path) -> None:
    path, blank = new(tmp_path)

    def none(worker: int) -> Client:
        raise WorkerLost(f"no space for worker {worker}")

    result = play(path, Here(blank, none), [1, 1])
    assert result.cause is StopCause.PROVIDER
    assert result.reason == "one worker after another was lost, the last with: no space for worker 5"


def test_errored_tasks_are_retried_from_where_their_journals_end(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.run", limit=20)
    finish(whole)
    path, blank = new(tmp_path)
    play(path, Here(blank, lambda _: Failing(ModelError("no answer"))), [3, 3])
    assert scores(path).tasks.errored == 40
    with RunFile.open(path, write=True) as run, RunFile.open(whole) as one:
        run.append([JournalEntry(n, 0, encode_reply(one.replies(n)[0])) for n in range(40)])
    (tmp_path / "blank" / "0.run").unlink()
    play(path, Here(blank, lambda _: client_of("simulated/o3-like")), [3, 3])
    assert scores(path) == scores(whole)
    assert journal(path) == journal(whole)


def test_the_slots_of_all_workers_are_the_concurrency() -> None:
    assert slots_of(64, 4) == [16] * 4
    assert slots_of(7, 3) == [3, 2, 2]
    assert slots_of(2, 5) == [1, 1]


def fingerprints(path: Path) -> list[tuple[int, str]]:
    with RunFile.open(path) as run:
        return run._db.execute("SELECT task, fingerprint FROM outcome ORDER BY task").fetchall()


@pytest.mark.slow
def test_workers_that_are_killed_leave_the_run_as_one_process_makes_it(tmp_path: Path) -> None:
    whole, shared = make(tmp_path / "whole.run", limit=60), make(tmp_path / "shared.run", limit=60)
    finish(whole)
    blank_copy(shared, tmp_path / "blank.run")
    chance, reported, kills = random.Random(20261122), 0, [300, 700]

    def kill(worker: int, report: Report) -> None:
        nonlocal reported
        reported += len(report.entries)
        if kills and reported >= kills[0]:
            kills.pop(0)
            asyncio.get_running_loop().call_later(chance.random() / 20, cluster.kill, worker)

    cluster = Processes(tmp_path, tmp_path / "blank.run", kill)
    result = play(shared, cluster, [8, 8, 8])
    assert result == Result(120, 120, None, "")
    assert kills == []
    assert len([old for _, old in cluster.replaced if old is not None]) == 2
    assert scores(shared) == scores(whole)
    assert fingerprints(shared) == fingerprints(whole)
    with RunFile.open(shared) as run, RunFile.open(whole) as one:
        assert list(verify(run)) == []
        assert [run.replies(n) for n in range(120)] == [one.replies(n) for n in range(120)]
    asked = cluster.log.read_text().split("\n")[:-1]
    assert len(journal(shared)) <= len(asked) <= len(journal(shared)) + 2 * 8
