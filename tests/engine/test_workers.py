"""A run on several workers: the same as on one, whoever is killed."""

import asyncio
import random
from pathlib import Path

import pytest
from helpers.clients import at
from helpers.runs import finish, journal, make, scores
from helpers.worker_processes import Processes

from propensitybench.engine import Budget, Progress, Result, StopCause, StopSignal
from propensitybench.engine.exchange import Rates, Report
from propensitybench.engine.local import begin
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.session import Session
from propensitybench.engine.worker import blank_copy
from propensitybench.engine.workers import WorkersPlayer, slots_of
from propensitybench.store import RunFile, verify


def play(path: Path, cluster: Processes, slots: list[int], options: ExecutionOptions = at(1)) -> Result:
    """Plays a run file on the workers of a cluster."""

    async def session() -> Result:
        with RunFile.open(path, write=True) as run:
            stop = StopSignal()
            spending = begin(run, options)
            player = WorkersPlayer(run, cluster, slots, Rates(), spending, stop)
            return await Session(run, player, spending, stop, None).run()

    return asyncio.run(session())


def fingerprints(path: Path) -> list[tuple[int, str]]:
    with RunFile.open(path) as run:
        return run._db.execute("SELECT task, fingerprint FROM outcome ORDER BY task").fetchall()


@pytest.mark.slow
def test_workers_that_are_killed_leave_the_run_as_one_process_makes_it(tmp_path: Path) -> None:
    whole, shared = make(tmp_path / "whole.run", limit=60), make(tmp_path / "shared.run", limit=60)
    finish(whole)
    blank_copy(shared, tmp_path / "blank.run")
    chance, reported, kills = random.Random(20261122), 0, [400, 1100]

    def kill(worker: int, report: Report) -> None:
        nonlocal reported
        reported += len(report.entries)
        if kills and reported >= kills[0]:
            kills.pop(0)
            asyncio.get_running_loop().call_later(chance.random() / 3, cluster.kill, worker)

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
