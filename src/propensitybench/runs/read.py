"""Runs from files: run files, Inspect logs, and folders of them."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.errors import BadInput
from propensitybench.files import open_regular
from propensitybench.runs.base import Run
from propensitybench.runs.readers import log_reader
from propensitybench.runs.sharded import ShardedRun
from propensitybench.runs.stored import StoredRun, file_name
from propensitybench.store import Manifest, RunFile, differences, is_run_file

# The first bytes of an Inspect log, by the suffix that Inspect wants for its format.
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


def open_run(path: str | os.PathLike[str]) -> Run:
    """The run in a run file, an Inspect log, or a folder that holds one run.

    Raises:
        BadInput: it holds no run, or more than one.
    """
    runs, skipped = read_runs([Path(path)])
    if not runs:
        raise BadInput(f"{path}: holds no run; {'; '.join(skipped)}")
    if len(runs) > 1:
        names = ", ".join(run.file for run in runs)
        raise BadInput(f"{path}: holds {len(runs)} runs; open one of them: {names}")
    return runs[0]


def read_runs(paths: Sequence[Path]) -> ReadRuns:
    """The runs in run files, Inspect logs, and folders of them.

    Raises:
        BadInput: a file cannot be read or is given twice, or a folder holds neither run files nor logs.
    """
    files = [
        file for path in paths for file in (_in_folder(path) if path.is_dir() else [LogFile(path, path)])
    ]
    seen: set[str] = set()
    for file in files:
        place = os.path.realpath(file.path)
        if place in seen:
            raise BadInput(f"{file_name(file.path)}: is given twice; give each run once")
        seen.add(place)
    logs = [file for file in files if is_log(file.path)]
    groups = _by_run([file for file in files if file not in logs])
    runs: list[Run] = []
    skipped: list[str] = []
    for file in files:
        if file in groups:
            runs.append(_run_in(groups[file]))
        elif logs and file is logs[0]:
            read: ReadRuns = log_reader("eval")(logs)
            runs += read.runs
            skipped += read.skipped
    if not runs:
        raise BadInput("; ".join(skipped))
    return ReadRuns(runs, skipped)


def _by_run(files: Sequence[LogFile]) -> dict[LogFile, list[LogFile]]:
    """The files of each run, by the first of them.

    Two whole run files with equal settings are two runs, unless there is a shard with these settings too.
    """
    manifests: list[Manifest] = []
    alike: list[list[LogFile]] = []
    with_shards: set[int] = set()
    for file in files:
        with RunFile.open(file.path) as run:
            manifest, is_shard = run.manifest, run.shard is not None
        same = (place for place, other in enumerate(manifests) if not differences(other, manifest))
        place = next(same, len(manifests))
        if place == len(manifests):
            manifests.append(manifest)
            alike.append([])
        alike[place].append(file)
        if is_shard:
            with_shards.add(place)
    groups: list[list[LogFile]] = []
    for place, found in enumerate(alike):
        groups += [found] if place in with_shards else [[file] for file in found]
    return {group[0]: group for group in groups}


def _run_in(files: Sequence[LogFile]) -> Run:
    if len(files) == 1:
        return StoredRun(files[0].path)
    folders = {file.given for file in files if file.in_folder}
    in_one = len(folders) == 1 and all(file.in_folder for file in files)
    name = file_name(folders.pop()) if in_one else f"{len(files)} shards"
    return ShardedRun([file.path for file in files], name)


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
            start = file.read(_LONGEST_START)
    except OSError:
        return None  # opening it as a run file gives the reason
    return next((suffix for suffix, pattern in _LOG_STARTS.items() if pattern.match(start)), None)


def _in_folder(folder: Path) -> list[LogFile]:
    """The run files below a folder, then the logs; hidden files are drafts."""
    visible = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
    files = [path for path in visible if is_run_file(path)]
    files += [path for path in visible if path.suffix == ".eval" or (path.suffix == ".json" and is_log(path))]
    if not files:
        raise BadInput(f"{file_name(folder)}: holds neither a run file nor an Inspect log (*.eval, *.json)")
    return [LogFile(path, folder) for path in files]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
