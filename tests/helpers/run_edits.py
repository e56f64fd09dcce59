"""Edits of a run file, as somebody with SQLite's own program would make them."""

import sqlite3
from contextlib import closing
from pathlib import Path


def edit(path: Path, statement: str, *values: object) -> None:
    """Executes one statement, which must change something."""
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement, values).rowcount != 0


def rewrite_schema(path: Path, *statements: str) -> None:
    """Executes statements that may write to SQLite's own schema table."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)
