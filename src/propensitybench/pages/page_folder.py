"""The folder of a report or board: written completely or not at all, never at the cost of other files."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from propensitybench.errors import BadInput
from propensitybench.store.atomic import NEW, OLD, draft_folder


class FolderKind(NamedTuple):
    """What a folder holds, for people, and the file that lists its files, to tell them from a user's."""

    name: str
    marker: str


REPORT: Final = FolderKind("report", ".propensitybench-report")
BOARD: Final = FolderKind("board", ".propensitybench-board")


@contextmanager
def new_folder(out: Path, kind: FolderKind = REPORT) -> Iterator[Path]:
    """Yields a temporary folder to write into, and moves it to ``out`` on success.

    Args:
        out: does not exist yet, is empty, or holds only an earlier one of this kind, which is replaced.
        kind: what is written.

    Raises:
        BadInput: ``out`` holds other files, or cannot be written.
    """
    try:
        target = out.resolve()
        _check(out, target, kind)
        with draft_folder(target) as draft:
            new = draft / NEW
            new.mkdir()
            yield new
            (new / kind.marker).write_text("\n".join([*sorted(files_below(new)), ""]), encoding="utf-8")
            _check(out, target, kind)
            if target.exists():
                target.rename(draft / OLD)
            new.rename(target)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror or error})") from error


def _check(out: Path, target: Path, kind: FolderKind) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder that does not exist yet")
    if not any(target.iterdir()):
        return
    marker = target / kind.marker
    if not marker.is_file():
        raise BadInput(
            f"--out {out}: is not empty and is not a {kind.name}; give a folder that does not exist yet"
        )
    ours = {kind.marker, *marker.read_text(encoding="utf-8", errors="replace").split("\n")}
    other = next((name for name in files_below(target, ours) if name not in ours), None)
    if other is not None:
        raise BadInput(
            f"--out {out}: contains {other}, which is not part of the {kind.name}; move it, or give another "
            "folder"
        )


def files_below(folder: Path, known: Collection[str] | None = None) -> Iterator[str]:
    """Relative paths of everything below a folder except folders themselves, in order.

    Args:
        folder: to look through.
        known: paths of files; a folder that holds none of them is given by its own path, and not entered.
    """
    parents = None if known is None else {str(up) for name in known for up in PurePosixPath(name).parents}
    for path, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted((*names, *folders)):
            found = Path(path) / name
            relative = found.relative_to(folder).as_posix()
            if name in folders and not found.is_symlink():
                if parents is None or relative in parents:
                    continue
                folders.remove(name)
            yield relative
