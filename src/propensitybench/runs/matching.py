"""Tasks of a run by how they ended and what stands in their transcripts."""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput, UnknownName
from propensitybench.runs.stored import StoredRun, transcript_in
from propensitybench.runs.transcript import Transcript, body
from propensitybench.store import RunFile
from propensitybench.taxonomy import Naming

_LEVELS: Final = re.compile(r"(?P<low>\d{0,4})(?P<to>\.\.)?(?P<high>\d{0,4})", re.ASCII)
# Characters shown on either side of what was searched for.
AROUND: Final = 70


class Levels(NamedTuple):
    """A range of levels, both ends included."""

    low: int
    high: int


def read_levels(given: str, last: int) -> Levels:
    """The range in ``4..6``, ``3..``, ``..2`` or ``5``, of levels up to the last; raises `BadInput`."""
    found = _LEVELS.fullmatch(given)
    if found is None or not (found["low"] or found["high"]) or (found["high"] and not found["to"]):
        raise BadInput(f"--level {given}: must be a level or a range of levels, like 3, 3.., ..2 or 4..6")
    low = int(found["low"] or 0)
    high = int(found["high"] or last) if found["to"] else low
    if not low <= high <= last:
        raise BadInput(f"--level {given}: must be within 0..{last}, the smaller level first")
    return Levels(low, high)


class TaskFilter(NamedTuple):
    """Which tasks are wanted; what is empty or None allows all.

    Attributes:
        outcomes: how they ended.
        levels: the level at which they ended.
        namings: the naming.
        domains: of the scenario.
        text: what stands in the transcript, in capitals or not.
    """

    outcomes: Collection[Outcome] = ()
    levels: Levels | None = None
    namings: Collection[Naming] = ()
    domains: Collection[str] = ()
    text: str = ""

    def allows(self, record: EpisodeRecord | None) -> bool:
        """Whether a record is one of a wanted task, but for the text; None is a task that has not begun."""
        if record is None:
            return not any((self.outcomes, self.levels, self.namings, self.domains, self.text))
        level = record.stats.level
        return (
            (not self.outcomes or record.stats.outcome in self.outcomes)
            and (self.levels is None or self.levels.low <= level <= self.levels.high)
            and (not self.namings or record.metadata.naming in self.namings)
            and (not self.domains or record.metadata.domain in self.domains)
        )


class Match(NamedTuple):
    """A wanted task.

    Attributes:
        task: its key.
        record: its record; None if it has not begun.
        lines: where the text stands, each with who wrote it and at which level.
    """

    task: str
    record: EpisodeRecord | None
    lines: list[str]

    def to_dict(self, *, searched: bool) -> dict[str, Any]:
        """The match as JSON; ``searched`` says whether there was a text to find."""
        return {"task": self.task, "record": self.record} | ({"lines": self.lines} if searched else {})


def matches(run: StoredRun, wanted: TaskFilter) -> Iterator[Match]:
    """The wanted tasks of a run, in its order; raises `UnknownName` for a domain without a task in it."""
    records = {record.metadata.task: record for record in run.records}
    known = sorted({record.metadata.domain for record in run.records})
    for domain in wanted.domains:
        if domain not in known:
            raise UnknownName("domain", domain, known, run.file)
    with RunFile.open(run.path) as file:
        for key in file.task_keys():
            record = records.get(key)
            if not wanted.allows(record):
                continue
            lines: list[str] = []
            if wanted.text:
                numbered = file.find(key)
                assert numbered is not None
                lines = _lines(transcript_in(file, numbered), wanted.text)
            if lines or not wanted.text:
                yield Match(key, record, lines)


def _lines(transcript: Transcript, text: str) -> list[str]:
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    messages = [(f"level {entry.level}, {entry.message.role}", entry.message) for entry in transcript]
    messages += [(f"closing report, {message.role}", message) for message in transcript.closing]
    return [
        f"{who}: {_clipped(line, found)}"
        for who, message in messages
        for line in body(message).splitlines()
        if (found := pattern.search(line))
    ]


def _clipped(line: str, found: re.Match[str]) -> str:
    """A line around what was found in it."""
    low, high = max(0, found.start() - AROUND), found.end() + AROUND
    before, after = ("..." if low else ""), ("..." if high < len(line) else "")
    return f"{before}{line[low:high].strip()}{after}"
