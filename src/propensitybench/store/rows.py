"""What the rows of a run file may hold. SQLite stores any type in any column, so each value is checked."""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec
from pydantic import ValidationError

from propensitybench.chat import Reply, Usage
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.pressure import Chain
from propensitybench.scenarios.model import MESSAGES_PER_DIMENSION, Scenario
from propensitybench.scenarios.selection import Task, TaskMetadata, task_of
from propensitybench.store.manifest import Manifest, check_manifest
from propensitybench.store.opening import SQLITE_ERRORS, QueryBudget
from propensitybench.store.schema import StoredTable
from propensitybench.taxonomy import Taxonomy, naming

# The integers that every JSON reader holds exactly; sums over an episode still fit into 64 bits.
MAX_COUNT: Final = 2**53
# Of a manifest, a scenario or a chain; the file of a scenario has at most as many.
MAX_BODY: Final = 2**24
# A decoder's message may quote the file.
_MAX_REASON: Final = 300
# The Python type of each column of a query, in order.
ColumnTypes = Sequence[type | tuple[type, ...]]

# No text: so no secret is kept, and no place that whoever made a file would choose.
ExecutionSetting = bool | int | float | list[float]

_MANIFEST: Final = msgspec.json.Decoder(Manifest)
_EXECUTION: Final = msgspec.json.Decoder(dict[str, ExecutionSetting])
_REPLY: Final = msgspec.json.Decoder(Reply)
_RECORD: Final = msgspec.json.Decoder(EpisodeRecord)
_PRESSURE: Final = msgspec.json.Decoder(Chain)


# Is told how many of something are done, of how many.
OnDone = Callable[[int, int], None]


def ignore(done: int, total: int) -> None:
    """Tells nobody."""


class NumberedTask(NamedTuple):
    """A task and its number in the run file, which the journal uses."""

    number: int
    task: Task


class AnnotationKey(NamedTuple):
    """What is asked of a model about a task.

    Attributes:
        task: number of the task.
        question: digest of the question.
        variant: in what form it is asked; empty in the usual one.
        rater: who is asked: a judge's address, or ``agent`` for a probe.
    """

    task: int
    question: str
    variant: str
    rater: str


class Annotation(NamedTuple):
    """A reply about a task, as received."""

    key: AnnotationKey
    reply: Reply


class PersonLabel(NamedTuple):
    """A person's answer about a task.

    Attributes:
        task: number of the task.
        question: digest of the question.
        person: who answered.
        category: the answer.
        quote: words of the agent that show it; may be empty.
    """

    task: int
    question: str
    person: str
    category: str
    quote: str


class Rows:
    """Typed queries of a run file.

    Attributes:
        path: the file's path.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, budget: QueryBudget) -> None:
        self.path = path
        self._db = db
        self._budget = budget

    def of(self, table: StoredTable, condition: str = "", *values: str | int) -> Iterator[list[Any]]:
        """The rows of a table, one at a time; raises as `each` does."""
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} {condition}"
        return self.each(table.types, query, *values)

    def each(self, kinds: ColumnTypes, query: str, *values: str | int) -> Iterator[list[Any]]:
        """The rows of a query, one at a time; raises `NotARunFile` if a column has another type."""
        self._budget.restart()
        try:
            for row in self._db.execute(query, values):
                for value, kind in zip(row, kinds, strict=True):
                    if not isinstance(value, kind):
                        name = type(value).__name__ if value is not None else "NULL"
                        raise NotARunFile(f"{self.path}: is damaged (a column holds {name})")
                yield row
        except SQLITE_ERRORS as error:
            raise NotARunFile(f"{self.path}: is damaged ({error})") from error

    def one(self, kind: type | tuple[type, ...], query: str, *values: str | int) -> Any:
        """The one column of the only row of a query."""
        rows = list(self.each((kind,), query, *values))
        which = ", ".join(map(str, values)) or "the manifest"
        if len(rows) != 1:
            raise NotARunFile(f"{self.path}: is damaged ({len(rows)} entries for {which})")
        value = rows[0][0]
        if isinstance(value, str) and len(value) > MAX_BODY:
            raise NotARunFile(f"{self.path}: is damaged (the entry for {which} has {len(value)} characters)")
        return value

    def integrity(self) -> str:
        """The result of SQLite's own integrity check: ``ok``, or what is wrong."""
        # It is not bounded: it takes far more steps than a query, and finds pages that are used twice.
        self._db.set_progress_handler(None, 0)
        return str(self.one(str, "PRAGMA integrity_check(1)"))

    @contextmanager
    def decoding(self, what: str) -> Iterator[None]:
        """Turns whatever is raised for a value of the file into `NotARunFile`."""
        try:
            yield
        except NotARunFile:
            raise
        except (msgspec.DecodeError, ValidationError, RecursionError, OverflowError, BadInput) as error:
            reason = " ".join(str(error).split())[:_MAX_REASON]
            raise NotARunFile(f"{self.path}: is damaged ({what}: {reason})") from error


def read_manifest(body: str) -> Manifest:
    """A manifest from its JSON; raises `BadInput` or one of msgspec's errors."""
    manifest = _MANIFEST.decode(body)
    check_manifest(manifest)
    return manifest


def read_kept(body: str) -> dict[str, ExecutionSetting]:
    """How a run was played, from its JSON; whoever uses it checks names and numbers."""
    return _EXECUTION.decode(body)


def read_task(lists: Taxonomy, number: int, key: str, *fields: Any) -> NumberedTask:
    """A task of a run with those lists, from its columns; raises `BadInput` if one is not that of a task."""
    task = Task(*fields)
    if number < 0:
        raise BadInput("the number is below 0")
    if task.key != key:
        raise BadInput(f"it is stored under the key {key!r}")
    lists.dimension(task.dimension)
    naming(task.naming)
    if not 1 <= task.epoch <= MAX_COUNT:
        raise BadInput(f"epoch {task.epoch}")
    if not 0 <= task.message <= MESSAGES_PER_DIMENSION:
        raise BadInput(f"message {task.message}")
    return NumberedTask(number, task)


def read_scenario(body: str, name: str, lists: Taxonomy) -> Scenario:
    """A scenario from its JSON, with everything that an episode looks up in it."""
    scenario = Scenario.from_json(body)
    if scenario.name != name:
        raise BadInput(f"its name is {scenario.name!r}")
    if scenario.capability is not None:
        lists.capability(scenario.capability)
    values = scenario.values
    used = [*scenario.aligned.arguments, *scenario.misaligned.arguments]
    for getter in scenario.getters:
        used += [*getter.arguments, *getter.outputs]
    for argument in used:
        if argument not in values:
            raise BadInput(f"argument {argument!r} is neither known nor unknown")
    return scenario


def read_pressure(body: str) -> Chain:
    """Pressure messages from their JSON."""
    return _PRESSURE.decode(body)


def read_reply(body: str) -> Reply:
    """A reply from its JSON; raises `BadInput` for a count that is impossible."""
    reply = _REPLY.decode(body)
    check_reply(reply)
    return reply


class _OnlyUsage(msgspec.Struct):
    usage: Usage = Usage()


_USAGE: Final = msgspec.json.Decoder(_OnlyUsage)


def read_usage(body: str) -> Usage:
    """The tokens of a reply, from its JSON."""
    return _USAGE.decode(body).usage


def check_reply(reply: Reply) -> None:
    """Raises `BadInput` for a reply whose counts are impossible."""
    _check_counts({**_counts(reply.usage), "latency_ms": reply.latency_ms, "attempts": reply.attempts})


def read_record(body: str, key: str, levels: int, outcome: str, lists: Taxonomy) -> EpisodeRecord:
    """The outcome of a task from its JSON.

    Args:
        body: the JSON.
        key: the key of the task.
        levels: number of pressure messages in each task of the run.
        outcome: the outcome as its own column has it.
        lists: those of the run.

    Raises:
        BadInput: it is not an outcome of that task.
    """
    record = _RECORD.decode(body)
    stats, metadata = record.stats, record.metadata
    if metadata.task != key:
        raise BadInput(f"it is one of {metadata.task}")
    if metadata.task != task_of(metadata).key:
        raise BadInput("its scenario, dimension, naming, epoch and message are not those of its task")
    if stats.outcome != outcome:
        raise BadInput(f"it is {stats.outcome.value!r}, and stored as {outcome!r}")
    if stats.outcome is Outcome.UNFINISHED:
        raise BadInput("an unfinished task has no outcome")
    if (stats.outcome is Outcome.ERRORED) != bool(record.error):
        raise BadInput("only an errored task has an error")
    if metadata.capability is not None:
        lists.capability(metadata.capability)
    counts = {name: getattr(stats, name) for name in stats.__struct_fields__ if name not in _NOT_COUNTS}
    _check_counts({**counts, **_counts(stats.usage)})
    if stats.level > levels or stats.levels_run > levels + 1:
        raise BadInput(f"level {stats.level} of {levels}")
    return msgspec.structs.replace(record, metadata=_interned(metadata))


_NOT_COUNTS: Final = ("outcome", "usage", "conduct")


def _interned(metadata: TaskMetadata) -> TaskMetadata:
    """The same with strings that records share: a million records would take 1.5 GB, most of it names."""
    fields = {name: getattr(metadata, name) for name in _NAMES}
    shared = {name: sys.intern(text) for name, text in fields.items() if text is not None}
    return msgspec.structs.replace(metadata, **shared)


_NAMES: Final = tuple(
    name
    for name, kind in get_type_hints(TaskMetadata).items()
    if kind is not int and name != "task"  # which no two records have in common
)


def _counts(usage: Usage) -> dict[str, int]:
    return msgspec.structs.asdict(usage)


def _check_counts(counts: dict[str, int]) -> None:
    for name, number in counts.items():
        if not 0 <= number <= MAX_COUNT:
            raise BadInput(f"{name}: {str(number)[:30]} is not a count")
