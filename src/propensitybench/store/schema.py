"""The run file's tables: SQL, reading, writing and merging are made from what is declared here."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.errors import NotARunFile
from propensitybench.files import open_regular

# "PBnc": distinguishes a run file from other SQLite files.
APPLICATION_ID: Final = 0x50426E63
# Of these tables and of the manifest: to be raised with any change of them.
SCHEMA_VERSION: Final = 4


class StoredTable(NamedTuple):
    """A table.

    Attributes:
        name: its name.
        columns: the declaration of each column, by name, in their order.
        unique: what is unique over several columns.
        option: what follows the columns.
    """

    name: str
    columns: Mapping[str, str]
    unique: str = ""
    option: str = ""

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        parts = [f"{name} {declaration}" for name, declaration in self.columns.items()]
        inside = ", ".join([*parts, self.unique] if self.unique else parts)
        return f"CREATE TABLE {self.name} ({inside}){self.option}"

    @property
    def insert(self) -> str:
        """The statement that adds a row; None for a column ``number`` that only counts gives the next one."""
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' * len(self.columns))})"

    @property
    def types(self) -> tuple[type, ...]:
        """The Python type of each column."""
        return tuple(int if "INTEGER" in declared else str for declared in self.columns.values())


_ID: Final = "INTEGER PRIMARY KEY"
_INT: Final = "INTEGER NOT NULL"
_TEXT: Final = "TEXT NOT NULL"
_OF_TASK: Final = "INTEGER NOT NULL REFERENCES task"

MANIFEST: Final = StoredTable("manifest", {"body": _TEXT})
SCENARIO: Final = StoredTable("scenario", {"name": "TEXT PRIMARY KEY", "id": _TEXT, "body": _TEXT})
PRESSURE: Final = StoredTable(
    "pressure",
    {"scenario": "TEXT NOT NULL REFERENCES scenario", "dimension": _TEXT, "body": _TEXT},
    "PRIMARY KEY (scenario, dimension)",
)
TASK: Final = StoredTable(
    "task",
    {
        "number": _ID,
        "key": "TEXT NOT NULL UNIQUE",
        "scenario": "TEXT NOT NULL REFERENCES scenario",
        "dimension": _TEXT,
        "naming": _TEXT,
        "epoch": _INT,
        "message": _INT,
    },
)
# The journal: every reply, in order, as received. Rows are only ever added.
REPLY: Final = StoredTable(
    "reply",
    {"task": _OF_TASK, "turn": _INT, "body": _TEXT},
    "PRIMARY KEY (task, turn)",
    " WITHOUT ROWID",
)
# Why a task could not be finished, one row for each time. Rows are only ever added.
ERROR: Final = StoredTable("error", {"number": _ID, "task": _OF_TASK, "turn": _INT, "body": _TEXT})
# Derived by replay, and stored so that scoring needs no replay; `verify` compares the two.
OUTCOME: Final = StoredTable(
    "outcome",
    {"task": "INTEGER PRIMARY KEY REFERENCES task", "outcome": _TEXT, "record": _TEXT, "fingerprint": _TEXT},
)
# What was asked about transcripts, by the digest of the question, and which models were asked.
QUESTION: Final = StoredTable("question", {"digest": "TEXT PRIMARY KEY", "body": _TEXT})
RATER: Final = StoredTable("rater", {"name": "TEXT PRIMARY KEY", "body": _TEXT})
# The journal of their replies, as received. Rows are only ever added; labels are derived.
ANNOTATION: Final = StoredTable(
    "annotation",
    {
        "number": _ID,
        "task": _OF_TASK,
        "question": "TEXT NOT NULL REFERENCES question",
        "variant": _TEXT,
        "rater": "TEXT NOT NULL REFERENCES rater",
        "body": _TEXT,
    },
    "UNIQUE (task, question, variant, rater)",
)
# What people answered. Rows are only ever added.
LABEL: Final = StoredTable(
    "label",
    {
        "number": _ID,
        "task": _OF_TASK,
        "question": "TEXT NOT NULL REFERENCES question",
        "person": _TEXT,
        "category": _TEXT,
        "quote": _TEXT,
    },
    "UNIQUE (task, question, person)",
)
# The episodes that people are to read for a question. A row is replaced when its sample grows.
SAMPLE: Final = StoredTable("sample", {"question": "TEXT PRIMARY KEY REFERENCES question", "body": _TEXT})
# Which shard of a run the file is, and the tasks that it plays. Without a row: all tasks.
SHARD: Final = StoredTable("shard", {"number": _INT, "count": _INT})
SHARE: Final = StoredTable("share", {"task": "INTEGER PRIMARY KEY REFERENCES task"})
# How the run was played last: budget, price, concurrency and so on. One row, which is replaced.
EXECUTION: Final = StoredTable("execution", {"body": _TEXT})

# What is planned: the tasks and the texts that they are played with.
PLAN: Final = (SCENARIO, PRESSURE, TASK)
# What there is of the tasks that have begun.
PLAYED: Final = (REPLY, OUTCOME, ERROR, ANNOTATION, LABEL)
TABLES: Final = (MANIFEST, *PLAN, *PLAYED, QUESTION, RATER, SAMPLE, SHARD, SHARE, EXECUTION)


def is_run_file(path: Path) -> bool:
    """Whether a file is a run file, judging by its first bytes and not by its name."""
    try:
        with open_regular(path) as file:
            head = file.read(72)
    except OSError:
        return False
    # Bytes 68 to 71 of a SQLite file are its application id.
    return head[:16] == b"SQLite format 3\x00" and int.from_bytes(head[68:72], "big") == APPLICATION_ID


def create_tables(db: sqlite3.Connection) -> None:
    """Makes an empty database that of a run file."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for table in TABLES:
        db.execute(table.create)


def check_schema(db: sqlite3.Connection, name: str) -> None:
    """Checks that a file has exactly these tables, and nothing else.

    A view, trigger, generated column or further index could run SQL of whoever made the file.

    Raises:
        NotARunFile: the schema is another one, or of another version.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise NotARunFile(
            f"{name}: was written by a later version of propensitybench (schema {version}, this version "
            f"reads {SCHEMA_VERSION}); update the package"
        )
    if version < SCHEMA_VERSION:
        raise NotARunFile(f"{name}: is damaged, or of an earlier version (schema version {version})")
    rows = db.execute("SELECT type, name, tbl_name, sql, rootpage FROM sqlite_master").fetchall()
    expected = _expected_schema()
    for kind, title, *_ in rows:
        if kind in ("view", "trigger") or (kind, title) not in {(one[0], one[1]) for one in expected}:
            raise NotARunFile(f"{name}: is not a run file ({kind} {title!r} is not part of one)")
    if sorted(_normalised(row[:4]) for row in rows) != sorted(expected):
        raise NotARunFile(f"{name}: is not a run file (its tables are defined differently)")
    if len({row[4] for row in rows}) != len(rows):
        raise NotARunFile(f"{name}: is damaged (two tables are stored in the same place)")


@cache
def _expected_schema() -> tuple[tuple[str, ...], ...]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        create_tables(db)
        rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return tuple(_normalised(row) for row in rows)


def _normalised(row: Sequence[object]) -> tuple[str, ...]:
    """A row of the schema table with white space made uniform; automatic indexes have no SQL."""
    return tuple(" ".join(str(value).split()) for value in row)
