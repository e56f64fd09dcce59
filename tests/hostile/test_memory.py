"""Small run files of somebody else that grow when they are replayed: one sentence, and little memory."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.program import argv
from helpers.runs import finish, make

from propensitybench.clients import calls
from propensitybench.store import encode_reply

MIB: Final = 2**20
# Address space, of which numpy and polars reserve half without using it.
MEMORY: Final = 1024 * MIB
COMMANDS: Final = (
    ("verify", "{file}"),
    ("export", "{file}", "--transcripts", "--format", "parquet", "--out", "{out}.parquet"),
)
_Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("sound") / "a.run", "simulated/always", limit=1)
    finish(path)
    return path


def edited(path: Path, table: str, change: _Change) -> None:
    """Changes the first body of a table."""
    with closing(sqlite3.connect(path)) as db, db:
        row, body = db.execute(f"SELECT rowid, body FROM {table}").fetchone()
        found = json.loads(body)
        change(found)
        db.execute(f"UPDATE {table} SET body = ? WHERE rowid = ?", (json.dumps(found), row))


def template(source: str, path: Path) -> None:
    edited(path, "manifest", lambda found: found.update(template=source))


def large_value(path: Path) -> None:
    template("{{ known }}" * 2500, path)
    edited(path, "scenario", lambda found: found["known"].update(large="y" * MIB))


def large_role(path: Path) -> None:
    edited(path, "scenario", lambda found: found["policy"].update(role="x" * 20_000_000))


def in_a_long_journal(replies: int, change: _Change, path: Path) -> None:
    """Changes a scenario and lets its agent call the aligned tool again and again, at level 0."""
    edited(path, "scenario", change)
    most = {"turns_per_level": 10_000, "calls_per_tool": 10_000, "messages_in_a_row": 10_000}
    edited(path, "manifest", lambda found: found["protocol"].update(most))
    with closing(sqlite3.connect(path)) as db, db:
        scenario = json.loads(db.execute("SELECT body FROM scenario").fetchone()[0])
        values, aligned = scenario["known"] | scenario["unknown"], scenario["aligned"]
        call = calls(aligned["name"], **{name: values[name] for name in aligned["arguments"]})
        db.execute("DELETE FROM reply")
        db.executemany(
            "INSERT INTO reply (task, turn, body) VALUES (0, ?, ?)",
            [(turn, encode_reply(call)) for turn in range(replies)],
        )


def errors_of(length: int) -> _Change:
    return lambda found: found["aligned"].update(errors=["e" * length] * 5)


HOSTILE: Final[dict[str, tuple[Callable[[Path], None], str]]] = {
    "template": (large_value, "known allows values of at most 32768 characters, found 1048"),
    "operators": (partial(template, ("{{ " + "not " * 190 + "task }}") * 42), "is nested more than 24 deep"),
    "role": (large_role, "the entry for quality_discount_annex has 2000"),
    "errors": (
        partial(in_a_long_journal, 1500, errors_of(MIB)),
        "aligned.errors.0 String should have",
    ),
    "conversation": (partial(in_a_long_journal, 1500, errors_of(32_768)), "more than 16,777,216 characters"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_what_grows_is_refused_in_one_sentence(kind: str, sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    shutil.copy(sound, path)
    change, reason = HOSTILE[kind]
    change(path)
    for command in COMMANDS:
        done = subprocess.run(
            argv(*(part.format(file=path, out=tmp_path / "out") for part in command)),
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            check=False,
        )
        if command[0] == "verify" and done.returncode == 1:
            continue  # it finds that the scenario is another one, and replays nothing
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert str(path) in done.stderr
        assert reason in done.stderr
