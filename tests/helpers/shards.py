"""Parts of a finished run file, as if each of its tasks had come so far and no further."""

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from helpers.run_edits import edit

from propensitybench.episode import replay
from propensitybench.store import JournalEntry, OutcomeEntry, RunFile, Shard
from propensitybench.store.shards import share_of

Rows = Sequence[tuple[Any, ...]]


class State(NamedTuple):
    """How far a task has come: how many of its replies there are, and the error that ended it."""

    replies: int
    error: str = ""


@cache
def lengths(whole: Path) -> list[int]:
    """The number of replies of each task of a finished run."""
    with RunFile.open(whole) as run:
        return [len(run.replies(task.number)) for task in run.tasks()]


@cache
def domains(path: Path) -> list[str]:
    """The domain of each task of a run."""
    with RunFile.open(path) as run:
        return [run.scenario(task.task.scenario).domain for task in run.tasks()]


def part(whole: Path, path: Path, states: Mapping[int, State], shard: Shard | None = None) -> Path:
    """A run file in which the tasks of a finished one have come as far as the states say."""
    shutil.copy(whole, path)
    for table in ("reply", "outcome"):
        edit(path, f"DELETE FROM {table}")
    if shard is not None:
        make_shard(path, shard, whole)
    with RunFile.open(whole) as source, RunFile.open(path, write=True) as run:
        ended, tasks = lengths(whole), list(run.tasks())
        for number, (count, error) in states.items():
            bodies = [msgspec.json.encode(reply).decode() for reply in source.replies(number)][:count]
            run.append([JournalEntry(number, turn, body) for turn, body in enumerate(bodies)])
            if count == ended[number] or error:
                episode = replay(run.job(tasks[number])).episode
                run.append(outcomes=[OutcomeEntry(number, episode.record(error), episode.fingerprint())])
    return path


def make_shard(path: Path, shard: Shard, whole: Path) -> None:
    """Makes a shard of a copy of a whole run file."""
    share = share_of(shard, domains(whole))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO shard VALUES (?, ?)", shard)
        db.executemany("INSERT INTO share VALUES (?)", ((number,) for number in share))


def rows(path: Path, table: str, columns: str = "*") -> Rows:
    """The rows of a table, sorted."""
    with closing(sqlite3.connect(path)) as db:
        return sorted(db.execute(f"SELECT {columns} FROM {table}").fetchall())


def played(path: Path) -> tuple[Rows, Rows]:
    """Journal and outcomes of a run file."""
    return rows(path, "reply"), rows(path, "outcome")
