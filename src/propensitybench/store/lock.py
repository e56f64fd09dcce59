"""The lock on a run file: two programs that write to one journal would pay for every reply twice."""

import os
import sys
from pathlib import Path
from typing import IO

from propensitybench.errors import BadInput

if sys.platform == "win32":
    import msvcrt

    def _hold(number: int) -> None:
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error

else:
    import fcntl

    def _hold(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """A lock on a small file beside the run file, held until `close` or until the process ends.

    Raises:
        BadInput: another program holds it, or the file cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self._beside = _beside(path)
        try:
            self._file = self._take()
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

    def close(self) -> None:
        """Releases the lock."""
        if sys.platform != "win32":
            self._beside.unlink(missing_ok=True)
        self._file.close()


def is_locked(path: Path) -> bool:
    """Whether a program writes to a run file."""
    try:
        with _beside(path).open("rb") as file:
            _hold(file.fileno())
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _beside(path: Path) -> Path:
    whole = path.resolve()  # a link to the file must give the same lock
    return whole.with_name(whole.name + ".lock")
