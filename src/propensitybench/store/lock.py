"""One writer a run file: two programs that add to one journal would pay for every reply twice."""

import os
import sys
from pathlib import Path
from typing import IO

from propensitybench.errors import BadInput


class RunLock:
    """Held from its making until `release`, or until the process dies.

    A small file beside the run file carries it while it is held. Raises `BadInput` if somebody
    else holds it.
    """

    def __init__(self, path: Path) -> None:
        whole = path.resolve()  # two names of one file must not be two locks
        self._beside = whole.with_name(whole.name + ".lock")
        try:
            self._file = self._take()
        except BlockingIOError as error:
            raise BadInput(f"{path}: another program is running it; wait for it, or stop it") from error
        except OSError as error:
            raise BadInput(f"{path}: cannot be written to ({error.strerror})") from error

    def _take(self) -> IO[str]:
        while True:
            file = self._beside.open("w")
            try:
                _hold(file.fileno())
                # Whoever held it before may have removed the file between our two steps.
                if self._beside.exists() and os.path.samestat(os.fstat(file.fileno()), self._beside.stat()):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def release(self) -> None:
        """Lets the next one in."""
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

else:
    import fcntl

    def _hold(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
