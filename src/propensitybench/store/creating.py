"""Writes new run files, which appear completely or not at all."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from propensitybench.errors import BadInput
from propensitybench.store.drafts import draft_of, remove_stale_drafts
from propensitybench.store.filesystems import require_local
from propensitybench.store.opening import remove_leftovers
from propensitybench.store.schema import APPLICATION_ID, migrate


@contextmanager
def new_run_file(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields the database of a new run file, whose tables are empty, in a transaction.

    It is committed and gets its name when the block ends without an error; otherwise nothing is left behind.

    Raises:
        BadInput: the path exists already, cannot be written, or is on a network file system.
    """
    draft = draft_of(path)
    try:
        require_local(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_drafts(path)
        remove_leftovers(path)
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = OFF")  # an unfinished draft is removed, never rolled back
            db.execute("PRAGMA synchronous = OFF")
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            migrate(db, str(path))
            db.execute("BEGIN")
            yield db
            db.execute("COMMIT")
        _flush(draft)
        _put_in_place(draft, path)
    except (OSError, sqlite3.OperationalError) as error:
        raise BadInput(f"{path}: cannot be written ({error})") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def refuse_existing(path: Path) -> None:
    """Raises `BadInput` if a name is taken."""
    if path.exists():
        raise BadInput(f"{path}: exists already; use another --run FILE")


def _flush(draft: Path) -> None:
    """Waits until a file is on the disk; some file systems report a full disk only here."""
    with draft.open("rb+") as file:
        os.fsync(file.fileno())


def _put_in_place(draft: Path, path: Path) -> None:
    """Gives a finished file its name, unless that name is taken."""
    try:
        os.link(draft, path)  # unlike a rename, never replaces a file
    except FileExistsError:
        refuse_existing(path)
        raise
    except OSError:  # a file system without hard links
        refuse_existing(path)
        draft.rename(path)
