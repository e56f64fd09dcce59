"""A run in several run files: its shards."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from propensitybench.episode import EpisodeRecord, replay
from propensitybench.errors import UnknownName
from propensitybench.runs.base import Journal, Run
from propensitybench.runs.stored import JournalTally, transcript_in
from propensitybench.runs.transcript import Transcript
from propensitybench.scenarios import scenario_id
from propensitybench.store import RunFile
from propensitybench.store.parts import Parts


class ShardedRun(Run):
    """A run in several run files, which are only read; tasks that are in none of them have not begun.

    Args:
        paths: the files.
        file: what to call the run.

    Raises:
        BadInput: a file is damaged, or the files contradict each other; see `Parts`.
    """

    has_transcripts = True

    def __init__(self, paths: Sequence[Path], file: str) -> None:
        self._parts = Parts(paths)
        records: dict[int, EpisodeRecord] = {}
        for place, part in enumerate(self._parts.parts):
            with RunFile.open(part.path) as run:
                holds = self._parts.holder(place, run)
                records |= {number: record for number, record in run.numbered_records() if holds(number)}
                for task in run.in_progress():
                    if holds(task.number):
                        records[task.number] = replay(run.job(task)).record
        found = [records[number] for number in sorted(records)]
        names = {record.metadata.scenario for record in found}
        with RunFile.open(paths[0]) as run:
            contents = {name: scenario_id(run.scenario(name)) for name in names}
        super().__init__(file, self._parts.manifest, found, contents)

    @property
    def paths(self) -> list[Path]:
        """The run files."""
        return [part.path for part in self._parts.parts]

    @cached_property
    def journal(self) -> Journal:
        """A summary of the run's replies."""
        tally = JournalTally()
        with RunFile.open(self.paths[0]) as first:
            for task in first.tasks():
                tally.plan(first, task, drawn=True)
        for place, path in enumerate(self.paths):
            with RunFile.open(path) as run:
                holds = self._parts.holder(place, run)
                for task in run.own_tasks():
                    if holds(task.number):
                        tally.add(run, task)
        return tally.journal

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key; raises `UnknownName` if there is no such task."""
        with RunFile.open(self.paths[0]) as first:
            numbered = first.find(task)
            if numbered is None:
                raise UnknownName("task", task, [one.task.key for one in first.tasks()], self.file)
        with RunFile.open(self._parts.path_of(numbered.number)) as run:
            return transcript_in(run, numbered)
