"""The run file's tables: how they came about, as a list that only grows, and the types of their columns."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.errors import NotARunFile
from propensitybench.files import open_regular

# "PBnc": distinguishes a run file from other SQLite files.
APPLICATION_ID: Final = 0x50426E63


class Table(NamedTuple):
    """A table as the latest migration leaves it.

    Attributes:
        name: its name.
        columns: the Python type of each column, in their order.
        counted: whether the first column only counts the rows; a row without it gets the next number.
    """

    name: str
    columns: Mapping[str, type]
    counted: bool = False

    @property
    def insert(self) -> str:
        """The statement that adds a row."""
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' * len(self.columns))})"


MANIFEST: Final = Table("manifest", {"body": str})
SCENARIO: Final = Table("scenario", {"name": str, "id": str, "body": str})
PRESSURE: Final = Table("pressure", {"scenario": str, "dimension": str, "body": str})
TASK: Final = Table(
    "task",
    {
        "number": int,
        "key": str,
        "scenario": str,
        "dimension": str,
        "naming": str,
        "epoch": int,
        "message": int,
    },
)
REPLY: Final = Table("reply", {"task": int, "turn": int, "body": str})
ERROR: Final = Table("error", {"number": int, "task": int, "turn": int, "body": str}, counted=True)
OUTCOME: Final = Table("outcome", {"task": int, "outcome": str, "record": str, "fingerprint": str})
QUESTION: Final = Table("question", {"digest": str, "body": str})
RATER: Final = Table("rater", {"name": str, "body": str})
ANNOTATION: Final = Table(
    "annotation",
    {"number": int, "task": int, "question": str, "variant": str, "rater": str, "body": str},
    counted=True,
)
SHARD: Final = Table("shard", {"number": int, "count": int})
SHARE: Final = Table("share", {"task": int})
EXECUTION: Final = Table("execution", {"body": str})
# What is planned: the tasks and the texts that they are played with.
PLAN: Final = (SCENARIO, PRESSURE, TASK)
# What there is of the tasks that have begun.
PLAYED: Final = (REPLY, OUTCOME, ERROR, ANNOTATION)


def is_run_file(path: Path) -> bool:
    """Whether a file is a run file, judging by its first bytes and not by its name."""
    try:
        with open_regular(path) as file:
            head = file.read(72)
    except OSError:
        return False
    # Bytes 68 to 71 of a SQLite file are its application id.
    return head[:16] == b"SQLite format 3\x00" and int.from_bytes(head[68:72], "big") == APPLICATION_ID


def _first(db: sqlite3.Connection) -> None:
    for statement in (
        "CREATE TABLE manifest (body TEXT NOT NULL)",
        "CREATE TABLE scenario (name TEXT PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL)",
        "CREATE TABLE pressure (scenario TEXT NOT NULL REFERENCES scenario, dimension TEXT NOT NULL,"
        " body TEXT NOT NULL, PRIMARY KEY (scenario, dimension))",
        "CREATE TABLE task (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, scenario TEXT NOT NULL"
        " REFERENCES scenario, dimension TEXT NOT NULL, naming TEXT NOT NULL, epoch INTEGER NOT NULL,"
        " message INTEGER NOT NULL)",
        # The journal: every reply, in order, as received. Rows are only ever added.
        "CREATE TABLE reply (task INTEGER NOT NULL REFERENCES task, turn INTEGER NOT NULL,"
        " body TEXT NOT NULL, PRIMARY KEY (task, turn)) WITHOUT ROWID",
        # Why a task could not be finished, one row for each time. Rows are only ever added.
        "CREATE TABLE error (number INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES task,"
        " turn INTEGER NOT NULL, body TEXT NOT NULL)",
        # Derived by replay, and stored so that scoring needs no replay; `verify` compares the two.
        "CREATE TABLE outcome (task INTEGER PRIMARY KEY REFERENCES task, outcome TEXT NOT NULL,"
        " record TEXT NOT NULL, fingerprint TEXT NOT NULL)",
        # What was asked about transcripts, by the digest of the question, and who answered.
        "CREATE TABLE question (digest TEXT PRIMARY KEY, body TEXT NOT NULL)",
        "CREATE TABLE rater (name TEXT PRIMARY KEY, body TEXT NOT NULL)",
        # The journal of their replies, as received. Rows are only ever added; labels are derived.
        "CREATE TABLE annotation (number INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES task,"
        " question TEXT NOT NULL REFERENCES question, variant TEXT NOT NULL, rater TEXT NOT NULL"
        " REFERENCES rater, body TEXT NOT NULL, UNIQUE (task, question, variant, rater))",
        # Which shard of a run the file is, and the tasks that it plays. Without a row: all tasks.
        "CREATE TABLE shard (number INTEGER NOT NULL, count INTEGER NOT NULL)",
        "CREATE TABLE share (task INTEGER PRIMARY KEY REFERENCES task)",
    ):
        db.execute(statement)


def _with_execution(db: sqlite3.Connection) -> None:
    # How the run was played last: budget, price, concurrency and so on. One row, which is replaced.
    db.execute("CREATE TABLE execution (body TEXT NOT NULL)")


MIGRATIONS: Final[Sequence[Callable[[sqlite3.Connection], None]]] = (_first, _with_execution)


def migrate(db: sqlite3.Connection, name: str) -> None:
    """Brings a run file up to the current schema, one transaction per migration.

    Raises:
        NotARunFile: the file was written by a later version of the package.
    """
    version = schema_version(db)
    if version > len(MIGRATIONS):
        raise NotARunFile(
            f"{name}: was written by a later version of propensitybench (schema {version}, this version "
            f"reads up to {len(MIGRATIONS)}); update the package"
        )
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            step(db)
            db.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")


def check_schema(db: sqlite3.Connection, name: str) -> None:
    """Checks that a file has exactly the tables that this version or an earlier one makes, and nothing else.

    A view, trigger, generated column or further index could run SQL of whoever made the file.

    Raises:
        NotARunFile: the schema is another one, or of a later version.
    """
    version = schema_version(db)
    if version > len(MIGRATIONS):
        raise NotARunFile(
            f"{name}: was written by a later version of propensitybench (schema {version}, this version "
            f"reads up to {len(MIGRATIONS)}); update the package"
        )
    if version < 1:
        raise NotARunFile(f"{name}: is damaged (schema version {version})")
    rows = db.execute("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master").fetchall()
    expected = _expected_schema(version)
    for kind, title, *_ in rows:
        if kind in ("view", "trigger") or (kind, title) not in {(one[0], one[1]) for one in expected}:
            raise NotARunFile(f"{name}: is not a run file ({kind} {title!r} is not part of one)")
    if sorted(_normalised(row[:4]) for row in rows) != sorted(expected):
        raise NotARunFile(f"{name}: is not a run file (its tables are defined differently)")
    if len({row[4] for row in rows}) != len(rows):
        raise NotARunFile(f"{name}: is damaged (two tables are stored in the same place)")


@cache
def _expected_schema(version: int) -> tuple[tuple[str, ...], ...]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for step in MIGRATIONS[:version]:
            step(db)
        rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return tuple(_normalised(row) for row in rows)


def _normalised(row: Sequence[object]) -> tuple[str, ...]:
    """A row of the schema table with white space made uniform; automatic indexes have no SQL."""
    return tuple(" ".join(str(value).split()) for value in row)


def schema_version(db: sqlite3.Connection) -> int:
    """The number of migrations applied to a file."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)
