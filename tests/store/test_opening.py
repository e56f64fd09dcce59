"""Opening a run file of somebody else: nothing in it runs, and nothing of it or beside it changes."""

import os
import signal
import socket
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.run_edits import edit, rewrite_schema
from helpers.runs import finish, make, scores, scripted

from propensitybench.errors import BadInput, NotARunFile
from propensitybench.runs import read_runs
from propensitybench.store import RunFile, is_run_file, mismatches
from propensitybench.store.creating import new_run_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize(
    ("statements", "complaint"),
    [
        (["CREATE VIEW extra AS SELECT 1"], "view 'extra' is not part of one"),
        (
            ["CREATE TRIGGER later AFTER INSERT ON reply BEGIN DELETE FROM outcome; END"],
            "trigger 'later' is not part of one",
        ),
        (["DROP TABLE outcome", f"CREATE VIEW outcome AS {ENDLESS}"], "view 'outcome' is not part of one"),
        (["CREATE TABLE extra (a)"], "table 'extra' is not part of one"),
        (["CREATE INDEX extra ON reply (body)"], "index 'extra' is not part of one"),
        (["ANALYZE"], "table 'sqlite_stat1' is not part of one"),
        (["DROP TABLE error"], "tables are defined differently"),
        (["ALTER TABLE error ADD COLUMN more TEXT"], "tables are defined differently"),
        (
            ["DROP TABLE error", "CREATE TABLE error (number, task, turn AS (abs(task)), body)"],
            "tables are defined differently",
        ),
        (["DROP TABLE error", "CREATE VIRTUAL TABLE error USING fts5(task, turn, body)"], "not part of one"),
        (["UPDATE sqlite_master SET rootpage = 3 WHERE name = 'outcome'"], "stored in the same place"),
        (["PRAGMA user_version = -1"], "schema version -1"),
        (["PRAGMA user_version = 0"], "schema version 0"),
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_another_schema_is_refused_before_any_of_it_runs(
    finished: Path, statements: list[str], complaint: str, write: bool
) -> None:
    rewrite_schema(finished, *statements)
    before = finished.read_bytes()
    with pytest.raises(NotARunFile, match=complaint):
        RunFile.open(finished, write=write)
    assert finished.read_bytes() == before
    assert names(finished.parent) == ["a.run"]


def test_pages_that_refer_to_each_other_do_not_hold_a_command_up(finished: Path) -> None:
    """Each page of a B-tree is its own child many times over: a query over it would never end."""
    with closing(sqlite3.connect(finished)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'outcome'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (leaf,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'task'").fetchone()
        (pages,) = db.execute("PRAGMA page_count").fetchone()
    content = bytearray(finished.read_bytes())
    children, depth = 200, 10
    numbers = [root, *range(pages + 1, pages + depth), leaf]
    content += bytes(size * (depth - 1))
    for number, child in pairwise(numbers):
        start = (number - 1) * size
        page = bytearray(size)
        cells = [size - 8 * (i + 1) for i in range(children)]
        page[0] = 5  # an interior page of a table
        page[3:5], page[5:7] = children.to_bytes(2, "big"), cells[-1].to_bytes(2, "big")
        page[8:12] = child.to_bytes(4, "big")
        for index, cell in enumerate(cells):
            page[12 + 2 * index : 14 + 2 * index] = cell.to_bytes(2, "big")
            page[cell : cell + 5] = child.to_bytes(4, "big") + b"\x7f"
        content[start : start + size] = page
    content[28:32] = (pages + depth - 1).to_bytes(4, "big")
    finished.write_bytes(content)
    with RunFile.open(finished) as run:
        for read in (lambda: list(run.records()), lambda: run.count("outcome"), run.outcome_counts):
            with pytest.raises(NotARunFile, match="is damaged"):
                read()
        assert run.integrity() != "ok"


def test_what_is_not_an_ordinary_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe, link, place = tmp_path / "pipe.run", tmp_path / "zero.run", tmp_path / "socket.run"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        for path in (pipe, link, place, tmp_path):
            for write in (False, True):
                with pytest.raises(BadInput, match="is not a run file"):
                    RunFile.open(path, write=write)
            assert not is_run_file(path)
        for path in (pipe, link, place):
            with pytest.raises(BadInput, match="is not a run file"):
                read_runs([path])
    with pytest.raises(BadInput, match="does not exist"):
        RunFile.open(tmp_path / "none.run")


def test_a_huge_file_with_holes_is_read_no_slower(finished: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.run"
    for path in (finished, empty):
        with path.open("ab") as file:
            file.truncate(2**40)
    with pytest.raises(NotARunFile, match="is not a run file"):
        RunFile.open(empty)
    with RunFile.open(finished) as run:
        assert len(list(run.records())) == 12


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_link_in_the_place_of_a_journal_is_not_followed(finished: Path, suffix: str) -> None:
    mine = finished.with_name("mine.txt")
    mine.write_text("mine")
    finished.with_name(finished.name + suffix).symlink_to(mine)
    for write in (False, True):
        with pytest.raises(BadInput, match=f"a.run{suffix}, its journal, is not an ordinary file"):
            RunFile.open(finished, write=write)
    assert mine.read_text() == "mine"


def test_a_journal_that_names_another_file_does_not_delete_it(finished: Path, tmp_path: Path) -> None:
    """SQLite deletes the super-journal that a hot journal names."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    magic = bytes.fromhex("d9d505f920a163d7")
    name = str(victim).encode()
    pages = (finished.stat().st_size // 4096).to_bytes(4, "big")
    header = magic + bytes(4) + bytes(4) + pages + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    checksum = sum(name).to_bytes(4, "big")
    lock_page = (0x40000000 // 4096 + 1).to_bytes(4, "big")
    journal = header.ljust(512, b"\0") + lock_page + name + len(name).to_bytes(4, "big") + checksum + magic
    finished.with_name("a.run-journal").write_bytes(journal)
    for write in (False, True):
        with pytest.raises(BadInput, match=r"a\.run-journal is not a journal of a run file"):
            RunFile.open(finished, write=write)
    assert victim.exists()


def kill_while_writing(path: Path) -> None:
    """Leaves a run file as a kill in the middle of a run leaves it."""
    child = os.fork()
    if child == 0:
        run = RunFile.open(path, write=True)
        run.reopen_errored()
        run._db.execute("UPDATE manifest SET body = body || ' '")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_run_file_that_was_killed_is_read_without_being_changed(finished: Path) -> None:
    expected = scores(finished)
    kill_while_writing(finished)
    assert names(finished.parent) == ["a.run", "a.run-shm", "a.run-wal", "a.run.lock"]
    before = finished.read_bytes(), finished.with_name("a.run-wal").read_bytes()
    assert scores(finished) == expected
    assert (finished.read_bytes(), finished.with_name("a.run-wal").read_bytes()) == before
    for suffix in ("-shm", ".lock"):
        finished.with_name("a.run" + suffix).unlink()
    assert scores(finished) == expected
    finished.with_name("a.run-wal").unlink()
    finished.with_name("a.run-shm").unlink(missing_ok=True)
    assert scores(finished) == expected
    assert names(finished.parent) == ["a.run"]


def test_the_next_writer_removes_what_a_kill_left(finished: Path) -> None:
    kill_while_writing(finished)
    RunFile.open(finished, write=True).close()
    assert names(finished.parent) == ["a.run"]


def test_a_write_that_was_interrupted_outside_the_log_is_undone_by_a_reader(finished: Path) -> None:
    expected = scores(finished)
    child = os.fork()
    if child == 0:
        db = sqlite3.connect(finished, isolation_level=None)
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute("UPDATE outcome SET fingerprint = 'x'")
        db.execute("UPDATE reply SET body = '{}'")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert names(finished.parent) == ["a.run", "a.run-journal"]
    assert scores(finished) == expected
    assert names(finished.parent) == ["a.run"]


def test_a_log_of_a_file_that_is_gone_is_not_written_into_a_new_one(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    kill_while_writing(path)
    path.rename(tmp_path / "moved.run")
    with pytest.raises(BadInput, match=r"a\.run-wal holds replies of an earlier run file of that name"):
        make(path)
    (tmp_path / "a.run-wal").rename(tmp_path / "moved.run-wal")
    finish(make(path, limit=1), scripted())
    assert names(tmp_path) == ["a.run", "moved.run", "moved.run-wal"]


def test_the_draft_of_a_program_that_was_killed_while_it_made_a_run_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    for next_writer in (lambda: make(path), lambda: RunFile.open(path, write=True).close()):
        child = os.fork()
        if child == 0:
            with new_run_file(path):
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert any(name.endswith(".draft") for name in names(tmp_path))
        next_writer()
        assert names(tmp_path) == ["a.run"]


def test_a_column_of_another_type_is_damage(finished: Path) -> None:
    complaint = r"is damaged \(a column holds bytes\)"
    for statement in (
        "UPDATE scenario SET body = x'00ff'",
        "UPDATE reply SET body = x'7b7d'",
        "UPDATE outcome SET fingerprint = x'00'",
    ):
        copy = finished.with_name("copy.run")
        copy.write_bytes(finished.read_bytes())
        edit(copy, statement)
        with RunFile.open(copy) as run, pytest.raises(NotARunFile, match=complaint):
            list(mismatches(run))


def test_a_schema_that_is_not_utf_8_is_refused(finished: Path) -> None:
    """SQLite quotes it in its message, which Python then cannot decode."""
    content = finished.read_bytes()
    finished.write_bytes(
        content.replace(
            b"CREATE TABLE outcome (task INTEGER", b"CREATE TABLE outcome (\xff\xce\xfd\xfc INTEGER"
        )
    )
    with pytest.raises(NotARunFile, match="is not a run file"):
        RunFile.open(finished)
    finished.write_bytes(
        content.replace(
            b"CREATE TABLE outcome (task INTEGER PRIMARY KEY",
            b"CREATE TABLE outcome (task INTEGER PRIMARY \xff\xff\xff",
        )
    )
    with pytest.raises(NotARunFile, match="is not a run file"):
        RunFile.open(finished)
