"""Runs from files: run files, Inspect logs, and folders of either."""

import os
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
LOG_SUFFIX: Final = ".eval"
# How an Inspect log begins, which is a zip archive.
_ZIP: Final = b"PK\x03\x04"


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
    return ReadRuns(runs, skipped)


def is_log(path: Path) -> bool:
    """Whether that is an Inspect log, by its content and not by its name."""
    try:
        with path.open("rb") as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False  # whoever opens it says why


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
    files += [path for path in found if path.suffix == LOG_SUFFIX]
    if not files:
        raise BadInput(f"{folder}: holds neither a run file nor an Inspect log (*{LOG_SUFFIX})")
    return [LogFile(path, folder) for path in files]


def _log_reader() -> RunReader:
    (found,) = entry_points(group=READERS, name=LOG_SUFFIX.removeprefix("."))
    try:
        return cast(RunReader, found.load())
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
