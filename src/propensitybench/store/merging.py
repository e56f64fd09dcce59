"""Merges run files of one run into a new one.

Rows are read with their types checked, one at a time, and written by our own statements, so a file of a
stranger can do no more here than when it is read.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.store.consistency import strays
from propensitybench.store.creating import new_run_file, refuse_existing
from propensitybench.store.lock import is_locked
from propensitybench.store.manifest import differences
from propensitybench.store.rows import OnDone, ignore
from propensitybench.store.runfile import RunFile
from propensitybench.store.schema import (
    ANNOTATION,
    ERROR,
    EXECUTION,
    LABEL,
    MANIFEST,
    PLAN,
    PLAYED,
    QUESTION,
    RATER,
    SAMPLE,
    StoredTable,
)
from propensitybench.store.shards import Shard

_COUNTED = (ERROR, ANNOTATION, LABEL)
_BEGUN = " UNION ".join(f"SELECT task FROM {table.name}" for table in PLAYED)


class Merged(NamedTuple):
    """What was merged.

    Attributes:
        files: number of files.
        tasks: number of tasks of the run.
        finished: number of tasks with an outcome other than ``errored``.
        errored: number of errored tasks.
        missing: the shards that were in none of the files.
    """

    files: int
    tasks: int
    finished: int
    errored: int
    missing: tuple[Shard, ...]


def merge(paths: Sequence[Path], to: Path, on_file: OnDone = ignore) -> Merged:
    """Merges run files of one run, such as its shards, into a new file.

    Args:
        paths: the files, one or more. How the run is played is taken from the first.
        to: the file to create; it appears completely or not at all.
        on_file: told how many files are merged, of how many.

    Raises:
        BadInput: a file cannot be read or is being written to, or the new file exists or cannot be written.
        RunMismatch: the files are not of one run, or two of them hold the same task.
        NotARunFile: a file is damaged.
    """
    refuse_existing(to)
    shards: list[Shard | None] = []
    with new_run_file(to) as db, RunFile.open(paths[0]) as first:
        _copy(first, db, MANIFEST, *PLAN)
        db.execute(EXECUTION.insert, (msgspec.json.encode(first.execution).decode(),))
        plan = _digest(first)
        db.execute("CREATE TEMP TABLE holder (task INTEGER PRIMARY KEY, file INTEGER)")
        for place, path in enumerate(paths):
            on_file(place, len(paths))
            if is_locked(path):
                raise BadInput(
                    f"{path}: is being written to by another program; wait for it to finish, or stop it"
                )
            with RunFile.open(path) as run, _as_damage(run):
                shards.append(run.shard)
                found = differences(first.manifest, run.manifest)
                if found or _digest(run) != plan:
                    what = "; ".join(found) or "its tasks, scenarios or pressure messages"
                    raise RunMismatch(f"{path}: is not of the run in {paths[0]}; it differs in {what}")
                for what in strays(run):
                    raise NotARunFile(f"{path}: is damaged ({what})")
                _check_disjoint(db, run, paths, place)
                _copy(run, db, *PLAYED)
                _copy_asked(run, db)
    with RunFile.open(to) as run:
        finished, ended = run.finished(), run.count("outcome")
        return Merged(len(paths), run.manifest.tasks, finished, ended - finished, tuple(_missing(shards)))


@contextmanager
def _as_damage(run: RunFile) -> Iterator[None]:
    """A row that the source cannot have twice, and does, is damage of the source."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise NotARunFile(f"{run.path}: is damaged ({error})") from error


def _copy(run: RunFile, db: sqlite3.Connection, *tables: StoredTable) -> None:
    for table in tables:
        rows = run.rows.of(table)
        # Each file counts its errors, annotations and labels from 1.
        db.executemany(table.insert, ([None, *row[1:]] for row in rows) if table in _COUNTED else rows)


def _copy_asked(run: RunFile, db: sqlite3.Connection) -> None:
    """Copies what was asked about transcripts, and who was asked about which, once for all files."""
    for table in (QUESTION, RATER, SAMPLE):
        known = dict(db.execute(f"SELECT * FROM {table.name}").fetchall())
        for name, body in run.rows.of(table):
            if name not in known:
                db.execute(table.insert, (name, body))
            elif known[name] != body:
                raise RunMismatch(
                    f"{run.path}: has another {table.name} {name!r} than the files before it; leave one of "
                    "them out"
                )


def _digest(run: RunFile) -> bytes:
    """Identifies the tasks, scenarios and pressure messages of a file."""
    found = hashlib.blake2b()
    encode = msgspec.json.Encoder().encode
    for table in PLAN:
        for row in run.rows.of(table, "ORDER BY 1, 2"):
            found.update(encode(row))
    return found.digest()


def _check_disjoint(db: sqlite3.Connection, run: RunFile, paths: Sequence[Path], place: int) -> None:
    """Notes which tasks have begun in a file, and that they have in no file before it."""
    for (task,) in run.rows.each((int,), _BEGUN):
        if db.execute("INSERT OR IGNORE INTO temp.holder VALUES (?, ?)", (task, place)).rowcount:
            continue
        (other,) = db.execute("SELECT file FROM temp.holder WHERE task = ?", (task,)).fetchone()
        raise RunMismatch(
            f"{paths[other]} and {run.path}: have both played the task {run.task(task).task.key}; leave one "
            "of the two files out"
        )


def _missing(shards: Sequence[Shard | None]) -> Iterator[Shard]:
    """The shards that are in none of the files, if all of these are shards of one division of the run."""
    given = {shard for shard in shards if shard is not None}
    if None not in shards and len({shard.of for shard in given}) == 1:
        of = next(iter(given)).of
        yield from (shard for number in range(1, of + 1) if (shard := Shard(number, of)) not in given)
