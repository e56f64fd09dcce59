"""A run in a run file."""

import os
from collections import Counter
from functools import cached_property
from pathlib import Path

from propensitybench.chat import BLOCKED
from propensitybench.engine import stopping_state, tasks_drawn
from propensitybench.episode import EpisodeRecord, replay
from propensitybench.errors import UnknownName
from propensitybench.runs.base import Journal, Run
from propensitybench.runs.transcript import Transcript
from propensitybench.scenarios import scenario_id
from propensitybench.store import NumberedTask, RunFile


class StoredRun(Run):
    """A run in a run file. Journal and transcripts are read from the file when they are needed.

    Args:
        path: the run file.

    Raises:
        BadInput: it is not a run file, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with RunFile.open(path) as file:
            records = _records(file)
            names = {record.metadata.scenario for record in records}
            super().__init__(
                file_name(path),
                file.manifest,
                records,
                {name: scenario_id(file.scenario(name)) for name in names},
                stopping_state(file),
            )

    @cached_property
    def journal(self) -> Journal:
        """A summary of the run's replies."""
        models: Counter[str] = Counter()
        stops: dict[str, str] = {}
        domains: dict[str, str] = {}
        drawn: Counter[str] = Counter()
        with RunFile.open(self.path) as file:
            until = tasks_drawn(file)
            for task in file.tasks():
                name = task.task.scenario
                if name not in domains:
                    domains[name] = file.scenario(name).domain
                drawn[domains[name]] += task.number < until
                replies = file.replies(task.number)
                models.update(reply.model or "(not said)" for reply in replies)
                if withheld := next((reply.stop for reply in replies if reply.stop in BLOCKED), None):
                    stops[task.task.key] = withheld.value
            return Journal(models, file.usage(), stops, len(domains), drawn)

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key; raises `UnknownName` if there is no such task."""
        with RunFile.open(self.path) as file:
            numbered = file.find(task)
            if numbered is None:
                raise UnknownName("task", task, file.task_keys(), self.file)
            return transcript_in(file, numbered)


def transcript_in(file: RunFile, task: NumberedTask) -> Transcript:
    """The conversation of a task in an open run file."""
    stored = file.stored_record(task.number)
    errors = tuple(file.errors(task.number))
    episode = replay(file.job(task)).episode
    return Transcript(task.task.key, episode, stored[0] if stored else None, errors)


def _records(file: RunFile) -> list[EpisodeRecord]:
    """The outcomes and, of the tasks that have begun and not ended, what is known so far."""
    stored = {record.metadata.task: record for record in file.records()}
    begun = {task.task.key: task for task in file.in_progress()}
    keys = [key for key in file.task_keys() if key in stored or key in begun]
    return [stored[key] if key in stored else replay(file.job(begun[key])).record for key in keys]


def file_name(path: Path) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")
