"""Runs of simulated agents through the engine, on the built-in data."""

from pathlib import Path
from typing import NamedTuple

from propensitybench.chat import Message
from propensitybench.engine import DEFAULT_CONCURRENCY, RunSpec, Terms, client_for, prepare, run_tasks
from propensitybench.episode import EpisodeRecord
from propensitybench.scenarios.selection import Selection
from propensitybench.store import RunFile, replay

FEW = Selection(limit=6)


class Played(NamedTuple):
    """What a run left, by task."""

    records: dict[str, EpisodeRecord]
    transcripts: dict[str, list[Message]]


def play_run(spec: RunSpec, path: Path, *, concurrency: int = DEFAULT_CONCURRENCY) -> list[EpisodeRecord]:
    """Plays a run to its end; its records."""
    prepare(spec, path)
    with RunFile.open(path, write=True) as run:
        result = run_tasks(run, client_for(spec.model), Terms(concurrency))
        assert result.finished == result.total == run.manifest.tasks
        return list(run.records())


def played(spec: RunSpec, path: Path, *, concurrency: int = DEFAULT_CONCURRENCY) -> Played:
    """Plays a run to its end; its records and whole conversations."""
    records = play_run(spec, path, concurrency=concurrency)
    with RunFile.open(path) as run:
        said = {task.task.key: list(replay(run, task).episode.messages) for task in run.tasks()}
    return Played({record.labels.task: record for record in records}, said)
