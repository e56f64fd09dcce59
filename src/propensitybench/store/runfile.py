"""The run file: a SQLite database with everything needed to replay a run anywhere.

Its journal (every reply, in order) is the only source of truth; outcomes are derived from it. `append`
commits before it returns. Commits survive a crash of the process (write-ahead log); after a power failure
the last ones may be lost, but none is ever half written.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from propensitybench.chat import Reply
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput, ModelError
from propensitybench.pressure import Chain
from propensitybench.scenarios.model import Scenario, scenario_id
from propensitybench.scenarios.selection import Task
from propensitybench.store.atomic import remove_stale
from propensitybench.store.creating import new_run_file
from propensitybench.store.filesystems import require_local
from propensitybench.store.lock import RunLock
from propensitybench.store.manifest import Manifest
from propensitybench.store.opening import SQLITE_ERRORS, QueryBudget, check_path, connect
from propensitybench.store.reading import RunReader
from propensitybench.store.rows import (
    Annotation,
    AnnotationKey,
    ExecutionSetting,
    PersonLabel,
    check_reply,
    read_manifest,
)
from propensitybench.store.schema import (
    ANNOTATION,
    ERROR,
    EXECUTION,
    LABEL,
    MANIFEST,
    OUTCOME,
    PRESSURE,
    REPLY,
    SAMPLE,
    SCENARIO,
    SHARD,
    SHARE,
    TASK,
)
from propensitybench.store.shards import Shard, share_of

_encode = msgspec.json.Encoder().encode


class JournalEntry(NamedTuple):
    """One line of the journal: a task's number, the turn (from 0), and the encoded reply.

    ``level``, at which it came, is not stored: it follows from the replies.
    """

    task: int
    turn: int
    body: str
    level: int = 0


class OutcomeEntry(NamedTuple):
    """The outcome of a task, by its number, with the fingerprint of its transcript."""

    task: int
    record: EpisodeRecord
    fingerprint: str


def encode_reply(reply: Reply) -> str:
    """The reply as stored in the journal; raises `ModelError` for one that could not be read back."""
    try:
        check_reply(reply)
        return _encode(reply).decode()
    except (BadInput, RecursionError, OverflowError) as error:
        raise ModelError(f"the reply cannot be stored: {error}") from error


class RunFile(RunReader):
    """An open run file; use it as a context manager.

    Attributes:
        path: the file's path.
        manifest: the run's manifest.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, budget: QueryBudget, lock: RunLock | None) -> None:
        super().__init__(path, db, budget)
        self._lock = lock
        self._budget = budget

    @classmethod
    def create(
        cls,
        path: Path,
        manifest: Manifest,
        scenarios: Sequence[Scenario],
        pressure: Iterable[tuple[str, str, Chain]],
        tasks: Iterable[Task],
        shard: Shard | None = None,
    ) -> None:
        """Creates a new run file, completely or not at all.

        Args:
            path: the file.
            manifest: the run's manifest.
            scenarios: every scenario of the run.
            pressure: messages, each with the names of their scenario and dimension.
            tasks: every task of the run, in its order.
            shard: which shard of the run the file is; it plays only the tasks of its share.

        Raises:
            BadInput: the path exists already, cannot be written or is on a network file system, or the
                manifest cannot be stored.
        """
        body = _manifest_body(manifest)
        domains = {scenario.name: scenario.domain for scenario in scenarios}
        planned = list(tasks)
        with new_run_file(path) as db:
            db.execute(MANIFEST.insert, (body,))
            _add_plan(db, scenarios, pressure, enumerate(planned))
            if shard is not None:
                order = (domains[task.scenario] for task in planned)
                db.execute(SHARD.insert, shard)
                db.executemany(SHARE.insert, ((number,) for number in share_of(shard, order)))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, write: bool = False) -> "RunFile":
        """Opens a run file. Reading it changes nothing, neither in the file nor beside it.

        Args:
            path: the file.
            write: whether to open it for writing, which only one program can do at a time.

        Raises:
            NotARunFile: the file is not a run file, is damaged, or was written by a later version.
            BadInput: the file does not exist, or another program is writing to it; or it is to be written
                to, and is on a network file system.
        """
        path = Path(path)
        check_path(path)
        if write:
            require_local(path)
        lock = RunLock(path) if write else None
        try:
            db, budget = connect(path, write=write)
            try:
                if write:
                    remove_stale(path)
                return cls(path, db, budget, lock)
            except BaseException:
                db.close()
                raise
        except BaseException:
            if lock is not None:
                lock.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        if self._lock is not None:
            with suppress(*SQLITE_ERRORS):
                # Everything goes into the file itself, even if it is being read and keeps its log.
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                # Back to a single file that can be copied and read anywhere; fails if it is being read.
                self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> "RunFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def grow(
        self,
        manifest: Manifest,
        scenarios: Iterable[Scenario],
        pressure: Iterable[tuple[str, str, Chain]],
        tasks: Iterable[Task],
    ) -> None:
        """Adds tasks after those that are there, in one transaction; raises as `append` does.

        Args:
            manifest: the run's from now on.
            scenarios: those that the file does not have yet.
            pressure: messages that the file does not have yet, each with the names of scenario and dimension.
            tasks: the tasks, none of which is there already.
        """
        body, first = _manifest_body(manifest), self.manifest.tasks
        with self._transaction() as db:
            db.execute("UPDATE manifest SET body = ?", (body,))
            _add_plan(db, scenarios, pressure, enumerate(tasks, first))
        self.manifest = manifest

    def append(self, replies: Sequence[JournalEntry] = (), outcomes: Sequence[OutcomeEntry] = ()) -> None:
        """Adds replies and outcomes in one transaction, which is committed when this returns.

        Raises:
            BadInput: the file cannot be written to, for example because the disk is full, and nothing is
                added.
        """
        rows = [(e.task, e.record.stats.outcome, _encode(e.record).decode(), e.fingerprint) for e in outcomes]
        errors = [(None, e.task, e.record.stats.turns, e.record.error) for e in outcomes if e.record.error]
        with self._transaction() as db:
            if replies:
                db.executemany(REPLY.insert, (entry[:3] for entry in replies))
            if rows:
                db.executemany(OUTCOME.insert, rows)
            if errors:
                db.executemany(ERROR.insert, errors)

    def annotate(
        self,
        annotations: Sequence[Annotation] = (),
        *,
        questions: Mapping[str, str] = {},
        raters: Mapping[str, str] = {},
    ) -> None:
        """Adds annotations, and what they refer to, in one transaction; raises as `append` does.

        Args:
            annotations: none that is there already.
            questions: as JSON, by digest; one that is there stays.
            raters: settings of models as JSON, by name; one that is there stays.
        """
        rows = [(None, *one.key, encode_reply(one.reply)) for one in annotations]
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO question VALUES (?, ?)", questions.items())
            db.executemany("INSERT OR IGNORE INTO rater VALUES (?, ?)", raters.items())
            db.executemany(ANNOTATION.insert, rows)

    def keep(self, key: AnnotationKey, reply: Reply) -> None:
        """Adds a reply about a task, whose question and rater are there; raises as `append` does.

        Raises:
            ModelError: the reply could not be read back.
        """
        self.annotate([Annotation(key, reply)])

    def add_labels(self, labels: Sequence[PersonLabel]) -> None:
        """Adds answers of people, none that is there already, in one transaction; raises as `append` does."""
        with self._transaction() as db:
            db.executemany(LABEL.insert, ((None, *label) for label in labels))

    def keep_sample(self, question: str, body: str) -> None:
        """Keeps the sample of a stored question, in place of a smaller one; raises as `append` does."""
        with self._transaction() as db:
            db.execute("DELETE FROM sample WHERE question = ?", (question,))
            db.execute(SAMPLE.insert, (question, body))

    def keep_execution(self, settings: Mapping[str, ExecutionSetting]) -> None:
        """Keeps how the run is played from now on, in place of what is kept; raises as `append` does."""
        with self._transaction() as db:
            db.execute("DELETE FROM execution")
            db.execute(EXECUTION.insert, (_encode(settings).decode(),))
        self.execution = settings

    def reopen_errored(self) -> int:
        """Makes every errored task unfinished again, so that it is retried; returns their number.

        The errors stay in the file.
        """
        with self._transaction() as db:
            cursor = db.execute("DELETE FROM outcome WHERE outcome = ?", (Outcome.ERRORED,))
            return cursor.rowcount

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._budget.restart()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:  # when the disk is full, SQLite rolls back by itself
                self._db.execute("ROLLBACK")
            if isinstance(error, SQLITE_ERRORS):
                raise BadInput(
                    f"{self.path}: cannot be written to ({error}); nothing in it is lost, "
                    f"continue with: propensitybench resume {self.path}"
                ) from error
            raise


def _add_plan(
    db: sqlite3.Connection,
    scenarios: Iterable[Scenario],
    pressure: Iterable[tuple[str, str, Chain]],
    tasks: Iterable[tuple[int, Task]],
) -> None:
    """Adds numbered tasks, and the texts that they are played with."""
    texts = ((s.name, scenario_id(s), s.to_json().decode()) for s in scenarios)
    db.executemany(SCENARIO.insert, texts)
    chains = ((name, dimension, _encode(chain).decode()) for name, dimension, chain in pressure)
    db.executemany(PRESSURE.insert, chains)
    db.executemany(TASK.insert, ((number, task.key, *task) for number, task in tasks))


def _manifest_body(manifest: Manifest) -> str:
    """The manifest as stored; raises `BadInput` for one that could not be read back."""
    try:
        body = _encode(manifest).decode()
        read_manifest(body)
    except (msgspec.DecodeError, RecursionError, OverflowError, TypeError) as error:
        raise BadInput(f"the settings of the run cannot be stored: {error}") from error
    return body
