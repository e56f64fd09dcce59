"""Merges run files of one run into a new one, and copies a run file without what was played.

Rows are read with their types checked, one at a time, and written by our own statements, so a file of a
stranger can do no more here than when it is read.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.store.creating import new_run_file, refuse_existing
from propensitybench.store.lock import is_locked
from propensitybench.store.parts import TASK, TASKS, TEXTS, Parts
from propensitybench.store.rows import Kinds
from propensitybench.store.runfile import RunFile
from propensitybench.store.shards import Shard

# Errors are collected first. Those of the file that holds the task come last, as its outcome may be the
# last of them; `nth` tells apart the errors of one file that are alike.
_COLLECTED: Final = (
    "CREATE TEMP TABLE collected (task INTEGER, turn INTEGER, body TEXT, nth INTEGER, held INTEGER,"
    " place INTEGER, PRIMARY KEY (task, turn, body, nth)) WITHOUT ROWID"
)
_COLLECT: Final = (
    "INSERT INTO temp.collected VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task, turn, body, nth) DO UPDATE"
    " SET held = 1, place = excluded.place WHERE excluded.held"
)
_ERRORS: Final = (
    "SELECT task, turn, body, row_number() OVER (PARTITION BY task, turn, body ORDER BY number), number"
    " FROM error ORDER BY number"
)
# A journal that was dropped for one of a finished task may have been longer.
_KEEP_ERRORS: Final = (
    "INSERT INTO error (task, turn, body) SELECT task, min(turn, (SELECT count(turn) FROM reply"
    " WHERE reply.task = collected.task)), body FROM temp.collected ORDER BY task, held, place"
)
# What was asked about transcripts: table, columns that identify a row, their types, order of the rows.
_ASKED: Final[Sequence[tuple[str, tuple[str, ...], Kinds, str]]] = (
    ("question", ("digest",), (str,), "digest"),
    ("rater", ("name",), (str,), "name"),
    ("annotation", ("task", "question", "variant", "rater"), (int, str, str, str), "number"),
)


class Merged(NamedTuple):
    """A merged run file.

    Attributes:
        files: number of files that were merged.
        tasks: number of tasks of the run.
        finished: number of those with an outcome other than ``errored``.
        errored: number of errored ones.
        missing: shards that were in none of the files.
    """

    files: int
    tasks: int
    finished: int
    errored: int
    missing: tuple[Shard, ...]


def merge(paths: Sequence[Path], to: Path) -> Merged:
    """Merges run files of one run, such as its shards, into a new run file of the whole run.

    Equal rows are merged into one. Of each task, `Parts` says which file counts; errors and annotations are
    kept from all of them. How the run is played is that of the first file. The new file appears completely or
    not at all.

    Args:
        paths: the files, one or more; they are only read.
        to: the file to create.

    Raises:
        RunMismatch: the files are not of one run, or contradict each other.
        BadInput: a file is damaged or being written to, or the new one exists or cannot be written.
    """
    refuse_existing(to)
    for path in paths:
        _check_at_rest(path)
    parts = Parts(paths)
    with new_run_file(to) as db:
        db.execute(_COLLECTED)
        for place, part in enumerate(parts.parts):
            _check_at_rest(part.path)
            with RunFile.open(part.path) as run, _as_damage(run):
                if place == 0:
                    _copy_plan(run, db)
                    _copy_execution(run, db)
                _copy_played(run, db, parts, place)
                _copy_annotations(run, db, parts, place)
        db.execute(_KEEP_ERRORS)
    with RunFile.open(to) as run:
        finished, ended = run.finished(), run.count("outcome")
    return Merged(len(parts.parts), parts.tasks, finished, ended - finished, tuple(parts.missing()))


def blank_copy(source: Path, to: Path) -> None:
    """Copies a run file without journal, outcomes, errors and annotations.

    Args:
        source: the file to copy; a shard gives the same shard.
        to: the file to create; it appears completely or not at all.

    Raises:
        BadInput: the source cannot be read, or the new file exists or cannot be written.
    """
    with RunFile.open(source) as run, new_run_file(to) as db, _as_damage(run):
        _copy_plan(run, db)
        if run.shard is not None:
            _copy(run, db, "INSERT INTO shard VALUES (?, ?)", (int, int), "SELECT number, count FROM shard")
            _copy(run, db, "INSERT INTO share VALUES (?)", (int,), "SELECT task FROM share ORDER BY task")


def _check_at_rest(path: Path) -> None:
    if is_locked(path):
        raise BadInput(f"{path}: is being written to by another program; wait for it to finish, or stop it")


@contextmanager
def _as_damage(run: RunFile) -> Iterator[None]:
    """A row that the source cannot have twice, and does, is damage of the source."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise NotARunFile(f"{run.path}: is damaged ({error})") from error


def _copy(run: RunFile, db: sqlite3.Connection, insert: str, kinds: Kinds, query: str) -> None:
    db.executemany(insert, run.rows.each(kinds, query))


def _copy_plan(run: RunFile, db: sqlite3.Connection) -> None:
    """Copies what a run is: manifest, texts and tasks."""
    _copy(run, db, "INSERT INTO manifest VALUES (?)", (str,), "SELECT body FROM manifest")
    for table, (kinds, query) in zip(("scenario", "pressure"), TEXTS, strict=True):
        _copy(run, db, f"INSERT INTO {table} VALUES (?, ?, ?)", kinds, query)
    _copy(run, db, "INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?)", TASK, TASKS)


def _copy_execution(run: RunFile, db: sqlite3.Connection) -> None:
    """Copies how a run is played."""
    db.execute("INSERT INTO execution VALUES (?)", (msgspec.json.encode(run.execution).decode(),))


def _copy_played(run: RunFile, db: sqlite3.Connection, parts: Parts, place: int) -> None:
    """Copies journal and outcomes of the tasks that a file holds, and collects its errors."""
    holds = parts.holder(place, run)
    replies = run.rows.each((int, int, str), "SELECT task, turn, body FROM reply ORDER BY task, turn")
    db.executemany("INSERT INTO reply VALUES (?, ?, ?)", (row for row in replies if holds(row[0])))
    query = "SELECT task, outcome, record, fingerprint FROM outcome ORDER BY task"
    outcomes = run.rows.each((int, str, str, str), query)
    db.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?)", (row for row in outcomes if holds(row[0])))
    errors = run.rows.each((int, int, str, int, int), _ERRORS)
    db.executemany(_COLLECT, ((*row[:4], holds(row[0]), row[4]) for row in errors))


def _copy_annotations(run: RunFile, db: sqlite3.Connection, parts: Parts, place: int) -> None:
    """Copies what was asked about transcripts, who was asked, and their replies."""
    files = [part.path for part in parts.parts[: place + 1]]
    holds = parts.holder(place, run)
    for table, key, kinds, order in _ASKED:
        columns = ", ".join((*key, "body"))
        query = f"SELECT {columns} FROM {table} ORDER BY {order}"
        same = " AND ".join(f"{column} = ?" for column in key)
        marks = ", ".join("?" * (len(key) + 1))
        for row in run.rows.each((*kinds, str), query):
            if table == "annotation":
                holds(row[0])  # refuses one of another shard's task
            cursor = db.execute(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", row)
            if cursor.rowcount:
                continue
            (body,) = db.execute(f"SELECT body FROM {table} WHERE {same}", row[:-1]).fetchone()
            if body != row[-1]:
                other = _first_with(files, f"SELECT body FROM {table} WHERE {same}", row[:-1])
                what = f"{table} {row[0]}" if table != "annotation" else _annotated(run, row)
                raise RunMismatch(f"{other} and {run.path}: differ in the {what}; leave one of the two out")


def _annotated(run: RunFile, row: Sequence[str | int]) -> str:
    number, question, _, rater, _ = row
    key = run.rows.one(str, "SELECT key FROM task WHERE number = ?", number)
    return f"answer of {rater} to the question {question} about the task {key}"


def _first_with(paths: Sequence[Path], query: str, values: Sequence[str | int]) -> Path:
    """The first of some files in which a query finds something."""
    for path in paths[:-1]:
        with RunFile.open(path) as run:
            if run.rows.all((str,), query, *values):
                return path
    return paths[-1]
