"""Runs from files: run files, Inspect logs, and folders of either."""

import os
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, NamedTuple, cast

from propensitybench.errors import BadInput
from propensitybench.runs.base import Run
from propensitybench.runs.stored import StoredRun
from propensitybench.store import is_run_file

# A package that can make runs of other files names its reader here, by the suffix of those files.
READERS: Final = "propensitybench.run_readers"
# How an Inspect log begins, by the suffix that Inspect wants for that format.
_LOG_STARTS: Final = {
    ".eval": re.compile(rb"PK\x03\x04"),
    ".json": re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"'),
}
_LONGEST_START: Final = 200


class LogFile(NamedTuple):
    """A log to be read; ``given`` is the folder that the user named, or the log itself."""

    path: Path
    given: Path

    @property
    def in_folder(self) -> bool:
        """Whether the log was found in a folder: then one of another task is skipped, not refused."""
        return self.given != self.path


class ReadRuns(NamedTuple):
    """Runs read from files.

    Attributes:
        runs: in the order given; logs of one run are one run, at the place of the first of them.
        skipped: what else was in the folders and why it was not read, one sentence each.
    """

    runs: list[Run]
    skipped: list[str]


RunReader = Callable[[Sequence[LogFile]], ReadRuns]


def open_run(path: str | os.PathLike[str]) -> Run:
    """The run in a run file, an Inspect log, or a folder that holds one run.

    Raises:
        BadInput: there is none, or more than one.
    """
    found = read_runs([Path(path)]).runs
    if len(found) != 1:
        names = ", ".join(run.file for run in found)
        raise BadInput(f"{path}: holds {len(found)} runs; open one of them: {names}")
    return found[0]


def read_runs(paths: Sequence[Path]) -> ReadRuns:
    """The runs in run files, Inspect logs, and folders of them.

    Raises:
        BadInput: one of them cannot be read, or is given twice; a folder has no run in it.
    """
    places = [os.path.realpath(path) for path in paths]
    for path, count in zip(paths, map(places.count, places), strict=True):
        if count > 1:
            raise BadInput(f"{path}: is given twice; give each run once")
    files = [
        file for path in paths for file in (_in_folder(path) if path.is_dir() else [LogFile(path, path)])
    ]
    logs = [file for file in files if is_log(file.path)]
    runs: list[Run] = []
    skipped: list[str] = []
    for file in files:
        if file not in logs:
            runs.append(StoredRun(file.path))
        elif file is logs[0]:
            read = _log_reader()(logs)
            runs += read.runs
            skipped += read.skipped
    if not runs:
        raise BadInput("; ".join(skipped))
    return ReadRuns(runs, skipped)


def is_log(path: Path) -> bool:
    """Whether a file is an Inspect log, by its content and not by its name."""
    return log_suffix(path) is not None


def log_suffix(path: Path) -> str | None:
    """The suffix that Inspect wants for the log in a file: ``.eval``, ``.json``, or None for no log."""
    try:
        with path.open("rb") as file:
            start = file.read(_LONGEST_START)
    except OSError:
        return None  # whoever opens it says why
    return next((suffix for suffix, pattern in _LOG_STARTS.items() if pattern.match(start)), None)


def needs_inspect(error: ModuleNotFoundError) -> BadInput:
    """What to tell somebody who lacks the extra."""
    return BadInput(
        f"Inspect logs: need Inspect AI, which is not installed ({error.name}); "
        "type: pip install 'propensitybench[inspect]'"
    )


def _in_folder(folder: Path) -> list[LogFile]:
    """The run files in a folder, or else the logs."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    files = [path for path in found if is_run_file(path)]
    files += [path for path in found if path.suffix == ".eval" or (path.suffix == ".json" and is_log(path))]
    if not files:
        raise BadInput(f"{folder}: holds neither a run file nor an Inspect log (*.eval, *.json)")
    return [LogFile(path, folder) for path in files]


def _log_reader() -> RunReader:
    (found,) = entry_points(group=READERS, name="eval")
    try:
        return cast(RunReader, found.load())
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
