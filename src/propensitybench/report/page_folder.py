"""The report's folder: it appears whole or not at all, and takes nobody's files away."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from propensitybench.errors import BadInput

# Lists every file of the report, so that a later one can tell them from a user's.
MARKER: Final = ".propensitybench-report"


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Gives a folder to write a report into, and puts it in place when all is written.

    Args:
        out: does not exist yet, is empty, or holds nothing but an earlier report, which is replaced.

    Raises:
        BadInput: ``out`` holds something else, or cannot be written.
    """
    try:
        place = out.resolve()
        _check(out, place)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.{os.getpid()}.draft")
        try:
            draft.mkdir()
            yield draft
            files = sorted(_files(draft))
            (draft / MARKER).write_text("\n".join([*files, ""]), encoding="utf-8")
            _check(out, place)
            _put_in_place(draft, place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror or error})") from error


def _check(out: Path, place: Path) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder that does not exist yet")
    found = set(_files(place))
    if not found:
        return
    marker = place / MARKER
    if not marker.is_file():
        raise BadInput(
            f"--out {out}: is not empty and holds no report; give a folder that does not exist yet"
        )
    others = sorted(found - set(marker.read_text(encoding="utf-8", errors="replace").split("\n")) - {MARKER})
    if others:
        raise BadInput(
            f"--out {out}: {others[0]} in it is no part of a report; move it, or give another folder"
        )


def _files(folder: Path) -> Iterator[str]:
    """Everything below a folder that is not a folder itself, by its path from there."""
    for path, folders, names in os.walk(folder):
        for name in (*names, *(name for name in folders if (Path(path) / name).is_symlink())):
            yield (Path(path) / name).relative_to(folder).as_posix()


def _put_in_place(draft: Path, place: Path) -> None:
    former = place.with_name(f".{place.name}.{os.getpid()}.former")
    if place.exists():
        place.rename(former)
    try:
        draft.rename(place)
    except OSError:
        if former.exists():
            former.rename(place)
        raise
    shutil.rmtree(former, ignore_errors=True)
