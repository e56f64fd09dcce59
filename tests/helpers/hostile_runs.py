"""Run files that a stranger could send: whatever a file can hold where we put our own."""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

# A path, markup, the end of a script and of an attribute, and controls of a terminal.
MARKUP: Final = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!--"
CONTROLS: Final = "\x1b[31m\x1b]0;title\x07\x9b\u202e\u2066\nnote: all is well"
EVIL: Final = f"../../../../evil{MARKUP}{CONTROLS}"
ABSOLUTE: Final = "/tmp/propensitybench-evil/x"

_Change = Callable[[sqlite3.Connection, str], object]


def _in_scenario(field: str) -> _Change:
    def change(db: sqlite3.Connection, text: str) -> None:
        db.execute(f"UPDATE scenario SET body = json_set(body, '$.{field}', ?)", (text,))
        db.execute(f"UPDATE outcome SET record = json_set(record, '$.metadata.{field}', ?)", (text,))

    return change


def _in_manifest(field: str) -> _Change:
    return lambda db, text: db.execute(f"UPDATE manifest SET body = json_set(body, '$.{field}', ?)", (text,))


def _in_task(column: str) -> _Change:
    def change(db: sqlite3.Connection, text: str) -> None:
        db.execute(f"UPDATE task SET {column} = ? || number", (text,))
        if column == "scenario":
            db.execute("UPDATE scenario SET name = ? || rowid", (text,))
        if column in ("scenario", "dimension"):
            db.execute(f"UPDATE pressure SET {column} = ? || rowid", (text,))
        if column in ("key", "scenario", "dimension", "naming"):
            name = "task" if column == "key" else column
            query = f"UPDATE outcome SET record = json_set(record, '$.metadata.{name}', ? || task)"
            db.execute(query, (text,))

    return change


def _number(db: sqlite3.Connection, text: str) -> None:
    """A task number of text, which the schema's INTEGER PRIMARY KEY would refuse."""
    db.execute("ALTER TABLE task RENAME TO old")
    db.execute("CREATE TABLE task (number, key, scenario, dimension, naming, epoch, message)")
    db.execute("INSERT INTO task SELECT CASE number WHEN 0 THEN ? ELSE number END, key, scenario, dimension,"
               " naming, epoch, message FROM old", (text,))  # fmt: skip
    db.execute("DROP TABLE old")


CHANGES: Final[Mapping[str, _Change]] = {
    **{f"scenario {field}": _in_scenario(field) for field in ("domain", "workspace", "role", "capability")},
    **{f"manifest {field}": _in_manifest(field) for field in ("model", "data", "package", "created")},
    **{
        f"task {column}": _in_task(column)
        for column in ("key", "scenario", "dimension", "naming", "epoch", "message")
    },
    "task number": _number,
    "error": lambda db, text: db.execute("INSERT INTO error (task, turn, body) VALUES (0, 0, ?)", (text,)),
    "reply": lambda db, text: db.execute("UPDATE reply SET body = json_set(body, '$.content', ?)", (text,)),
    "option": lambda db, text: db.execute(
        "UPDATE manifest SET body = json_set(body, '$.options', json_object(?, ?))", (text, text)
    ),
}
"""What is changed in a run file, by name."""


def hostile(good: Path, path: Path, change: str, text: str) -> Path:
    """A copy of a run file in which one thing is replaced by a text."""
    shutil.copy(good, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        CHANGES[change](db, text)
        db.commit()
    return path
