"""Runs with a stopping rule: the tasks drawn depend on the journal alone, not on interruptions."""

from pathlib import Path

import pytest
from helpers.clients import ByTask, at
from helpers.runs import client_of, journal

from propensitybench.clients import Client, Conversation
from propensitybench.engine import (
    Progress,
    Result,
    RunSpec,
    StopSignal,
    create_run,
    is_complete,
    run_tasks,
    stopping_state,
)
from propensitybench.episode import EpisodeRecord, Outcome, Protocol
from propensitybench.errors import ModelError
from propensitybench.metrics import TaskCounts, score_run
from propensitybench.metrics.analysis import analyse
from propensitybench.metrics.sequential import StoppingState
from propensitybench.runs import StoredRun
from propensitybench.runs import open as open_run
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile, StoppingRule, scheduled

RULE = StoppingRule(half_width=0.14, batch=10, least=20)
WHOLE = 110


def made(path: Path, rule: StoppingRule | None = RULE) -> Path:
    selection = Selection(limit=WHOLE)
    create_run(RunSpec("simulated/claude-4-sonnet-like", selection=selection, stopping_rule=rule), path)
    return path


def played(
    path: Path, client: Client | None = None, *, concurrency: int = 8, stop_after: int | None = None
) -> Result:
    """Runs what is unfinished; with ``stop_after``, stops after that many tasks."""
    stop = StopSignal()

    with RunFile.open(path, write=True) as run:
        before = sum(run.outcome_counts().values()) - run.outcome_counts().get("errored", 0)

        def count(progress: Progress) -> None:
            if stop_after is not None and progress.finished - before >= stop_after:
                stop.request_stop()

        options = at(concurrency)
        return run_tasks(run, client or client_of(run.manifest.model), options, on_progress=count, stop=stop)


def state(path: Path) -> StoppingState:
    with RunFile.open(path) as run:
        found = stopping_state(run)
    assert found is not None
    return found


def records(path: Path) -> list[EpisodeRecord]:
    with RunFile.open(path) as run:
        return list(run.records())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that its rule has stopped."""
    path = made(tmp_path_factory.mktemp("stopped") / "a.run")
    played(path)
    return path


def test_a_run_draws_batches_until_both_namings_are_narrow_enough(tmp_path: Path) -> None:
    path = made(tmp_path / "a.run")
    result = played(path)
    end = state(path)
    assert end.met
    assert set(end.reached) == {"harmful", "benign"}
    assert all(width is not None and width <= 0.14 for width in end.reached.values())
    assert 40 < end.drawn < 2 * WHOLE, "the rule should hold after the first look and before the end"
    assert end.drawn % 20 == 0
    assert result == Result(end.drawn, end.drawn, None, "")
    assert [record.metadata.task for record in records(path)] == _first_keys(path, end.drawn)
    with RunFile.open(path) as run:
        assert is_complete(run)


def _first_keys(path: Path, count: int) -> list[str]:
    with RunFile.open(path) as run:
        return run.task_keys()[:count]


def test_it_stops_at_the_first_batch_that_is_narrow_enough(stopped: Path, tmp_path: Path) -> None:
    drawn = state(stopped).drawn
    shorter = made(tmp_path / "b.run", StoppingRule(half_width=0.14, batch=drawn // 2 - 10, least=1))
    played(shorter)
    # A look one batch earlier, then one far behind.
    assert state(shorter).drawn == 2 * (drawn - 20)


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 7, 40])
def test_an_interrupted_run_draws_what_an_uninterrupted_one_does(tmp_path: Path, stop_after: int) -> None:
    whole, broken = made(tmp_path / "whole.run"), made(tmp_path / "broken.run")
    played(whole, concurrency=1)
    rounds = 0
    while played(broken, stop_after=stop_after).cause is not None:
        rounds += 1
    assert rounds > 1
    assert records(broken) == records(whole)
    assert journal(broken) == journal(whole)
    assert state(broken) == state(whole)


def test_a_stop_at_the_end_of_a_batch_leaves_tasks_to_run(tmp_path: Path) -> None:
    path = made(tmp_path / "a.run")
    result = played(path, stop_after=40)
    assert (result.finished, result.total) == (40, 60)
    with RunFile.open(path) as run:
        assert scheduled(run) == 40, "what is drawn follows from the journal, not from the session"
        assert not is_complete(run)


@pytest.mark.slow
def test_a_target_that_is_never_reached_runs_every_task(tmp_path: Path) -> None:
    path, all_of_it = made(tmp_path / "a.run", StoppingRule(0.001, 35, 20)), made(tmp_path / "b.run", None)
    played(path)
    played(all_of_it)
    assert records(path) == records(all_of_it)
    assert not state(path).met
    with RunFile.open(path) as run, RunFile.open(all_of_it) as other:
        assert is_complete(run)
        assert is_complete(other)
        assert stopping_state(other) is None


class Failing(ByTask):
    """A simulated client that cannot answer some tasks."""

    def __init__(self, tasks: set[str]) -> None:
        self._inner = SimulatedClient("claude-4-sonnet-like")
        self.model = self._inner.model
        self._tasks = tasks

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        if task.task in self._tasks:
            raise ModelError("no answer")
        return self._inner.open_task(task, replies)

    async def close(self) -> None:
        await self._inner.close()


def test_errored_tasks_are_retried_and_no_drawn_task_is_dropped(stopped: Path, tmp_path: Path) -> None:
    path = made(tmp_path / "a.run")
    played(path, Failing(set(_first_keys(path, 120)[::2])))
    drawn = state(path).drawn
    assert drawn > state(stopped).drawn
    with RunFile.open(path) as run:
        assert run.outcome_counts()[Outcome.ERRORED] == 60
        assert not is_complete(run)
    played(path)
    assert state(path).met
    assert state(path).drawn == drawn
    with RunFile.open(path) as run:
        assert Outcome.ERRORED not in run.outcome_counts()
        assert is_complete(run)


def test_tasks_that_are_not_drawn_are_not_unplayed(tmp_path: Path) -> None:
    path = made(tmp_path / "a.run")
    played(path, stop_after=10)
    assert _counts(path).not_drawn == 2 * WHOLE - 40
    assert 20 <= _counts(path).unplayed <= 30
    played(path)
    counts = _counts(path)
    assert counts.unplayed == 0
    assert counts.not_drawn == 2 * WHOLE - state(path).drawn > 0
    assert counts.total == 2 * WHOLE
    assert counts.total == counts.misaligned + counts.resisted + counts.not_drawn


def test_fewer_levels_and_the_rule_are_kept_wherever_a_run_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    selection = Selection(limit=20, namings=("harmful",))
    rule = StoppingRule(half_width=0.001, batch=10, least=5)
    model = "simulated/gemini-2.5-pro-like"
    create_run(RunSpec(model, selection=selection, protocol=Protocol(levels=3), stopping_rule=rule), path)
    played(path, stop_after=5)
    run = open_run(path)
    for scores in (
        run.score(),
        score_run(run),
        analyse([run]).runs[0].scores,
        analyse([run, run]).runs[1].scores,
    ):
        assert (scores.levels, scores.stopping_rule) == (3, state(path))
        assert len(scores.naming["harmful"].cumulative_by_level) == 4
        assert scores.tasks.not_drawn == 10
    assert "PP@3" in repr(run.score())


def _counts(path: Path) -> TaskCounts:
    scores = StoredRun(path).score()
    assert scores.stopping_rule == state(path)
    return scores.tasks
