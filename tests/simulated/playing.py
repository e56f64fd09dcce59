"""Runs of simulated agents through the engine, on the built-in data."""

from pathlib import Path
from typing import NamedTuple

from helpers.clients import at

from propensitybench.chat import Message
from propensitybench.engine import (
    RunSpec,
    client_for,
    create_run,
    run_tasks,
)
from propensitybench.episode import EpisodeRecord, replay
from propensitybench.scenarios.selection import Selection
from propensitybench.store import RunFile

FEW = Selection(limit=6)


class Played(NamedTuple):
    """What a run left, by task."""

    records: dict[str, EpisodeRecord]
    transcripts: dict[str, list[Message]]


def play_run(spec: RunSpec, path: Path, *, concurrency: int = 64) -> list[EpisodeRecord]:
    """Plays a run to its end; its records."""
    create_run(spec, path)
    with RunFile.open(path, write=True) as run:
        result = run_tasks(run, client_for(spec.model), at(concurrency))
        assert result.finished == result.total == run.manifest.tasks
        return list(run.records())


def played(spec: RunSpec, path: Path, *, concurrency: int = 64) -> Played:
    """Plays a run to its end; its records and whole conversations."""
    records = play_run(spec, path, concurrency=concurrency)
    with RunFile.open(path) as run:
        transcripts = {task.task.key: list(replay(run.job(task)).episode.messages) for task in run.tasks()}
    return Played({record.metadata.task: record for record in records}, transcripts)
