"""Runs as the metrics see them, from run files and Inspect logs, and whether several can be compared."""

import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from propensitybench.cli.text import name_of
from propensitybench.engine import stopping_state
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import Played
from propensitybench.metrics.sequential import StoppingState
from propensitybench.metrics.table import is_finished
from propensitybench.scenarios import scenario_id
from propensitybench.store import Manifest, RunFile, differences

if TYPE_CHECKING:
    from propensitybench.inspect_adapter.eval_read import LogRun

# What two runs may differ in and still have been played by the same rules on the same tasks.
_HARMLESS = ("model", "options", "selection", "tasks", "stopping_rule", "data_digest", "seed")


# How a log begins, which is a zip archive.
_ZIP: Final = b"PK\x03\x04"


class Comparable(NamedTuple):
    """Runs that can be compared.

    Attributes:
        played: in the order given; tasks whose texts differ between runs are left out.
        notes: in words, what a reader must know of the differences between them.
    """

    played: list[Played]
    notes: list[str]


class Source(NamedTuple):
    """A run, read.

    Attributes:
        file: the run file, or what was read from Inspect logs.
        played: its episodes.
        manifest: what it is.
        contents: id of each scenario that was played, by name.
    """

    file: "Path | LogRun"
    played: Played
    manifest: Manifest
    contents: dict[str, str]


def read_played(path: Path) -> Played:
    """A run file's episodes."""
    with RunFile.open(path) as run:
        return _played(run)


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """The runs in run files, Inspect logs, and folders of those logs, in the order given.

    Logs of one run are one run, at the place of the first that was given.

    Raises:
        BadInput: one of them cannot be read, or is given twice.
    """
    places = [os.path.realpath(path) for path in paths]
    for path, count in zip(paths, map(places.count, places), strict=True):
        if count > 1:
            raise BadInput(f"{path}: is given twice; give each run file once")
    logs = [path for path in paths if is_log(path)]
    found: list[Source] = []
    for path in paths:
        if path not in logs:
            found.append(_run_file(path))
        elif path == logs[0]:
            found += _log_runs(logs)
    return found


def is_log(path: Path) -> bool:
    """Whether that is an Inspect log or a folder, by its content, not by its name."""
    try:
        if path.is_dir():
            return True
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


def _log_runs(paths: Sequence[Path]) -> list[Source]:
    try:
        from propensitybench.inspect_adapter.eval_read import read_log_runs
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    return [
        Source(
            run,
            _as_played(run.file, run.manifest, run.records, run.stopping_rule),
            run.manifest,
            run.contents,
        )
        for run in read_log_runs(paths)
    ]


def _run_file(path: Path) -> Source:
    with RunFile.open(path) as run:
        played = _played(run)
        names = {record.labels.scenario for record in played.records}
        return Source(path, played, run.manifest, {name: scenario_id(run.scenario(name)) for name in names})


def _played(run: RunFile) -> Played:
    return _as_played(name_of(run.path), run.manifest, list(run.records()), stopping_state(run))


def _as_played(
    file: str, manifest: Manifest, records: list[EpisodeRecord], rule: StoppingState | None
) -> Played:
    return Played(file, manifest.model, manifest.tasks, records, manifest.protocol.levels, rule)


def read_comparable(paths: Sequence[Path]) -> Comparable:
    """Runs to be compared; raises `BadInput` if their ladders have different lengths."""
    return comparable(read_sources(paths))


def comparable(sources: Sequence[Source]) -> Comparable:
    """The same of runs that have been read."""
    notes = []
    for one, other in combinations(sources, 2):
        notes += _notes(one.played.file, one.manifest, other.played.file, other.manifest)
    played = [source.played for source in sources]
    changed = _changed([source.contents for source in sources])
    if changed:
        notes.append(
            f"{len(changed)} scenarios have other texts in one run than in another and are left out: "
            f"{', '.join(sorted(changed)[:5])}{' ...' if len(changed) > 5 else ''}"
        )
        played = [_without(run, changed) for run in played]
    notes += [
        f"{one.file} and {other.file} have no finished task in common, so they are not compared"
        for one, other in combinations(played, 2)
        if not _finished(one) & _finished(other)
    ]
    return Comparable(played, notes)


def _notes(file: str, manifest: Manifest, other_file: str, other: Manifest) -> list[str]:
    if manifest.protocol.levels != other.protocol.levels:
        raise BadInput(
            f"{file} and {other_file}: have {manifest.protocol.levels} and {other.protocol.levels} pressure "
            "messages at most, so their scores are of different things; compare runs of one ladder"
        )
    same = {field: getattr(manifest, field) for field in _HARMLESS}
    found = differences(manifest, type(other)(**{**_fields(other), **same}))
    return [f"{file} and {other_file} differ in: {difference}" for difference in found]


def _fields(manifest: Manifest) -> dict[str, object]:
    return {field: getattr(manifest, field) for field in manifest.__struct_fields__}


def _changed(contents: Sequence[dict[str, str]]) -> set[str]:
    """Names under which different scenarios stand."""
    seen: dict[str, str] = {}
    changed = set()
    for ids in contents:
        for name, identity in ids.items():
            if seen.setdefault(name, identity) != identity:
                changed.add(name)
    return changed


def _finished(run: Played) -> set[tuple[str, str, str]]:
    return {
        (record.labels.scenario, record.labels.dimension, record.labels.naming)
        for record in run.records
        if is_finished(record)
    }


def _without(run: Played, names: set[str]) -> Played:
    kept = [record for record in run.records if record.labels.scenario not in names]
    return msgspec.structs.replace(run, records=kept)
