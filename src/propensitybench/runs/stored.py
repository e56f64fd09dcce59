"""A run in a run file."""

from collections import Counter
from functools import cached_property
from pathlib import Path

from propensitybench.chat import BLOCKED, Usage
from propensitybench.engine import Price, stopping_state
from propensitybench.episode import EpisodeRecord, replay
from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import file_name
from propensitybench.runs.base import ReplySummary, Run
from propensitybench.runs.transcript import Transcript
from propensitybench.store import NumberedTask, RunFile, is_scheduled, scheduled


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
            self._planned = file.planned if file.manifest.gate is None else scheduled(file)
            self.shard = str(file.shard or "")
            self._rates = file.execution.get("price")
            records = _records(file)
            played = {record.metadata.scenario for record in records}
            contents = {name: identity for name, identity in file.scenario_ids().items() if name in played}
            super().__init__(file_name(path), file.manifest, records, contents, stopping_state(file))

    @property
    def planned(self) -> int:
        """Number of tasks that the file plays; under a gate, of those drawn so far."""
        return self._planned

    @property
    def price(self) -> Price | None:
        """Price of the model's tokens: that with which the run was played, else that of the price table."""
        rates = self._rates
        return Price(*rates) if isinstance(rates, list) and len(rates) in (2, 3) else super().price

    @cached_property
    def journal(self) -> ReplySummary:
        """A summary of the run's replies."""
        with RunFile.open(self.path) as file:
            return _summary(file)

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key; raises `BadInput` if there is no such task."""
        if not isinstance(task, str):
            raise BadInput(f"transcript: must be the key of a task, found {task!r}; run.tasks has them")
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
    found = dict(file.numbered_records())
    for task in file.in_progress():
        found[task.number] = replay(file.job(task)).record
    return [found[number] for number in sorted(found)]


def _summary(file: RunFile) -> ReplySummary:
    models: Counter[str] = Counter()
    usage = Usage()
    stops: dict[str, str] = {}
    domains: dict[str, str] = {}
    drawn: Counter[str] = Counter()
    until = scheduled(file)
    for task in file.own_tasks():
        name = task.task.scenario
        if name not in domains:
            domains[name] = file.scenario(name).domain
        drawn[domains[name]] += is_scheduled(file, task.number, until)
        for reply in file.replies(task.number):
            models[reply.model or "(not said)"] += 1
            usage += reply.usage
            if reply.stop in BLOCKED:
                stops.setdefault(task.task.key, reply.stop.value)
    return ReplySummary(models, usage, stops, len(domains), drawn)
