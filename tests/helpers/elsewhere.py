"""Plays the jobs of a run away from its file, as another process does."""

import asyncio
import multiprocessing
import pickle
from pathlib import Path
from typing import NamedTuple

import msgspec

from propensitybench.engine import StopSignal
from propensitybench.engine.episodes import Entry, run_episode
from propensitybench.engine.journal import JournalWriter
from propensitybench.episode import EpisodeJob, EpisodeRecord, replay
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

Steps = list[tuple[Entry, ...]]


class Content(NamedTuple):
    """Everything that a run file holds of its episodes, by number of the task."""

    transcripts: dict[int, bytes]
    replies: dict[int, bytes]
    outcomes: dict[int, tuple[EpisodeRecord, str] | None]


def jobs_of(path: Path) -> list[EpisodeJob]:
    """The jobs of the tasks that a run file has not finished."""
    with RunFile.open(path) as run:
        return [run.job(task) for task in run.unfinished()]


def play_job(pickled: bytes) -> bytes:
    """Plays a pickled job with the simulated agent ``o3-like``; returns its journal entries, pickled."""
    job: EpisodeJob = pickle.loads(pickled)
    return pickle.dumps(asyncio.run(_play(job)))


async def _play(job: EpisodeJob) -> Steps:
    return [entries async for entries in run_episode(SimulatedClient("o3-like"), StopSignal(), job)]


def in_another_process(jobs: list[EpisodeJob]) -> list[Steps]:
    """Plays jobs in a process that shares nothing with this one."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return [pickle.loads(done) for done in pool.map(play_job, [pickle.dumps(job) for job in jobs])]


def write_here(path: Path, played: list[Steps]) -> None:
    """Writes the entries of many episodes into a run file, all at the same time."""

    async def write() -> None:
        with RunFile.open(path, write=True) as run:
            writer = JournalWriter(run)

            async def one(steps: Steps) -> None:
                for entries in steps:
                    await writer.add(entries)

            await asyncio.gather(*map(one, played))

    asyncio.run(write())


def content(path: Path) -> Content:
    """What a run file holds."""
    encode = msgspec.json.encode
    found = Content({}, {}, {})
    with RunFile.open(path) as run:
        for task in run.tasks():
            job = run.job(task)
            found.transcripts[task.number] = encode(replay(job).episode.messages)
            found.replies[task.number] = encode(job.replies)
            found.outcomes[task.number] = run.stored_record(task.number)
    return found
