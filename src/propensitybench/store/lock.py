"""The lock on a run file: two programs that write to one journal would pay for every reply twice."""

import os
import sys
from pathlib import Path
from typing import IO, NamedTuple

from propensitybench.errors import BadInput


class Identity(NamedTuple):
    """A file itself, whatever its name: its device and inode."""

    device: int
    inode: int


def identity(path: Path | int) -> Identity:
    """The identity of a file, by its path or descriptor; raises `OSError`."""
    status = os.stat(path)  # noqa: PTH116 - also of descriptors
    return Identity(status.st_dev, status.st_ino)


class RunLock:
    """Held from creation until `release`, or until the process ends.

    There are two locks: one on a small file beside the run file, for everybody who uses its name, and one on
    the run file itself, for everybody who uses another name of it (a hard link). Windows has only the first.
    Release it after closing the database: closing any descriptor of a file drops SQLite's own locks on it.

    Raises:
        BadInput: another program holds it, or the file cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        whole = path.resolve()  # a link to the file must give the same lock
        self._beside = whole.with_name(whole.name + ".lock")
        try:
            self._file = self._take()
            try:
                self._itself = FileLock(whole)
            except BaseException:
                self._release_name()
                raise
        except BlockingIOError as error:
            raise BadInput(
                f"{path}: is in use by another program; wait for it to finish, or stop it"
            ) from error
        except OSError as error:
            raise BadInput(f"{path}: cannot be written to ({error.strerror})") from error

    def _take(self) -> IO[str]:
        while True:
            file = self._beside.open("w")
            try:
                _hold(file.fileno())
                # The previous holder may have removed the file between our two steps.
                if self._beside.exists() and os.path.samestat(os.fstat(file.fileno()), self._beside.stat()):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def names(self) -> tuple[int, Path | None]:
        """How many names the locked file still has, and one of them if the system can tell."""
        return self._itself.names()

    def release(self) -> None:
        """Releases the lock."""
        self._itself.release()
        self._release_name()

    def _release_name(self) -> None:
        if sys.platform != "win32":
            self._beside.unlink(missing_ok=True)
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    def _hold(number: int) -> None:
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

    class FileLock:
        """Nothing: Windows neither renames nor removes an open file."""

        def __init__(self, path: Path) -> None:
            self._path = path

        def names(self) -> tuple[int, Path | None]:
            """The file under its own name."""
            return 1, self._path

        def release(self) -> None:
            """Nothing to release."""

    def is_locked(path: Path) -> bool:  # noqa: ARG001
        """Whether another program writes to the file under any of its names; unknown on Windows."""
        return False

else:
    import errno
    import fcntl
    import struct
    from typing import Final

    # One byte far beyond the file, and beyond those that SQLite locks (from 1 GiB).
    _BYTE: Final = 2**62
    # Files locked by this process. Trying the lock again would open and close the file, which drops
    # SQLite's own locks on it (POSIX).
    _held: Final[set[Identity]] = set()

    def _hold(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _hold_byte(number: int) -> None:
        """Locks the file of a descriptor until that descriptor is closed.

        An open-file-description lock on one byte, because on a network file system `flock` locks every byte,
        and so also keeps SQLite out.
        """
        if hasattr(fcntl, "F_OFD_SETLK"):
            wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0)
            try:
                fcntl.fcntl(number, fcntl.F_OFD_SETLK, wanted)
            except OSError as error:
                if error.errno == errno.EACCES:
                    raise BlockingIOError from error
                if error.errno not in (errno.EINVAL, errno.ENOSYS):
                    raise
            else:
                return
        _hold(number)

    class FileLock:
        """A lock on a file itself, whatever its names; raises `BlockingIOError` if another has it."""

        def __init__(self, path: Path) -> None:
            self._identity = identity(path)
            if self._identity in _held:
                raise BlockingIOError
            self._number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                _hold_byte(self._number)
            except BaseException:
                os.close(self._number)
                raise
            _held.add(self._identity)

        def names(self) -> tuple[int, Path | None]:
            """How many names the file has, and one of them if the system can tell (Linux)."""
            count = os.fstat(self._number).st_nlink
            try:
                path = Path(f"/proc/self/fd/{self._number}").readlink()
                return count, path if identity(path) == self._identity else None
            except OSError:
                return count, None

        def release(self) -> None:
            """Releases the lock."""
            _held.discard(self._identity)
            os.close(self._number)

    def is_locked(path: Path) -> bool:
        """Whether a program writes to the file under any of its names."""
        try:
            FileLock(path).release()
        except BlockingIOError:
            return True
        except OSError:
            return False  # not writable, so nobody with our rights writes to it
        return False
