"""Opens the database of a run file, whoever made it.

Nothing that the file says is executed: its schema must be exactly ours (`check_schema`), and is checked
before any of its tables is read. Reading never changes the file, except that SQLite undoes a write that a
kill interrupted.
"""

import os
import sqlite3
import stat
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from propensitybench.errors import BadInput, NotARunFile
from propensitybench.store.filesystems import network_kind
from propensitybench.store.lock import RunLock
from propensitybench.store.schema import APPLICATION_ID, check_schema

# A commit takes well under a second; after five, another program must have the file open.
BUSY_TIMEOUT_S: Final = 5.0
# A reply is read from at most 4 MB; escaped as JSON text inside JSON text it can grow threefold.
MAX_VALUE: Final = 64 * 2**20
# What reading a database can raise; its messages may quote text of the file that is not UTF-8.
SQLITE_ERRORS: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
# SQLite's journals, which lie beside the file.
_BESIDE: Final = ("-wal", "-shm", "-journal")
# The last bytes of a rollback journal that names a further file, which SQLite would delete: a stranger's
# journal must not do that to a user's file.
_SUPER_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
_STEPS_AT_ONCE: Final = 10_000
# Virtual machine steps: our queries take about one for every byte of the file, whatever it holds.
_MIN_STEPS: Final = 2_000_000
_WRITER_STEPS: Final = 500_000_000


class QueryBudget:
    """Ends a query that takes more steps than a sound file can need.

    The pages of a B-tree that somebody forged can refer to each other, and then a query never ends.
    """

    def __init__(self, db: sqlite3.Connection, steps: int) -> None:
        self._most = steps // _STEPS_AT_ONCE
        self._taken = 0
        db.set_progress_handler(self._step, _STEPS_AT_ONCE)

    def restart(self) -> None:
        """Grants the next statement its full number of steps."""
        self._taken = 0

    def _step(self) -> int:
        self._taken += 1
        return self._taken > self._most


def check_path(path: Path) -> None:
    """Checks that a path is an ordinary file, and that its journals are.

    Raises:
        BadInput: it does not exist or cannot be read, or one of them is something else.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadInput(f"{path}: does not exist") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if not stat.S_ISREG(mode):
        raise BadInput(f"{path}: is not a run file")
    for beside in besides(path):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(beside.lstat().st_mode):
                raise BadInput(f"{path}: {beside.name}, its journal, is not an ordinary file; remove it")
            if beside.name.endswith("-journal") and _names_another_file(beside):
                raise BadInput(f"{path}: {beside.name} is not a journal of a run file; remove it")


def besides(path: Path) -> list[Path]:
    """The journals that SQLite may keep beside a file."""
    whole = path.resolve()
    return [whole.with_name(whole.name + suffix) for suffix in _BESIDE]


def _names_another_file(journal: Path) -> bool:
    with journal.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_SUPER_JOURNAL)))
        return file.read() == _SUPER_JOURNAL


def connect(path: Path, *, write: bool) -> tuple[sqlite3.Connection, QueryBudget]:
    """Opens the database of a run file and checks its schema; raises as `RunFile.open` does."""
    check_path(path)
    try:
        try:
            return _connect(path, write=write)
        except SQLITE_ERRORS as error:
            if write or _name(error) != "SQLITE_READONLY_ROLLBACK":
                raise
        _undo_interrupted_write(path)
        return _connect(path, write=write)
    except SQLITE_ERRORS as error:
        raise _bad_file(path, error) from error


def _name(error: Exception) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


def _bad_file(path: Path, error: Exception) -> BadInput:
    """What an error of SQLite while opening a file means to the user."""
    if _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return BadInput(f"{path}: is in use by another program; wait for it to finish")
    if _name(error).startswith("SQLITE_CANTOPEN"):
        return BadInput(
            f"{path}: cannot be opened ({error}); copy it, with its -wal file if there is one, to a folder "
            "that can be written to"
        )
    if _name(error).startswith("SQLITE_CORRUPT"):
        return NotARunFile(f"{path}: is damaged or incompletely copied ({error}); copy it again")
    return NotARunFile(f"{path}: is not a run file of propensitybench ({error})")


def _connect(path: Path, *, write: bool) -> tuple[sqlite3.Connection, QueryBudget]:
    db = sqlite3.connect(
        f"{path.resolve().as_uri()}?{'mode=rw' if write else _read_mode(path)}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_TIMEOUT_S,
        check_same_thread=False,  # may be opened in one thread and used in another, one at a time
    )
    try:
        budget = QueryBudget(db, _WRITER_STEPS if write else max(_MIN_STEPS, 2 * _size(path)))
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            db.execute(f"PRAGMA {pragma}")
        (found,) = db.execute("PRAGMA application_id").fetchone()
        if found != APPLICATION_ID:
            raise NotARunFile(f"{path}: is not a run file of propensitybench")
        check_schema(db, str(path))
        if write:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db, budget


def _size(path: Path) -> int:
    """The size of a file with its log, which may hold most of a run that is being played."""
    size = path.stat().st_size
    with suppress(FileNotFoundError):
        size += besides(path)[0].stat().st_size
    return size


def _read_mode(path: Path) -> str:
    """How to open a file for reading without leaving anything beside it."""
    # On a network file system SQLite's locks may fail, and nobody writes to a file there.
    alone = not any(beside.exists() for beside in besides(path))
    is_at_rest = _is_without_its_log(path) or (alone and network_kind(path))
    return "mode=ro&immutable=1" if is_at_rest else "mode=ro"


def _is_without_its_log(path: Path) -> bool:
    """Whether a file says that it has a write-ahead log, and there is none."""
    if besides(path)[0].exists():
        return False
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _undo_interrupted_write(path: Path) -> None:
    """Lets SQLite undo a write that was interrupted by a kill; the file cannot be read before."""
    with closing(RunLock(path)):
        db, _ = _connect(path, write=True)
        db.execute("PRAGMA journal_mode = DELETE")
        db.close()


def remove_leftovers(path: Path) -> None:
    """Removes the journals of a run file that is gone, before another gets its name.

    Raises:
        BadInput: a log holds replies of the file that is gone. SQLite would write them into the new file.
    """
    if path.exists():
        return
    for beside in besides(path):
        with suppress(FileNotFoundError):
            if beside.name.endswith("-wal") and beside.lstat().st_size:
                raise BadInput(
                    f"{path}: {beside.name} holds replies of an earlier run file of that name; if you moved "
                    "that file, move this one too, otherwise remove it"
                )
            beside.unlink()
