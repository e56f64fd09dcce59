"""Several run files of one run, such as its shards: which of them holds what there is of each task."""

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.episode import Outcome
from propensitybench.errors import NotARunFile, RunMismatch
from propensitybench.store.manifest import differences
from propensitybench.store.rows import Kinds
from propensitybench.store.runfile import RunFile
from propensitybench.store.shards import Shard

TASK: Final[Kinds] = (int, str, str, str, str, int, int)
TASKS: Final = "SELECT number, key, scenario, dimension, naming, epoch, message FROM task ORDER BY number"
# What the tasks are played with: the same in every file of a run.
TEXTS: Final[Sequence[tuple[Kinds, str]]] = (
    ((str, str, str), "SELECT name, id, body FROM scenario ORDER BY name"),
    ((str, str, str), "SELECT scenario, dimension, body FROM pressure ORDER BY scenario, dimension"),
)
_BEGUN: Final = (
    "SELECT number, key, scenario, dimension, naming, epoch, message FROM task WHERE {own} AND ("
    "EXISTS (SELECT 1 FROM reply WHERE reply.task = number)"
    " OR EXISTS (SELECT 1 FROM outcome WHERE outcome.task = number)"
    " OR number IN (SELECT task FROM error)) ORDER BY number"
)
_NOBODY: Final = -1


class Part(NamedTuple):
    """One of the files: its path, and which shard of the run it is (None for the whole run)."""

    path: Path
    shard: Shard | None


class Content(NamedTuple):
    """What a file holds of a task: the rows of its journal, and that of its outcome."""

    replies: Sequence[tuple[int, str]]
    outcome: tuple[str, str, str] | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be played."""
        return self.outcome is not None and self.outcome[0] != Outcome.ERRORED


class Parts:
    """Run files of one run, and which of them holds each task.

    A finished task counts before one that is not, then the longer journal. Memory holds twelve bytes for each
    task of the run, and no journal.

    Args:
        paths: the files, one or more. An earlier one counts before a later one that holds no more.

    Attributes:
        parts: the files, in that order.
        manifest: that of the first file.

    Raises:
        RunMismatch: they are not of one run, or hold different replies or outcomes of one task.
        NotARunFile: a file is damaged.
        BadInput: a file cannot be read.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.parts: list[Part] = []
        with RunFile.open(paths[0]) as first:
            self.manifest = first.manifest
            self._tasks = _tasks_of(first)
            self._texts = _texts_of(first)
        self._owner = array("i", [_NOBODY]) * len(self._tasks)
        for path in paths:
            with RunFile.open(path) as run:
                self._check(run)
                self.parts.append(Part(path, run.shard))
                self._add(run)

    @property
    def tasks(self) -> int:
        """Number of tasks of the run."""
        return len(self._tasks)

    def path_of(self, number: int) -> Path:
        """The file that holds a task; the first one if none does."""
        return self.parts[max(0, self._owner[number])].path

    def missing(self) -> list[Shard]:
        """The shards that are in none of the files.

        Where the files are shards of several partitions, those of the partition that most of them belong to.
        """
        shards = {part.shard for part in self.parts}
        counts = Counter(shard.of for shard in shards if shard is not None)
        if None in shards or any(given == of for of, given in counts.items()):
            return []
        ((of, _),) = counts.most_common(1)
        return [one for number in range(1, of + 1) if (one := Shard(number, of)) not in shards]

    def holder(self, place: int, run: RunFile) -> Callable[[int], bool]:
        """A function that says of a task's number whether a file holds that task.

        Args:
            place: the file's index.
            run: the file, open.

        Returns:
            The function; it raises `NotARunFile` for a task that the file does not play.
        """
        played = bytearray(self.tasks) if run.shard else bytearray(b"\1") * self.tasks
        if run.shard:
            for (number,) in run.rows.each((int,), "SELECT task FROM share"):
                if 0 <= number < self.tasks:
                    played[number] = 1

        def holds(number: int) -> bool:
            if not (0 <= number < len(played) and played[number]):
                raise NotARunFile(f"{run.path}: is damaged (it holds task {number}, which it does not play)")
            return self._owner[number] == place

        return holds

    def _check(self, run: RunFile) -> None:
        first = self.parts[0].path if self.parts else run.path
        if changed := differences(self.manifest, run.manifest):
            raise RunMismatch(f"{run.path}: is not of the run in {first}; it differs in {'; '.join(changed)}")
        if _texts_of(run) != self._texts or run.count("task") != self.tasks:
            raise RunMismatch(
                f"{run.path}: is not of the run in {first}; its tasks, scenarios or pressure messages differ"
            )

    def _add(self, run: RunFile) -> None:
        """Notes which tasks the newest file holds."""
        place = len(self.parts) - 1
        own = "1" if run.shard is None else "number IN (SELECT task FROM share)"
        with ExitStack() as files:
            opened: dict[int, RunFile] = {}
            for row in run.rows.each(TASK, _BEGUN.format(own=own)):
                number, key = row[:2]
                if not 0 <= number < self.tasks or hash(tuple(row)) != self._tasks[number]:
                    raise RunMismatch(
                        f"{run.path}: is not of the run in {self.parts[0].path}; its task {number} is another"
                    )
                before = self._owner[number]
                if before != _NOBODY:
                    if before not in opened:
                        opened[before] = files.enter_context(RunFile.open(self.parts[before].path))
                    if not self._counts_before(opened[before], run, number, key):
                        self._owner[number] = place
                else:
                    self._owner[number] = place

    def _counts_before(self, held: RunFile, found: RunFile, number: int, key: str) -> bool:
        """Whether what a file holds of a task counts, and not what is found in another."""
        counts = first_counts(content_of(held, number), content_of(found, number))
        if counts is None:
            raise RunMismatch(
                f"{held.path} and {found.path}: hold different replies or outcomes of the task {key}; leave "
                "one of the two files out"
            )
        return counts


def first_counts(one: Content, other: Content) -> bool | None:
    """Which of two contents of a task counts.

    A finished task counts before one that is not, whose journal must be the beginning of the finished one's
    unless it is errored. Of two that are not finished the longer journal counts, if the other is its
    beginning. Two finished ones must be equal.

    Returns:
        Whether it is the first one; None if they contradict each other.
    """
    if one.finished and other.finished:
        return True if one == other else None
    if one.finished != other.finished:
        done, open_ = (one, other) if one.finished else (other, one)
        return one.finished if open_.outcome is not None or _begins(open_, done) else None
    if len(one.replies) == len(other.replies) and one.replies == other.replies:
        return one.outcome is not None or other.outcome is None
    if _begins(other, one):
        return True
    return False if _begins(one, other) else None


def _begins(short: Content, long: Content) -> bool:
    return list(short.replies) == list(long.replies[: len(short.replies)])


def content_of(run: RunFile, number: int) -> Content:
    """What a file holds of a task, as stored."""
    replies = run.rows.all((int, str), "SELECT turn, body FROM reply WHERE task = ? ORDER BY turn", number)
    query = "SELECT outcome, record, fingerprint FROM outcome WHERE task = ?"
    outcomes = run.rows.all((str, str, str), query, number)
    return Content([tuple(row) for row in replies], tuple(outcomes[0]) if outcomes else None)


def _tasks_of(run: RunFile) -> "array[int]":
    """A hash of each task of a run; raises `NotARunFile` if they are not numbered from 0."""
    hashes = array("q")
    for row in run.rows.each(TASK, TASKS):
        if row[0] != len(hashes):
            raise NotARunFile(f"{run.path}: is damaged (task {row[0]} follows {len(hashes)} others)")
        hashes.append(hash(tuple(row)))
    if len(hashes) != run.manifest.tasks:
        raise NotARunFile(f"{run.path}: is damaged (it has {len(hashes)} tasks, not {run.manifest.tasks})")
    return hashes


def _texts_of(run: RunFile) -> bytes:
    """A digest of the scenarios and pressure messages."""
    found = hashlib.blake2b()
    for kinds, query in TEXTS:
        for row in run.rows.each(kinds, query):
            found.update(_encode(row))
    return found.digest()


_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
