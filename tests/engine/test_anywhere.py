"""A run can be played inside a running event loop, and its episodes in other processes."""

import asyncio
import pickle
from pathlib import Path
from threading import get_ident

import pytest
from helpers.clients import at
from helpers.elsewhere import content, in_another_process, jobs_of, play_job, write_here
from helpers.runs import client_of, finish, make

from propensitybench.engine import Progress, StopSignal, block_on, run_tasks, run_tasks_async
from propensitybench.errors import RunMismatch
from propensitybench.store import JournalEntry, OutcomeEntry, RunFile, encode_reply, verify


def test_a_run_can_be_played_inside_a_running_event_loop(tmp_path: Path) -> None:
    inside, outside = make(tmp_path / "in.run", limit=2), make(tmp_path / "out.run", limit=2)
    seen: list[Progress] = []

    async def notebook() -> int:
        with RunFile.open(inside, write=True) as run:
            return run_tasks(run, client_of(run.manifest.model), at(2), on_progress=seen.append).finished

    assert asyncio.run(notebook()) == 4
    # Progress is also reported every second, so a count may come twice.
    assert sorted({progress.finished for progress in seen} - {0}) == [1, 2, 3, 4]
    finish(outside)
    assert content(inside) == content(outside)


def test_a_run_can_be_awaited_beside_other_work(tmp_path: Path) -> None:
    first, second = make(tmp_path / "1.run", limit=2), make(tmp_path / "2.run", limit=2, seed=1)

    async def both() -> list[int]:
        with RunFile.open(first, write=True) as one, RunFile.open(second, write=True) as two:
            runs = [run_tasks_async(run, client_of(run.manifest.model), at(2)) for run in (one, two)]
            return [result.finished for result in await asyncio.gather(*runs)]

    assert asyncio.run(both()) == [4, 4]
    for path in (first, second):
        with RunFile.open(path) as run:
            assert list(verify(run)) == []


def test_work_is_blocked_on_in_this_thread_or_beside_a_running_loop() -> None:
    async def where() -> int:
        return get_ident()

    async def inside() -> int:
        return block_on(where, StopSignal())

    assert block_on(where, StopSignal()) == get_ident()
    assert asyncio.run(inside()) != get_ident()


def test_an_error_of_the_work_is_raised_whichever_loop_runs(tmp_path: Path) -> None:
    with RunFile.open(make(tmp_path / "a.run", limit=1), write=True) as run:

        async def inside() -> None:
            run_tasks(run, client_of("simulated/never"), at(1))

        with pytest.raises(RunMismatch, match=r"is a run of simulated/o3-like, not of simulated/never"):
            asyncio.run(inside())


def test_a_job_survives_pickling(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=3)
    jobs = jobs_of(path)
    assert [pickle.loads(pickle.dumps(job)) for job in jobs] == jobs
    finish(path)
    with RunFile.open(path) as run:
        played = [run.job(task) for task in run.tasks()]
    assert all(job.replies for job in played)
    assert [pickle.loads(pickle.dumps(job)) for job in played] == played


def test_episodes_played_away_from_the_file_and_written_by_one_writer_give_the_same_run(
    tmp_path: Path,
) -> None:
    here, there = make(tmp_path / "here.run"), make(tmp_path / "there.run")
    finish(here)
    write_here(there, [pickle.loads(play_job(pickle.dumps(job))) for job in jobs_of(there)])
    assert content(there) == content(here)
    with RunFile.open(there) as run:
        assert list(verify(run)) == []


def test_every_step_is_one_reply_and_the_outcome_comes_with_the_last(tmp_path: Path) -> None:
    job = jobs_of(make(tmp_path / "a.run", limit=1))[0]
    steps = pickle.loads(play_job(pickle.dumps(job)))
    for turn, entries in enumerate(steps):
        assert isinstance(entries[0], JournalEntry)
        assert entries[0][:2] == (job.number, turn)
    assert [len(entries) for entries in steps] == [1] * (len(steps) - 1) + [2]
    assert isinstance(steps[-1][1], OutcomeEntry)


@pytest.mark.slow
def test_episodes_played_in_another_process_give_the_same_run(tmp_path: Path) -> None:
    here, there = make(tmp_path / "here.run"), make(tmp_path / "there.run")
    finish(here)
    # Half of the replies are there already: the other process goes on from where the journal ends.
    with RunFile.open(here) as whole, RunFile.open(there, write=True) as run:
        for task in run.tasks():
            replies = whole.replies(task.number)
            half = [encode_reply(reply) for reply in replies[: len(replies) // 2]]
            run.append([JournalEntry(task.number, turn, body) for turn, body in enumerate(half)])
    jobs = jobs_of(there)
    assert any(job.replies for job in jobs)
    write_here(there, in_another_process(jobs))
    assert content(there) == content(here)
    with RunFile.open(there) as run:
        assert list(verify(run)) == []
