"""The report's folder: written completely or not at all, and never at the cost of other files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from propensitybench.errors import BadInput

# Lists the files of the report, to tell them from a user's when the report is replaced.
MARKER: Final = ".propensitybench-report"


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yields a temporary folder to write a report into, and moves it to ``out`` on success.

    Args:
        out: does not exist yet, is empty, or holds nothing but an earlier report, which is replaced.

    Raises:
        BadInput: ``out`` holds other files, or cannot be written.
    """
    try:
        target = out.resolve()
        _check(out, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
        try:
            draft.mkdir()
            yield draft
            files = sorted(_files(draft))
            (draft / MARKER).write_text("\n".join([*files, ""]), encoding="utf-8")
            _check(out, target)
            _move(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror or error})") from error


def _check(out: Path, target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder that does not exist yet")
    present = set(_files(target))
    if not present:
        return
    marker = target / MARKER
    if not marker.is_file():
        raise BadInput(
            f"--out {out}: is not empty and is not a report; give a folder that does not exist yet"
        )
    others = sorted(
        present - set(marker.read_text(encoding="utf-8", errors="replace").split("\n")) - {MARKER}
    )
    if others:
        raise BadInput(
            f"--out {out}: contains {others[0]}, which is not part of the report; move it, or give another "
            "folder"
        )


def _files(folder: Path) -> Iterator[str]:
    """Relative paths of everything below a folder except folders themselves."""
    for path, folders, names in os.walk(folder):
        for name in (*names, *(name for name in folders if (Path(path) / name).is_symlink())):
            yield (Path(path) / name).relative_to(folder).as_posix()


def _move(draft: Path, target: Path) -> None:
    previous = target.with_name(f".{target.name}.{os.getpid()}.previous")
    if target.exists():
        target.rename(previous)
    try:
        draft.rename(target)
    except OSError:
        if previous.exists():
            previous.rename(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)
