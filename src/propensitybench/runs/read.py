"""Runs from files: run files, Inspect logs, and folders of them."""

import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal, NamedTuple

from propensitybench.errors import BadInput
from propensitybench.files import file_name, open_regular
from propensitybench.metrics.stated import Answer
from propensitybench.runs.base import Run
from propensitybench.runs.stored import StoredRun
from propensitybench.store import differences, is_run_file

logger = logging.getLogger(__name__)

# Entry points that read Inspect logs, so that nothing here imports Inspect: `eval` those of runs, `stated`
# what models said of the tasks of runs.
READERS: Final = "propensitybench.run_readers"
# The first bytes of an Inspect log, by the suffix that Inspect wants for its format.
_LOG_STARTS: Final = {
    ".eval": re.compile(rb"PK\x03\x04"),
    ".json": re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"'),
}
_MAX_START: Final = 200
# Of a value in a message.
MAX_SHOWN: Final = 80
PathLike = str | os.PathLike[str]
Runs = Run | PathLike | Iterable[Run | PathLike]
"""A run, a file or folder of runs, or several of these."""
# By the task's key without its epoch, and the epoch.
TaskAnswers = Mapping[tuple[str, int], Answer]


class RunSource(NamedTuple):
    """A run file or a log to be read; ``given`` is the folder that the user named, or the file itself."""

    path: Path
    given: Path

    @property
    def in_folder(self) -> bool:
        """Whether the log was found in a folder: then a log of another task is skipped, not refused."""
        return self.given != self.path


class ReadRuns(NamedTuple):
    """Runs read from files.

    Attributes:
        runs: in the order given; the logs of one run count as one run, in the place of the first.
        skipped: what else was in the folders and why it was not read, one sentence each.
    """

    runs: list[Run]
    skipped: list[str]


def open_run(path: PathLike) -> Run:
    """The run in a run file, an Inspect log, or a folder that holds one run.

    Raises:
        BadInput: it holds no run, or more than one, or ``path`` is no path.
    """
    runs, skipped = read_runs([_path(path)])
    if not runs:
        raise BadInput(f"{path}: holds no run; {'; '.join(skipped)}")
    if len(runs) > 1:
        names = ", ".join(run.file for run in runs)
        raise BadInput(f"{path}: holds {len(runs)} runs; open one of them: {names}")
    return runs[0]


def run_of(given: Run | PathLike) -> Run:
    """A run, or the one in a file or folder; raises as `open_run` does."""
    return given if isinstance(given, Run) else open_run(given)


def runs_of(given: Runs) -> list[Run]:
    """A run, the runs in a file or a folder, or several of these; raises `BadInput` as `read_runs` does."""
    found = [one if isinstance(one, Run) else _path(one) for one in several(given)]
    paths = [one for one in found if isinstance(one, Path)]
    if len(paths) == len(found) > 0:  # together, so that a run that is given twice is refused
        return runs_in(paths)
    return [run for one in found for run in ([one] if isinstance(one, Run) else runs_in([one]))]


def several(given: Runs) -> list[Run | PathLike]:
    """What is given, as a list."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def run_file_of(given: Run | PathLike) -> Path:
    """The run file of a run, or a path as it is given; raises `BadInput` for a run that is in no run file."""
    if not isinstance(given, Run):
        return _path(given)
    if isinstance(given, StoredRun):
        return given.path
    raise BadInput(f"{given.file}: is not stored in a run file")


def _path(given: object) -> Path:
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise BadInput(f"{repr(given)[:MAX_SHOWN]} is neither a run nor the path of one")


def read_runs(paths: Sequence[Path]) -> ReadRuns:
    """The runs in run files, Inspect logs, and folders of them.

    Raises:
        BadInput: a file cannot be read or is given twice, or a folder holds neither run files nor logs.
    """
    files = [
        file for path in paths for file in (_in_folder(path) if path.is_dir() else [RunSource(path, path)])
    ]
    seen: set[str] = set()
    for file in files:
        place = os.path.realpath(file.path)
        if place in seen:
            raise BadInput(f"{file_name(file.path)}: is given twice; give each run once")
        seen.add(place)
    logs = [file for file in files if is_log(file.path)]
    runs: list[Run] = []
    skipped: list[str] = []
    stored: dict[RunSource, StoredRun] = {}
    for file in files:
        if file not in logs:
            runs.append(stored.setdefault(file, StoredRun(file.path)))
        elif file is logs[0]:
            read: ReadRuns = _log_reader("eval")(logs)
            runs += read.runs
            skipped += read.skipped
    _refuse_loose_shards(stored)
    if not runs:
        raise BadInput("; ".join(skipped))
    return ReadRuns(runs, skipped)


def runs_in(paths: Sequence[Path]) -> list[Run]:
    """The runs as `read_runs` gives them; logs what was skipped."""
    found = read_runs(paths)
    for note in found.skipped:
        logger.warning(note)
    return found.runs


def _refuse_loose_shards(stored: Mapping[RunSource, StoredRun]) -> None:
    """Raises `BadInput` for a shard together with another file of its run: they have to be merged."""
    for shard in (run for run in stored.values() if run.shard):
        files = [file for file, run in stored.items() if not differences(run.manifest, shard.manifest)]
        if len(files) > 1:
            given = " ".join(quote(file_name(path)) for path in dict.fromkeys(file.given for file in files))
            raise BadInput(
                f"{shard.file}: is shard {shard.shard} of a run of which {len(files)} files are given; put "
                f"them together first: propensitybench merge {given} --run whole.run"
            )


def read_stated(logs: Sequence[Path], runs: Sequence[Run]) -> list[TaskAnswers | None]:
    """What each run's model said of its tasks, from logs of the Inspect task ``stated_policy``.

    Returns:
        For each run the answers; None if no log asked its model.

    Raises:
        BadInput: a log cannot be read, is of another task, or asked a model that none of the runs is of; or
            Inspect is not installed.
    """
    found: list[TaskAnswers | None] = _log_reader("stated")(logs, runs) if logs else [None for _ in runs]
    return found


def run_files(paths: Sequence[Path]) -> list[Path]:
    """Run files, and those in folders, each once; raises `BadInput` for a folder that holds none."""
    found: dict[str, Path] = {}
    for path in paths:
        inside = [file.path for file in _in_folder(path)] if path.is_dir() else [path]
        for file in inside:
            if file == path or is_run_file(file):
                found.setdefault(os.path.realpath(file), file)
    if not found:
        raise BadInput(f"{', '.join(map(file_name, paths))}: holds no run file")
    return list(found.values())


def is_log(path: Path) -> bool:
    """Whether a file is an Inspect log, by its content and not by its name."""
    return log_suffix(path) is not None


def log_suffix(path: Path) -> str | None:
    """The suffix that Inspect wants for the log in a file: ``.eval``, ``.json``, or None for no log."""
    try:
        with open_regular(path) as file:
            start = file.read(_MAX_START)
    except OSError:
        return None  # opening it as a run file gives the reason
    return next((suffix for suffix, pattern in _LOG_STARTS.items() if pattern.match(start)), None)


def needs_inspect(error: ModuleNotFoundError) -> BadInput:
    """The error for a user without the extra ``inspect``."""
    return BadInput(
        f"Inspect logs: need Inspect AI, which is not installed ({error.name}); "
        "type: pip install 'propensitybench[inspect]'"
    )


def _in_folder(folder: Path) -> list[RunSource]:
    """The run files below a folder, then the logs; hidden files are drafts."""
    visible = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
    files = [path for path in visible if is_run_file(path)]
    files += [path for path in visible if path.suffix == ".eval" or (path.suffix == ".json" and is_log(path))]
    if not files:
        raise BadInput(f"{file_name(folder)}: holds neither a run file nor an Inspect log (*.eval, *.json)")
    return [RunSource(path, folder) for path in files]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _log_reader(name: Literal["eval", "stated"]) -> Any:
    (reader,) = entry_points(group=READERS, name=name)
    try:
        return reader.load()
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
