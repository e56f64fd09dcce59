"""Executing a run file: every task is played once, nothing is lost, no request is repeated."""

import asyncio
import pickle
from pathlib import Path
from threading import get_ident

import pytest
from helpers.clients import ByTask, at
from helpers.runs import DOMAIN, client_of, finish, journal, make, scores
from helpers.scenario_data import SOUND

from propensitybench.chat import Reply, Request
from propensitybench.clients import Conversation, ScriptedClient
from propensitybench.engine import (
    Progress,
    RunSpec,
    StopSignal,
    block_on,
    create_run,
    run_tasks,
    run_tasks_async,
)
from propensitybench.engine.episodes import Entry, run_episode
from propensitybench.episode import EpisodeJob
from propensitybench.errors import BadInput, ModelError, RunMismatch, UnknownName
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile, encode_reply, mismatches


class Watching(ByTask):
    """A simulated client that records every request, and can fail or request a stop at one of them."""

    def __init__(self, name: str = "o3-like") -> None:
        self._inner = SimulatedClient(name)
        self.model = self._inner.model
        self.asked: list[tuple[str, int]] = []
        self.in_flight = self.most_in_flight = 0
        self.fail_at: set[tuple[str, int]] = set()
        self.error: Exception = ModelError("no answer")
        self.stop_after: int | None = None
        self.stop = StopSignal()

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Watched(self, self._inner.open_task(task, replies), task.task, replies)

    async def close(self) -> None:
        await self._inner.close()

    def note(self, task: str, turn: int) -> None:
        self.asked.append((task, turn))
        if (task, turn) in self.fail_at:
            raise self.error
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            self.stop.request_stop()


class _Watched:
    def __init__(self, client: Watching, inner: Conversation, task: str, turn: int) -> None:
        self._client, self._inner, self._task, self._turn = client, inner, task, turn

    async def reply(self, request: Request) -> Reply:
        self._client.note(self._task, self._turn)
        self._turn += 1
        self._client.in_flight += 1
        self._client.most_in_flight = max(self._client.most_in_flight, self._client.in_flight)
        await asyncio.sleep(0)
        self._client.in_flight -= 1
        return await self._inner.reply(request)


@pytest.mark.slow
def test_every_task_is_played_once_whatever_the_concurrency(tmp_path: Path) -> None:
    one, many = make(tmp_path / "1.run"), make(tmp_path / "5.run")
    watch, together = Watching(), Watching()
    finish(one, watch, concurrency=1)
    finish(many, together, concurrency=5)
    assert (watch.most_in_flight, together.most_in_flight) == (1, 5)
    assert scores(one) == scores(many)
    assert journal(one) == journal(many) == set(watch.asked)
    assert len(watch.asked) == len(set(watch.asked))
    with RunFile.open(one) as a, RunFile.open(many) as b:
        assert [a.replies(i) for i in range(12)] == [b.replies(i) for i in range(12)]


@pytest.mark.slow
def test_a_stopped_run_resumes_where_it_stopped_and_repeats_no_request(tmp_path: Path) -> None:
    whole, broken = make(tmp_path / "whole.run"), make(tmp_path / "broken.run")
    finish(whole)
    asked: list[tuple[str, int]] = []
    rounds = 0
    interrupted = True
    while interrupted:
        watch = Watching()
        watch.stop_after = 37
        with RunFile.open(broken, write=True) as run:
            interrupted = run_tasks(run, watch, at(5), stop=watch.stop).cause is not None
        asked += watch.asked
        rounds += 1
    assert rounds > 3
    assert len(asked) == len(set(asked))
    assert scores(broken) == scores(whole)
    assert journal(broken) == journal(whole)
    with RunFile.open(broken) as run:
        assert list(mismatches(run)) == []


@pytest.mark.parametrize("error", [ModelError("no answer"), OSError("connection reset"), ZeroDivisionError()])
def test_a_failing_client_makes_its_task_errored_and_the_others_continue(
    tmp_path: Path, error: Exception
) -> None:
    path = make(tmp_path / "a.run")
    with RunFile.open(path) as run:
        unlucky = next(run.tasks()).task.key
    watch = Watching()
    watch.fail_at, watch.error = {(unlucky, 2)}, error
    finish(path, watch)
    counts = scores(path).tasks
    assert (counts.errored, counts.misaligned + counts.resisted) == (1, 11)
    finish(path, again := Watching())
    assert again.asked[0] == (unlucky, 2)
    assert {task for task, _ in again.asked} == {unlucky}
    assert scores(path).tasks.errored == 0


def test_a_full_disk_ends_the_run_and_not_the_file(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    with RunFile.open(path, write=True) as run:
        (pages,) = run._db.execute("PRAGMA page_count").fetchone()
        run._db.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(BadInput, match="cannot be written"):
            run_tasks(run, client_of(run.manifest.model))
    before = len(journal(path))
    result = finish(path)
    assert result.finished == 12
    assert len(journal(path)) > before
    with RunFile.open(path) as run:
        assert list(mismatches(run)) == []


SIX = Selection(domains=(DOMAIN,), limit=6)
"""The tasks of `make`."""


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (RunSpec("simulated/o3-like", selection=SIX, seed=1), r"seed \(was 0, now 1\)"),
        (RunSpec("simulated/never", selection=SIX), "model"),
        (RunSpec("simulated/o3-like", selection=SIX, template="{{ policy.role }}"), "template"),
    ],
)
def test_a_changed_run_is_refused_and_the_difference_named(
    tmp_path: Path, changed: RunSpec, complaint: str
) -> None:
    path = make(tmp_path / "a.run")
    before = path.read_bytes()
    with pytest.raises(RunMismatch, match=complaint):
        create_run(changed, path)
    assert path.read_bytes() == before
    create_run(RunSpec("simulated/o3-like", selection=SIX), path)


def test_an_impossible_run_is_refused_before_a_file_is_created(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with pytest.raises(UnknownName, match="did you mean 'self-proliferation'"):
        create_run(RunSpec("x", selection=Selection(domains=("self-proliferaton",))), path)
    with pytest.raises(BadInput, match=r"no tasks selected: nothing in .*sound passes all filters"):
        create_run(RunSpec("x", SOUND, Selection(domains=("bio-security",))), path)
    with pytest.raises(BadInput, match="system message template"):
        create_run(RunSpec("x", selection=SIX, template="{{ policy.role }} {{ nobody }}"), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("content", "stored", "error"),
    [("x" * 6_000_000, 2, "its conversation has more than 8,388,608 characters"), ("a\ud800", 0, "")],
)
def test_a_reply_that_cannot_be_used_makes_only_its_task_errored(
    tmp_path: Path, content: str, stored: int, error: str
) -> None:
    path = make(tmp_path / "a.run", limit=1)
    finish(path, ScriptedClient([Reply(content)], "simulated/o3-like"))
    assert scores(path).tasks.errored == 2
    with RunFile.open(path) as run:
        assert [len(run.replies(task.number)) for task in run.tasks()] == [stored, stored]
        assert error in run.last_error()
        assert list(mismatches(run)) == []


def test_a_run_in_a_running_event_loop_and_beside_another(tmp_path: Path) -> None:
    paths = [make(tmp_path / "1.run"), make(tmp_path / "2.run"), make(tmp_path / "3.run", seed=1)]
    seen: list[Progress] = []

    async def notebook() -> None:
        with RunFile.open(paths[0], write=True) as run:
            assert run_tasks(run, client_of(run.manifest.model), on_progress=seen.append).finished == 12
        with RunFile.open(paths[1], write=True) as one, RunFile.open(paths[2], write=True) as two:
            await asyncio.gather(*(run_tasks_async(run, client_of(run.manifest.model)) for run in (one, two)))

    asyncio.run(notebook())
    # Progress is also reported every second, so a count may come twice.
    assert sorted({progress.finished for progress in seen} - {0}) == list(range(1, 13))
    assert {(progress.total, progress.stalled) for progress in seen} == {(12, ())}
    assert seen[-1].calls == len(journal(paths[0]))
    assert scores(paths[0]) == scores(paths[1])
    for path in paths:
        with RunFile.open(path) as run:
            assert list(mismatches(run)) == []


def test_an_error_of_a_run_is_raised_whichever_loop_runs(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)

    async def inside() -> None:
        finish(path, SimulatedClient("never"))

    for play in (lambda: asyncio.run(inside()), lambda: finish(path, SimulatedClient("never"))):
        with pytest.raises(RunMismatch, match=r"is a run of simulated/o3-like, not of simulated/never"):
            play()


def test_what_is_no_client_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"must be a propensitybench.Client, found object"):
        finish(make(tmp_path / "a.run", limit=1), object())  # type: ignore[arg-type]


def test_work_is_blocked_on_in_this_thread_or_beside_a_running_loop() -> None:
    async def where() -> int:
        return get_ident()

    async def inside() -> int:
        return block_on(where, StopSignal())

    assert block_on(where, StopSignal()) == get_ident()
    assert asyncio.run(inside()) != get_ident()


def test_a_job_can_be_sent_to_another_process_and_its_steps_come_back(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)

    async def steps(job: EpisodeJob) -> list[tuple[Entry, ...]]:
        return [entries async for entries in run_episode(SimulatedClient("o3-like"), StopSignal(), job)]

    with RunFile.open(path) as run:
        job = run.job(next(run.tasks()))
    assert pickle.loads(pickle.dumps(job)) == job
    found = asyncio.run(steps(job))
    assert pickle.loads(pickle.dumps(found)) == found
    # Each step is one reply, and the outcome comes with the last.
    assert [len(entries) for entries in found] == [1] * (len(found) - 1) + [2]
    assert [entries[0][:2] for entries in found] == [(job.number, turn) for turn in range(len(found))]
    finish(path)
    with RunFile.open(path) as run:
        assert [encode_reply(reply) for reply in run.replies(job.number)] == [step[0][2] for step in found]
