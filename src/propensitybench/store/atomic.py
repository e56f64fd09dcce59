"""Files and folders that appear completely or not at all.

They are written as a hidden draft beside the destination and renamed at the end. An interrupted program
removes its draft. The draft of a killed program is removed by the next write to the same destination; drafts
in use are recognised by a lock.
"""

import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EEXIST
from pathlib import Path
from typing import IO, Final

NEW: Final = "new"
OLD: Final = "old"


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Yields a file to write; it appears under its name when the block ends without an error.

    Raises:
        FileExistsError: the name is taken; that file is kept.
        OSError: the file cannot be written; nothing is left behind.
    """
    with _draft(path, Path.touch) as draft, draft.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())  # some file systems report a full disk only here
        put_in_place(draft, path)


@contextmanager
def new_entries(out: Path) -> Iterator[Path]:
    """Yields an empty folder whose entries move into ``out`` when the block ends without an error.

    Args:
        out: created if it does not exist; then it appears with everything in it.

    Raises:
        FileExistsError: ``out`` has an entry of that name, which is kept; nothing is moved.
        OSError: a file cannot be written; nothing is left behind.
    """
    with draft_folder(_within(out)) as draft:
        new = draft / NEW
        new.mkdir()
        yield new
        if not out.exists():
            new.rename(out)
            return
        moved: list[Path] = []
        try:
            for entry in sorted(new.iterdir()):
                put_in_place(entry, out / entry.name)
                moved.append(out / entry.name)
        except BaseException:
            for path in moved:
                _remove(path)
            raise


@contextmanager
def draft_folder(place: Path) -> Iterator[Path]:
    """Yields an empty folder beside a destination, which is removed at the end.

    An entry `OLD` in it is the previous destination, and is moved back if the destination does not exist.
    """
    with _draft(place, Path.mkdir) as draft:
        yield draft


def remove_stale(place: Path) -> None:
    """Removes the drafts of killed programs for a destination."""
    for where in {place, _within(place)}:
        pattern = re.compile(rf"\.{re.escape(where.name)}\.[0-9a-f]{{16}}\.draft")
        with suppress(OSError):
            for entry in list(os.scandir(where.parent)):
                if pattern.fullmatch(entry.name) and _is_abandoned(Path(entry.path)):
                    _discard(Path(entry.path), where)


def put_in_place(draft: Path, path: Path) -> None:
    """Gives a finished file or folder its name; raises `FileExistsError` if the name is taken."""
    if draft.is_dir():
        if path.exists():
            raise FileExistsError(EEXIST, "exists already", str(path))
        draft.rename(path)
        return
    try:
        os.link(draft, path)  # unlike a rename, never replaces a file
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(EEXIST, "exists already", str(path)) from None
        draft.rename(path)


def _within(out: Path) -> Path:
    """Where to put a folder's draft: beside it, or inside if it exists, since it may be a mount point."""
    return out / "entries" if out.is_dir() else out


@contextmanager
def _draft(place: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    created = [folder for folder in place.parents if not folder.exists()]  # the deepest first
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(place)
    while True:
        draft = place.with_name(f".{place.name}.{secrets.token_hex(8)}.draft")
        create(draft)
        lock = _lock(draft)
        if draft.exists():  # another program may have removed it before it was locked
            break
        _unlock(lock)
    try:
        yield draft
    finally:
        _discard(draft, place)
        _unlock(lock)
        for folder in created:
            with suppress(OSError):  # not empty
                folder.rmdir()


def _discard(draft: Path, place: Path) -> None:
    with suppress(OSError):
        if (draft / OLD).exists() and not place.exists():
            (draft / OLD).rename(place)
    _remove(draft)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


if sys.platform == "win32":

    def _lock(path: Path) -> int | None:  # noqa: ARG001
        return None

    def _is_abandoned(path: Path) -> bool:  # noqa: ARG001
        return False  # folders cannot be locked, so drafts of killed programs stay

else:
    import fcntl

    def _lock(path: Path) -> int | None:
        """A lock on a draft, held until it is closed or the program has ended; None if it is taken."""
        try:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # also on file systems without locks, where no draft counts as abandoned
            os.close(number)
            return None
        return number

    def _is_abandoned(path: Path) -> bool:
        lock = _lock(path)
        _unlock(lock)
        return lock is not None


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
