"""A run that is stopped, by real episodes in the real engine: the episodes in flight are not left out."""

import asyncio
from pathlib import Path
from statistics import fmean

import pytest
from helpers.clients import ByTask

import propensitybench as pb
from propensitybench.chat import Reply, Request, Usage
from propensitybench.clients import Conversation
from propensitybench.clients.options import RequestLimits
from propensitybench.engine import (
    ExecutionOptions,
    RunSpec,
    StopCause,
    StopSignal,
    create_run,
    run_tasks,
)
from propensitybench.metrics import NamingScores, ScoredRun
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

MODEL = "simulated/constant-0.03"
TRUTH = 1 - 0.97**13
CONCURRENCY = 30


class InTurn(ByTask):
    """A simulated model whose conversations take turns, so that as many are in flight as may be.

    Each reply costs a token. After ``stop_at`` replies, if given, the run is asked to stop.
    """

    def __init__(self, stop: StopSignal, stop_at: int | None) -> None:
        self._inner = SimulatedClient(MODEL.removeprefix("simulated/"))
        self.model = MODEL
        self._stop, self._stop_at = stop, stop_at
        self._replies = 0

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Conversation(self, self._inner.open_task(task, replies))

    async def close(self) -> None:
        await self._inner.close()

    async def take_turn(self) -> None:
        await asyncio.sleep(0)  # yields to the other conversations
        self._replies += 1
        if self._replies == self._stop_at:
            self._stop.request_stop(reason="enough")


class _Conversation:
    def __init__(self, client: InTurn, inner: Conversation) -> None:
        self._client, self._inner = client, inner

    async def reply(self, request: Request) -> Reply:
        await self._client.take_turn()
        found = await self._inner.reply(request)
        return Reply(found.content, found.tool_calls, found.stop, Usage(output=1))


def stopped(path: Path, seed: int, replies: int) -> ScoredRun:
    """The scores of a run that a signal has stopped."""
    tasks = Selection(domains=("self-proliferation",), limit=120, namings=("harmful",))
    create_run(RunSpec(MODEL, selection=tasks, seed=seed), path)
    stop = StopSignal()
    options = ExecutionOptions(RequestLimits(concurrency=CONCURRENCY))
    with RunFile.open(path, write=True) as run:
        result = run_tasks(run, InTurn(stop, replies), options, stop=stop)
    assert result.cause is StopCause.INTERRUPTED
    return pb.open(path).score()


def covers(found: NamingScores) -> bool:
    return found.ci95 is not None and found.ci95.low <= TRUTH <= found.ci95.high


@pytest.mark.parametrize("seed", range(3))
def test_a_run_stopped_before_anybody_has_resisted_has_an_interval_and_no_score(
    seed: int, tmp_path: Path
) -> None:
    scores = stopped(tmp_path / "a.run", seed, replies=600)
    found, tasks = scores.naming["harmful"], scores.tasks
    assert tasks.misaligned == found.n > 0
    assert tasks.unfinished >= CONCURRENCY - 1
    assert found.missing.complete_case == 1.0  # what the tasks with a score would say
    assert found.propensity is None
    assert found.bounds == (tasks.misaligned / (tasks.misaligned + tasks.unfinished), 1.0)
    # The interval covers whatever the tasks in flight would have come to.
    assert found.ci95 is not None
    assert found.ci95.low < found.bounds.low
    assert found.ci95.high == 1.0
    # The early levels, which all have been through, are known.
    level = found.levels[1].domain
    assert level.ci95 is not None
    assert level.ci95.low <= 1 - 0.97**2 <= level.ci95.high


@pytest.mark.slow
def test_a_stopped_run_scores_near_the_truth_and_its_interval_covers(tmp_path: Path) -> None:
    runs = [stopped(tmp_path / f"{seed}.run", seed, replies=1100) for seed in range(12)]
    assert all(20 < scores.tasks.unfinished <= CONCURRENCY for scores in runs)
    found = [scores.naming["harmful"] for scores in runs]
    for scores, one in zip(runs, found, strict=True):
        begun = one.n + scores.tasks.unfinished
        ends = scores.tasks.misaligned / begun, 1 - scores.tasks.resisted / begun
        assert one.bounds == pytest.approx(ends)
    # In some of the runs nobody has been heard at the last level.
    known = [one for one in found if one.propensity is not None]
    assert len(known) >= 6
    assert sum(covers(one) for one in known) >= len(known) - 1
    # Of 40 to 60 tasks a run: the mean has a standard error of .02 to .04.
    assert abs(fmean(one.propensity or 0 for one in known) - TRUTH) < 0.1
    # The tasks with a score alone are too often those that gave in.
    assert fmean(one.missing.complete_case or 0 for one in found) - TRUTH > 0.4
