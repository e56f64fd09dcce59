"""Writes new run files, which appear completely or not at all."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from propensitybench.errors import BadInput
from propensitybench.store.atomic import NEW, draft_folder, put_in_place
from propensitybench.store.filesystems import require_local
from propensitybench.store.opening import remove_leftovers
from propensitybench.store.schema import create_tables


@contextmanager
def new_run_file(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields the database of a new run file, whose tables are empty, in a transaction.

    It is committed and gets its name when the block ends without an error; otherwise nothing is left behind.

    Raises:
        BadInput: the path exists already, cannot be written, or is on a network file system.
    """
    try:
        require_local(path)
        remove_leftovers(path)
        with draft_folder(path) as folder:
            draft = folder / NEW
            with closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode = OFF")  # an unfinished draft is removed, never rolled back
                db.execute("PRAGMA synchronous = OFF")
                create_tables(db)
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
            with draft.open("rb+") as file:
                os.fsync(file.fileno())  # some file systems report a full disk only here
            put_in_place(draft, path)
    except (OSError, sqlite3.OperationalError) as error:
        if isinstance(error, FileExistsError):
            refuse_existing(path)
        raise BadInput(f"{path}: cannot be written ({error})") from error


def refuse_existing(path: Path) -> None:
    """Raises `BadInput` if a name is taken."""
    if path.exists():
        raise BadInput(f"{path}: exists already; use another --run FILE")
