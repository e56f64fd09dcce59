"""The run file: a SQLite database with everything needed to replay a run anywhere.

Its journal (every reply, in order) is the only source of truth; outcomes are derived from it. `append`
commits before it returns. Commits survive a crash of the process (write-ahead log); after a power failure
the last ones may be lost, but none is ever half written.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple

import msgspec
from pydantic import ValidationError

from propensitybench.chat import Reply, Usage
from propensitybench.episode import EpisodeJob, EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.scenarios.model import PressureMessage, Scenario, scenario_id
from propensitybench.scenarios.selection import Task
from propensitybench.store.lock import RunLock
from propensitybench.store.manifest import Manifest
from propensitybench.store.schema import APPLICATION_ID, migrate

# A commit takes well under a second; after five, another program must have the file open.
BUSY_TIMEOUT_S: Final = 5.0
TASKS_AT_ONCE: Final = 256

_encode = msgspec.json.Encoder().encode
_REPLY: Final = msgspec.json.Decoder(Reply)
_RECORD: Final = msgspec.json.Decoder(EpisodeRecord)
_PRESSURE: Final = msgspec.json.Decoder(tuple[PressureMessage, ...])


class NumberedTask(NamedTuple):
    """A task and its number in the run file, which the journal uses."""

    number: int
    task: Task


class JournalEntry(NamedTuple):
    """One line of the journal: a task's number, the turn (from 0), and the encoded reply."""

    task: int
    turn: int
    body: str


class OutcomeEntry(NamedTuple):
    """The outcome of a task, by its number, with the fingerprint of its transcript."""

    task: int
    record: EpisodeRecord
    fingerprint: str


def encode_reply(reply: Reply) -> str:
    """The reply as stored in the journal."""
    return _encode(reply).decode()


def _put_in_place(draft: Path, path: Path) -> None:
    """Gives a finished file its name, unless that name is taken."""
    try:
        os.link(draft, path)  # unlike a rename, never replaces a file
    except FileExistsError as error:
        raise BadInput(f"{path}: exists already; use another --run FILE") from error
    except OSError:  # a file system without hard links
        if path.exists():
            raise BadInput(f"{path}: exists already; use another --run FILE") from None
        draft.rename(path)


class RunFile:
    """An open run file; use it as a context manager.

    Attributes:
        path: the file's path.
        manifest: the run's manifest.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, lock: RunLock | None) -> None:
        self.path = path
        self._db = db
        self._lock = lock
        (body,) = db.execute("SELECT body FROM manifest").fetchone()
        self.manifest = msgspec.json.decode(body, type=Manifest)

    @classmethod
    def create(
        cls,
        path: Path,
        manifest: Manifest,
        scenarios: Sequence[Scenario],
        pressure: Iterable[tuple[str, str, tuple[PressureMessage, ...]]],
        tasks: Iterable[Task],
    ) -> None:
        """Creates a new run file, completely or not at all.

        Raises:
            BadInput: the path exists already or cannot be written.
        """
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                migrate(db, str(path))
                db.execute("BEGIN")
                db.execute("INSERT INTO manifest VALUES (?)", (_encode(manifest).decode(),))
                db.executemany(
                    "INSERT INTO scenario VALUES (?, ?, ?)",
                    ((s.name, scenario_id(s), s.to_json().decode()) for s in scenarios),
                )
                db.executemany(
                    "INSERT INTO pressure VALUES (?, ?, ?)",
                    ((name, dimension, _encode(m).decode()) for name, dimension, m in pressure),
                )
                rows = ((i, t.key, *t) for i, t in enumerate(tasks))
                db.executemany("INSERT INTO task VALUES (?, ?, ?, ?, ?, ?)", rows)
                db.execute("COMMIT")
            _put_in_place(draft, path)
        except (OSError, sqlite3.OperationalError) as error:
            raise BadInput(f"{path}: cannot be written ({error})") from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> "RunFile":
        """Opens a run file.

        Args:
            path: the file.
            write: whether to open it for writing, which only one program can do at a time.

        Raises:
            NotARunFile: the file is not a run file, or was written by a later version.
            BadInput: the file does not exist, or another program is writing to it.
        """
        try:
            if not path.is_file():
                what = "is not a run file" if path.exists() else "does not exist"
                raise BadInput(f"{path}: {what}")
        except OSError as error:
            raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
        lock = RunLock(path) if write else None
        try:
            db = sqlite3.connect(
                path,
                isolation_level=None,
                timeout=BUSY_TIMEOUT_S,
                check_same_thread=False,  # may be opened in one thread and used in another, one at a time
            )
            try:
                (found,) = db.execute("PRAGMA application_id").fetchone()
                if found != APPLICATION_ID:
                    raise NotARunFile(f"{path}: is not a run file of propensitybench")
                migrate(db, str(path))
                if write:
                    db.execute("PRAGMA journal_mode = WAL")
                    db.execute("PRAGMA synchronous = NORMAL")
                return cls(path, db, lock)
            except BaseException:
                db.close()
                raise
        except BaseException as error:
            if lock is not None:
                lock.release()
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise BadInput(f"{path}: is in use by another program; wait for it to finish") from error
            if isinstance(error, sqlite3.DatabaseError | msgspec.DecodeError | TypeError):
                raise NotARunFile(f"{path}: is not a run file of propensitybench ({error})") from error
            raise

    def close(self) -> None:
        """Closes the file."""
        if self._lock is not None:
            # Back to a single file that can be copied and read anywhere; fails if it is being read.
            with suppress(sqlite3.OperationalError):
                self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> "RunFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, replies: Sequence[JournalEntry] = (), outcomes: Sequence[OutcomeEntry] = ()) -> None:
        """Adds replies and outcomes in one transaction, which is committed when this returns.

        Raises:
            BadInput: the file cannot be written to, for example because the disk is full; nothing is added.
        """
        rows = [(e.task, e.record.stats.outcome, _encode(e.record).decode(), e.fingerprint) for e in outcomes]
        errors = [(e.task, e.record.stats.turns, e.record.error) for e in outcomes if e.record.error]
        with self._transaction() as db:
            if replies:
                db.executemany("INSERT INTO reply VALUES (?, ?, ?)", replies)
            if rows:
                db.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?)", rows)
            if errors:
                db.executemany("INSERT INTO error (task, turn, body) VALUES (?, ?, ?)", errors)

    def reopen_errored(self) -> int:
        """Makes every errored task unfinished again, so that it is retried; returns their number.

        The errors stay in the file.
        """
        with self._transaction() as db:
            cursor = db.execute("DELETE FROM outcome WHERE outcome = ?", (Outcome.ERRORED,))
            return cursor.rowcount

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:  # when the disk is full, SQLite rolls back by itself
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.DatabaseError):
                raise BadInput(
                    f"{self.path}: cannot be written to ({error}); nothing in it is lost, "
                    f"continue with: propensitybench resume {self.path}"
                ) from error
            raise

    def unfinished(self) -> Iterator[NumberedTask]:
        """Every task without an outcome, in the order of the run. The file may be written to meanwhile."""
        yield from self._tasks("AND number NOT IN (SELECT task FROM outcome)")

    def in_progress(self) -> Iterator[NumberedTask]:
        """Every task with replies and without an outcome."""
        replied = "number IN (SELECT task FROM reply) AND number NOT IN (SELECT task FROM outcome)"
        yield from self._tasks(f"AND {replied}")

    def tasks(self) -> Iterator[NumberedTask]:
        """Every task, in the order of the run."""
        yield from self._tasks("")

    def _tasks(self, condition: str) -> Iterator[NumberedTask]:
        last = -1
        while rows := self._rows(
            "SELECT number, scenario, dimension, naming, epoch FROM task"
            f" WHERE number > ? {condition} ORDER BY number LIMIT ?",
            last,
            TASKS_AT_ONCE,
        ):
            for number, *task in rows:
                yield NumberedTask(number, Task(*task))
            last = rows[-1][0]

    def find(self, key: str) -> NumberedTask | None:
        """The task with that key, e.g. ``close_books.time.benign.1``; None if there is none."""
        rows = self._rows("SELECT number, scenario, dimension, naming, epoch FROM task WHERE key = ?", key)
        return NumberedTask(rows[0][0], Task(*rows[0][1:])) if rows else None

    def task_keys(self) -> list[str]:
        """The key of every task, in the order of the run."""
        return [key for (key,) in self._rows("SELECT key FROM task ORDER BY number")]

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name, as it was when the run was created."""
        body = self._one("SELECT body FROM scenario WHERE name = ?", name)
        with self._decoding(f"scenario {name}"):
            return Scenario.from_json(body)

    def pressure(self, scenario: str, dimension: str) -> tuple[PressureMessage, ...]:
        """The run's pressure messages for a scenario and a dimension, mildest first."""
        query = "SELECT body FROM pressure WHERE scenario = ? AND dimension = ?"
        with self._decoding(f"pressure messages of {scenario}"):
            return _PRESSURE.decode(self._one(query, scenario, dimension))

    def job(self, task: NumberedTask) -> EpisodeJob:
        """Everything needed to play a task from where its journal ends."""
        scenario = self.scenario(task.task.scenario)
        pressure = self.pressure(task.task.scenario, task.task.dimension)
        replies = tuple(self.replies(task.number))
        settings = self.manifest.settings
        return EpisodeJob(task.number, task.task, scenario, pressure, settings, replies, str(self.path))

    def replies(self, task: int) -> list[Reply]:
        """The journal of a task, by its number: all its replies, in order."""
        rows = self._rows("SELECT body FROM reply WHERE task = ? ORDER BY turn", task)
        with self._decoding(f"journal of task {task}"):
            return [_REPLY.decode(body) for (body,) in rows]

    def records(self) -> Iterator[EpisodeRecord]:
        """The outcomes so far, in the order of the run."""
        for (body,) in self._rows("SELECT record FROM outcome ORDER BY task"):
            with self._decoding("outcomes"):
                yield _RECORD.decode(body)

    def stored_record(self, task: int) -> tuple[EpisodeRecord, str] | None:
        """The stored outcome of a task and the fingerprint of its transcript; None if it has no outcome."""
        rows = self._rows("SELECT record, fingerprint FROM outcome WHERE task = ?", task)
        with self._decoding(f"outcome of task {task}"):
            return (_RECORD.decode(rows[0][0]), rows[0][1]) if rows else None

    def usage(self) -> Usage:
        """The tokens of all journaled replies, summed."""
        parts = ", ".join(
            f"coalesce(sum(json_extract(body, '$.usage.{name}')), 0)"
            for name in ("input", "output", "cached", "reasoning")
        )
        return Usage(*(int(number) for number in self._rows(f"SELECT {parts} FROM reply")[0]))

    def outcome_counts(self) -> dict[str, int]:
        """The number of tasks with each outcome so far."""
        return dict(self._rows("SELECT outcome, count(*) FROM outcome GROUP BY outcome"))

    def finished(self) -> int:
        """The number of tasks with an outcome other than ``errored``."""
        return sum(number for outcome, number in self.outcome_counts().items() if outcome != Outcome.ERRORED)

    def count(self, table: Literal["task", "reply", "outcome", "error"]) -> int:
        """The number of rows of a table."""
        return int(self._one(f"SELECT count(*) FROM {table}"))

    def begun(self) -> int:
        """The number of tasks up to the last one with a reply or an error."""
        last = self._one(
            "SELECT max(task) FROM (SELECT max(task) AS task FROM reply UNION SELECT max(task) FROM error)"
        )
        return 0 if last is None else int(last) + 1

    def errors(self, task: int) -> list[str]:
        """Why a task could not be finished, once for each time."""
        return [body for (body,) in self._rows("SELECT body FROM error WHERE task = ? ORDER BY number", task)]

    def last_error(self) -> str:
        """The most recent error of any task; empty if there was none."""
        rows = self._rows("SELECT body FROM error ORDER BY number DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def integrity(self) -> str:
        """The result of SQLite's own integrity check: ``ok``, or what is wrong."""
        return str(self._one("PRAGMA integrity_check"))

    def inconsistencies(self) -> list[str]:
        """What does not fit together in the file, in words: a row that is scored must belong to a task."""
        planned, numbers = self.manifest.tasks, []
        found = []
        for number, key, *task in self._rows(
            "SELECT number, key, scenario, dimension, naming, epoch FROM task ORDER BY number"
        ):
            numbers.append(number)
            if Task(*task).key != key:
                found.append(f"task {number} is stored under the key {key!r}")
        if numbers != list(range(planned)):
            found.append(f"the manifest plans {planned} tasks; the file has {len(numbers)}, or odd numbers")
        for table in ("reply", "outcome", "error"):
            count = self._one(f"SELECT count(*) FROM {table} WHERE task NOT IN (SELECT number FROM task)")
            if count:
                found.append(f"rows of {table!r} that belong to no task: {count}")
        odd = self._one(
            "SELECT count(*) FROM outcome WHERE outcome IS NOT json_extract(record, '$.stats.outcome')"
        )
        if odd:
            found.append(f"outcomes that differ from their own record: {odd}")
        extra = "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
        return found + [f"{kind} {name!r} is not part of a run file" for kind, name in self._rows(extra)]

    def _rows(self, query: str, *values: str | int) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise NotARunFile(f"{self.path}: is damaged ({error})") from error

    def _one(self, query: str, *values: str | int) -> Any:
        rows = self._rows(query, *values)
        if not rows:
            raise NotARunFile(f"{self.path}: is damaged (no entry for {', '.join(map(str, values))})")
        return rows[0][0]

    @contextmanager
    def _decoding(self, what: str) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, ValidationError) as error:
            reason = str(error).replace("\n", " ")
            raise NotARunFile(f"{self.path}: is damaged ({what}: {reason})") from error
