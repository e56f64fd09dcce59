"""The run file: one SQLite database that holds a run, and can be replayed anywhere, alone.

The journal in it (every reply, in order) is the only truth; outcomes are derived from it. Writes are
committed before `append` returns. They survive the death of the process (write-ahead log); after a
power cut the last moments may be missing, never torn.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Labels, Reply
from propensitybench.episode import Ending, EpisodeRecord
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.scenarios.model import PressureMessage, Scenario, scenario_id
from propensitybench.scenarios.selection import Task
from propensitybench.store.lock import RunLock
from propensitybench.store.manifest import Manifest, task_seed
from propensitybench.store.schema import APPLICATION_ID, migrate

# One engine commits in well under a second; five means that something else has this file open.
BUSY_TIMEOUT_S: Final = 5.0
TASKS_AT_ONCE: Final = 256

_encode = msgspec.json.Encoder().encode
_REPLY: Final = msgspec.json.Decoder(Reply)
_RECORD: Final = msgspec.json.Decoder(EpisodeRecord)
_PRESSURE: Final = msgspec.json.Decoder(tuple[PressureMessage, ...])


class NumberedTask(NamedTuple):
    """A task and its number in the run file, by which the journal knows it."""

    number: int
    task: Task


class Said(NamedTuple):
    """A journal entry to be: the reply of a task's turn (from 0), encoded."""

    task: int
    turn: int
    body: str


class Ended(NamedTuple):
    """An outcome to be: of a task, with the fingerprint of its transcript."""

    task: int
    record: EpisodeRecord
    fingerprint: str


def encode_reply(reply: Reply) -> str:
    """The reply as the journal keeps it."""
    return _encode(reply).decode()


class RunFile:
    """An open run file; use it as a context manager.

    Attributes:
        path: where it is.
        manifest: what the run is.
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
        """Makes a new run file, whole or not at all.

        Raises:
            BadInput: there is already something at that path, or it cannot be written.
        """
        if path.exists():
            raise BadInput(f"{path}: exists already; give another --run FILE")
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            db = sqlite3.connect(draft, isolation_level=None)
            try:
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
            finally:
                db.close()
            os.link(draft, path)  # fails if the path has come to exist, where a rename would replace it
        except FileExistsError as error:
            raise BadInput(f"{path}: exists already; give another --run FILE") from error
        except (OSError, sqlite3.OperationalError) as error:
            raise BadInput(f"{path}: cannot be written ({error})") from error
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> "RunFile":
        """Opens a run file.

        Args:
            path: the file.
            write: to add to its journal; only one program can do so at a time.

        Raises:
            NotARunFile: it is none, or one of a later version.
            BadInput: there is no such file, or somebody else is writing to it.
        """
        if not path.is_file():
            raise BadInput(f"{path}: there is no such run file")
        lock = RunLock(path) if write else None
        try:
            db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
            try:
                (found,) = db.execute("PRAGMA application_id").fetchone()
                if found != APPLICATION_ID:
                    raise NotARunFile(f"{path}: is no run file of propensitybench")
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
            if isinstance(error, sqlite3.DatabaseError | msgspec.DecodeError | TypeError):
                raise NotARunFile(f"{path}: is no run file of propensitybench ({error})") from error
            raise

    def close(self) -> None:
        """Closes the file; what was appended is in it."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> "RunFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, said: Sequence[Said] = (), ended: Sequence[Ended] = ()) -> None:
        """Adds replies and outcomes, all in one transaction, committed when this returns."""
        rows = [(e.task, e.record.outcome.ending, _encode(e.record).decode(), e.fingerprint) for e in ended]
        faults = [(e.task, e.record.outcome.turns, e.record.fault) for e in ended if e.record.fault]
        with self._transaction() as db:
            if said:
                db.executemany("INSERT INTO reply VALUES (?, ?, ?)", said)
            if rows:
                db.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?)", rows)
            if faults:
                db.executemany("INSERT INTO fault (task, turn, body) VALUES (?, ?, ?)", faults)

    def reopen_errored(self) -> int:
        """Makes every errored task unfinished again, so that it is gone on with; their number.

        The faults stay in the file.
        """
        with self._transaction() as db:
            cursor = db.execute("DELETE FROM outcome WHERE ending = ?", (Ending.ERRORED,))
            return cursor.rowcount

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def unfinished(self) -> Iterator[NumberedTask]:
        """Every task without an outcome, in the order of the run; may be appended to meanwhile."""
        yield from self._tasks("AND number NOT IN (SELECT task FROM outcome)")

    def tasks(self) -> Iterator[NumberedTask]:
        """Every task, in the order of the run."""
        yield from self._tasks("")

    def _tasks(self, condition: str) -> Iterator[NumberedTask]:
        last = -1
        while True:
            rows = self._db.execute(
                "SELECT number, scenario, dimension, naming, epoch FROM task"
                f" WHERE number > ? {condition} ORDER BY number LIMIT ?",
                (last, TASKS_AT_ONCE),
            ).fetchall()
            if not rows:
                return
            for number, *task in rows:
                yield NumberedTask(number, Task(*task))
            last = rows[-1][0]

    def find(self, key: str) -> NumberedTask | None:
        """The task of that key, e.g. ``close_books.time.benign.1``."""
        row = self._db.execute(
            "SELECT number, scenario, dimension, naming, epoch FROM task WHERE key = ?", (key,)
        ).fetchone()
        return NumberedTask(row[0], Task(*row[1:])) if row else None

    def task_keys(self) -> list[str]:
        """The key of every task, in the order of the run."""
        return [key for (key,) in self._db.execute("SELECT key FROM task ORDER BY number")]

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name, as it was when the run was made."""
        (body,) = self._db.execute("SELECT body FROM scenario WHERE name = ?", (name,)).fetchone()
        return Scenario.from_json(body)

    def pressure(self, scenario: str, dimension: str) -> tuple[PressureMessage, ...]:
        """The pressure messages that the run uses for a scenario and dimension."""
        (body,) = self._db.execute(
            "SELECT body FROM pressure WHERE scenario = ? AND dimension = ?", (scenario, dimension)
        ).fetchone()
        return _PRESSURE.decode(body)

    def replies(self, task: int) -> list[Reply]:
        """The journal of a task, by its number: every reply, in order."""
        rows = self._db.execute("SELECT body FROM reply WHERE task = ? ORDER BY turn", (task,))
        return [_REPLY.decode(body) for (body,) in rows]

    def records(self) -> Iterator[EpisodeRecord]:
        """The outcome of every task that has one, in the order of the run."""
        for (body,) in self._db.execute("SELECT record FROM outcome ORDER BY task"):
            yield _RECORD.decode(body)

    def outcome(self, task: int) -> tuple[EpisodeRecord, str] | None:
        """The stored outcome of a task and its fingerprint, if it has one."""
        row = self._db.execute("SELECT record, fingerprint FROM outcome WHERE task = ?", (task,)).fetchone()
        return (_RECORD.decode(row[0]), row[1]) if row else None

    def endings(self) -> dict[str, int]:
        """How many tasks have each ending so far."""
        rows = self._db.execute("SELECT ending, count(*) FROM outcome GROUP BY ending")
        return dict(rows.fetchall())

    def count(self, table: str) -> int:
        """The number of rows of ``task``, ``reply``, ``outcome`` or ``fault``."""
        if table not in ("task", "reply", "outcome", "fault"):
            raise ValueError(table)
        (number,) = self._db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)

    def faults(self, task: int) -> list[str]:
        """Why a task could not be finished, each time that it could not."""
        rows = self._db.execute("SELECT body FROM fault WHERE task = ? ORDER BY number", (task,))
        return [body for (body,) in rows]

    def integrity(self) -> str:
        """What SQLite itself says of the file: ``ok``, or what is wrong."""
        (answer,) = self._db.execute("PRAGMA integrity_check").fetchone()
        return str(answer)

    def labels(self, task: Task, scenario: Scenario) -> Labels:
        """The labels of a task of this run."""
        fields: dict[str, Any] = {
            "task": task.key,
            "scenario": scenario.name,
            "domain": scenario.domain,
            "workspace": scenario.workspace,
            "role": scenario.role,
            "capability": scenario.capability,
            "dimension": task.dimension,
            "naming": task.naming,
            "epoch": task.epoch,
            "seed": task_seed(self.manifest.seed, task),
        }
        return Labels(**fields)
