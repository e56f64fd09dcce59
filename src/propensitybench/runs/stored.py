"""A run in a run file."""

import os
from collections import Counter
from functools import cached_property
from pathlib import Path

from propensitybench.chat import BLOCKED, Usage
from propensitybench.engine import is_drawn, stopping_state, tasks_drawn
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

    has_transcripts = True

    def __init__(self, path: Path) -> None:
        self.path = path
        with RunFile.open(path) as file:
            self._planned = file.planned if file.manifest.gate is None else tasks_drawn(file)
            self.shard = str(file.shard or "")
            records = _records(file)
            names = {record.metadata.scenario for record in records}
            super().__init__(
                file_name(path),
                file.manifest,
                records,
                {name: scenario_id(file.scenario(name)) for name in names},
                stopping_state(file),
            )

    @property
    def planned(self) -> int:
        """Number of tasks that the file plays; under a gate, of those drawn so far."""
        return self._planned

    @cached_property
    def journal(self) -> Journal:
        """A summary of the run's replies."""
        tally = JournalTally()
        with RunFile.open(self.path) as file:
            until = tasks_drawn(file)
            for task in file.own_tasks():
                tally.plan(file, task, drawn=is_drawn(file, task.number, until))
                tally.add(file, task)
        return tally.journal

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key; raises `UnknownName` if there is no such task."""
        with RunFile.open(self.path) as file:
            numbered = file.find(task)
            if numbered is None:
                raise UnknownName("task", task, file.task_keys(), self.file)
            return transcript_in(file, numbered)


class JournalTally:
    """Sums up replies, a task at a time."""

    def __init__(self) -> None:
        self._models: Counter[str] = Counter()
        self._usage = dict.fromkeys(Usage.__struct_fields__, 0)
        self._stops: dict[str, str] = {}
        self._domains: dict[str, str] = {}
        self._drawn: Counter[str] = Counter()

    def plan(self, file: RunFile, task: NumberedTask, *, drawn: bool) -> None:
        """Counts a task of the run, and whether it is to be played."""
        name = task.task.scenario
        if name not in self._domains:
            self._domains[name] = file.scenario(name).domain
        self._drawn[self._domains[name]] += drawn

    def add(self, file: RunFile, task: NumberedTask) -> None:
        """Adds the replies that a file holds of a task."""
        replies = file.replies(task.number)
        self._models.update(reply.model or "(not said)" for reply in replies)
        for reply in replies:
            for name in self._usage:
                self._usage[name] += getattr(reply.usage, name)
        if withheld := next((reply.stop for reply in replies if reply.stop in BLOCKED), None):
            self._stops[task.task.key] = withheld.value

    @property
    def journal(self) -> Journal:
        """The summary of everything added."""
        return Journal(self._models, Usage(**self._usage), self._stops, len(self._domains), self._drawn)


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
