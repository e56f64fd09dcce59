"""The system's limit on open files, which every connection counts against."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

# For the run file, name resolution, and what the packages in use open for a moment.
RESERVE: Final = 32
# Where the number of open files cannot be counted.
_USUALLY_OPEN: Final = 32


def within_open_files(concurrency: int) -> int:
    """How many connections the process can have at once, at most ``concurrency``.

    Logs a note if that is less. The limit is the process's: the command line raises it, a library leaves it
    alone.
    """
    try:
        import resource
    except ModuleNotFoundError:  # on Windows sockets do not count
        return concurrency
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = concurrency + _open_files() + RESERVE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return concurrency
    possible = min(concurrency, max(1, soft - _open_files() - RESERVE))
    if possible < concurrency:
        logger.warning(
            f"concurrency lowered from {concurrency} to {possible}: the system allows {soft} open files; "
            f"`ulimit -n {needed}` allows enough"
        )
    return possible


def _open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return sum(1 for _ in Path(folder).iterdir())
    return _USUALLY_OPEN
