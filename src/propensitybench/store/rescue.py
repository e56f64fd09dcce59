"""Keeps the replies of a run file that was deleted, moved or replaced while it was written to."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from propensitybench.store.lock import Identity, RunLock, identity


def is_in_place(path: Path, file: Identity) -> bool:
    """Whether a file is still what it was opened as."""
    try:
        return identity(path) == file
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # what cannot be looked at need not be gone


def rescue(path: Path, db: sqlite3.Connection, lock: RunLock) -> str:
    """Makes a file complete under its other name, or saves a copy; a sentence for the user."""
    what = "was replaced by another file" if path.exists() else "was moved or deleted"
    start = f"{path}: {what} while it was running, so the run has stopped"
    with suppress(sqlite3.DatabaseError):
        # What is only in the log goes into the file, and the log under the old name becomes empty.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    names, other = lock.names()
    if names and other is not None:
        return f"{start}; everything so far is in {other}: propensitybench resume {other}"
    try:
        copy = _save(path, db)
    except (OSError, sqlite3.DatabaseError) as error:
        return f"{start}; what it held could not be saved ({error})"
    return f"{start}; everything so far was saved as {copy}: propensitybench resume {copy}"


def _save(path: Path, db: sqlite3.Connection) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        copy = path.with_name(f"{path.stem}.saved-{number}{path.suffix}")
        try:
            copy.touch(exist_ok=False)
            break
        except FileExistsError:
            number += 1
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as saved:
            db.backup(saved)
            saved.execute("PRAGMA journal_mode = DELETE")
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy
