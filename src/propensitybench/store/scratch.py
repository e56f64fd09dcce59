"""A run file that is played in a scratch folder on a local disk and copied back to its own place.

The run file itself is only ever replaced by a whole newer one, so it can be read at every moment, on any file
system. Which of two copies is newer is decided by what they hold: journals only grow, so a copy that holds
every row of another one continues it. If each holds something that the other lacks, neither is replaced.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Final

from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.store.claims import Claim, this_machine
from propensitybench.store.drafts import draft_of, remove_stale_drafts
from propensitybench.store.filesystems import network_kind, require_local
from propensitybench.store.lock import RunLock, is_locked
from propensitybench.store.opening import besides, connect, remove_leftovers
from propensitybench.store.rows import Kinds
from propensitybench.store.runfile import RunFile
from propensitybench.store.whole_files import new_file

# Everything that is not derived, sorted by what identifies a row.
_ROWS: Final[Sequence[tuple[Kinds, str]]] = (
    ((str,), "SELECT body FROM manifest"),
    ((int, int), "SELECT number, count FROM shard"),
    ((int, int, str), "SELECT task, turn, body FROM reply ORDER BY task, turn"),
    ((int, int, int, str), "SELECT number, task, turn, body FROM error ORDER BY number"),
    ((str, str), "SELECT digest, body FROM question ORDER BY digest"),
    ((str, str), "SELECT name, body FROM rater ORDER BY name"),
    (
        (int, int, str, str, str, str),
        "SELECT number, task, question, variant, rater, body FROM annotation ORDER BY number",
    ),
)


def scratch_copy(place: Path, folder: Path) -> Path:
    """Where a run file is played: a name in the scratch folder that no other run file gives.

    Raises:
        BadInput: the folder cannot be made, or is on a network file system itself.
    """
    if kind := network_kind(folder):
        raise BadInput(f"--scratch {folder}: is on a network file system ({kind}); give a local folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--scratch {folder}: cannot be made ({error.strerror})") from error
    return folder.resolve() / f"{place.stem}-{digest(os.fsencode(place))[:8]}{place.suffix}"


def check_place(path: Path, folder: Path | None) -> None:
    """Checks that a run file can be written to where it is, or played in a scratch folder.

    Raises:
        BadInput: it is on a network file system, or the scratch folder cannot be used.
    """
    if folder is None:
        require_local(path)
    else:
        scratch_copy(path, folder)


class Scratch:
    """A run file in a scratch folder. Making one brings the newest copy there.

    Args:
        place: the run file, without links.
        path: its copy in the scratch folder; it need not exist.
        claim: on the run file.

    Attributes:
        place: the run file.
        path: the copy, which is played.
        left: where a scratch copy was moved that an earlier program left behind, and that somebody who took
            over could not reach; None if there was none.
        source: the copy that was the newest: this one, one in an earlier scratch folder, or the run file.

    Raises:
        BadInput: two copies have grown apart, or one of them is in use.
        OSError: the scratch folder cannot be written to.
    """

    def __init__(self, place: Path, path: Path, claim: Claim) -> None:
        self.place, self.path = place, path
        self._claim = claim
        self._copying = Lock()
        self._copied: object = None
        _settle(place)
        remove_stale_drafts(place)
        self.left = _set_aside(place, path, claim)
        earlier = _earlier(claim, path)
        found = [file for file in (path, *earlier, place) if file.exists()]
        self.source = _newest(found)
        if self.source != path:
            _replace(path, self.source)
        for file in earlier:
            _remove(file)
        self._seen = _look(place)

    def copy_back(self) -> None:
        """Replaces the run file by what the scratch copy holds now, if that has changed.

        May be called in a thread while the copy is written to.

        Raises:
            BadInput: the run file was changed by somebody else, or another program has taken over; nothing
                is replaced.
            OSError: it cannot be written at the moment.
        """
        with self._copying:
            self._claim.check()
            self._check_place()
            state = [_look(file) for file in (self.path, *besides(self.path))]
            if state != self._copied:
                _replace(self.place, self.path, self._claim)
                self._seen, self._copied = _look(self.place), state

    def _check_place(self) -> None:
        if _look(self.place) == self._seen:
            return
        if not self.place.exists():
            self.place.parent.stat()  # a folder that is not mounted may come back
            raise BadInput(
                f"{self.place}: was moved or deleted while it was played in {self.path}; to keep what was "
                f"played, copy {self.path} there"
            )
        if not _is_within(self.place, self.path):
            raise BadInput(_apart([self.place, self.path]))

    def release(self, *, keep: bool) -> None:
        """Gives the claim up, after copying back.

        Args:
            keep: whether the scratch copy stays.
        """
        self._claim.release()
        if not keep:
            _remove(self.path)

    def abandon(self) -> None:
        """Leaves claim and scratch copy for the next program that plays the run."""
        self._claim.abandon()


def create_by_way_of(folder: Path, path: Path, create: Callable[[Path], None]) -> None:
    """Creates a run file in a scratch folder and puts it in its place, completely or not at all.

    Raises:
        BadInput: as `RunFile.create`, or the folder or the place cannot be written to.
    """
    local = scratch_copy(path, folder).parent
    try:
        remove_leftovers(path)
        with TemporaryDirectory(dir=local) as temporary:
            made = Path(temporary, path.name)
            create(made)
            with new_file(path) as file, made.open("rb") as source:
                shutil.copyfileobj(source, file)
    except FileExistsError as error:
        raise BadInput(f"{path}: exists already; use another --run FILE") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror or error})") from error


def _settle(place: Path) -> None:
    """Brings what a killed program left in a log into the run file; raises if a program writes to it."""
    logs = [file for file in besides(place) if file.exists()]
    if network_kind(place):
        if logs:
            raise BadInput(
                f"{place}: {logs[0].name} beside it may hold replies; copy both to a local folder and resume "
                "the run there"
            )
        return
    lock = RunLock(place)
    if not logs:
        lock.release()
        return
    try:
        db, steps = connect(place, write=True)
    except BaseException:
        lock.release()
        raise
    RunFile(place, db, steps, lock).close()


def _set_aside(place: Path, path: Path, claim: Claim) -> Path | None:
    """Moves a scratch copy away that has grown apart from the run file, unless the last player used it."""
    holder = claim.predecessor
    named = holder is not None and (holder.machine, holder.scratch) == (this_machine(), str(path))
    if named or not path.exists() or _is_within(path, place) or _is_within(place, path):
        return None
    RunFile.open(path, write=True).close()  # with what its log holds
    number = 1
    while (left := path.with_name(f"{path.stem}.left-{number}{path.suffix}")).exists():
        number += 1
    return path.rename(left)


def _earlier(claim: Claim, path: Path) -> list[Path]:
    """The scratch copy of the holder before, if it is another one and on this machine."""
    holder = claim.predecessor
    if holder is None or holder.machine != this_machine():
        return []
    file = Path(holder.scratch)
    if file == path or file.name != path.name or not file.exists():
        return []
    if is_locked(file):
        raise BadInput(f"{file}: is in use by another program; wait for it to finish, or stop it")
    return [file]


def _newest(files: Sequence[Path]) -> Path:
    """The file that holds every row of the others."""
    for file in files:
        if all(other == file or _is_within(other, file) for other in files):
            return file
    raise BadInput(_apart(files))


def _apart(files: Sequence[Path]) -> str:
    names = " and ".join(map(str, files))
    return (
        f"{names}: each holds replies that the other lacks, so neither replaces the other; "
        "keep one and move the other away"
    )


def _is_within(part: Path, whole: Path) -> bool:
    """Whether a run file holds every row of another one."""
    with RunFile.open(part) as one, RunFile.open(whole) as other:
        for kinds, query in _ROWS:
            rows = other.rows.each(kinds, query)
            # Both are sorted, so what has been passed need not be looked at again.
            if not all(row in rows for row in one.rows.each(kinds, query)):
                return False
    return True


def _replace(path: Path, source: Path, claim: Claim | None = None) -> None:
    """Replaces a file by a copy of a run file, as a whole, unless the claim is lost meanwhile."""
    draft = draft_of(path)
    try:
        draft.unlink(missing_ok=True)
        with RunFile.open(source) as run:
            run.copy_to(draft)
        with suppress(OSError):
            shutil.copymode(path, draft)
        if claim is not None:
            claim.check()
        draft.replace(path)
    except sqlite3.Error as error:
        raise OSError(str(error)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    with suppress(OSError):
        _sync(path.parent)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _look(file: Path) -> tuple[int, ...]:
    """What changes when a file does; empty if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _remove(path: Path) -> None:
    for file in (path, *besides(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)
