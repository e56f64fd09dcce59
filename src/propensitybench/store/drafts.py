"""Drafts: files that are written completely before they get their name."""

import os
import sys
import time
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

# A draft that was written to more recently may belong to a process on another machine.
STALE_AFTER_S: Final = 60.0


def draft_of(path: Path) -> Path:
    """Where this process writes a file before it gets its name."""
    return path.with_name(f".{path.name}.{os.getpid()}.draft")


def remove_stale_drafts(path: Path) -> None:
    """Removes drafts of a file whose processes were killed."""
    with suppress(OSError):
        for draft in list(path.parent.glob(f".{escape(path.name)}.*.draft*")):
            number = draft.name.removeprefix(f".{path.name}.").partition(".")[0]
            if number.isdecimal() and _is_stale(draft, int(number)):
                draft.unlink(missing_ok=True)


def _is_stale(draft: Path, process: int) -> bool:
    if time.time() - draft.lstat().st_mtime < STALE_AFTER_S:
        return False
    if sys.platform == "win32":  # os.kill would end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
