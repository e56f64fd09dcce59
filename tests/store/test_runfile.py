"""The run file: created whole, appended to safely, and safe to read whoever wrote it."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import msgspec
import pytest
from helpers.program import call
from helpers.run_edits import edit
from helpers.runs import finish, journal, make, scores, scripted

from propensitybench.clients import ScriptedClient
from propensitybench.episode import RULES_VERSION
from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.store import JournalEntry, RunFile, differences, mismatches
from propensitybench.store.schema import SCHEMA_VERSION


def test_a_finished_run_verifies_and_stays_one_file(finished: Path) -> None:
    with RunFile.open(finished) as run:
        assert list(mismatches(run)) == []
    assert [path.name for path in finished.parent.iterdir()] == ["a.run"]


def test_a_run_file_can_be_replayed_alone_elsewhere_and_read_only(finished: Path, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere"
    there.mkdir()
    copy = there / "b.run"
    shutil.copy(finished, copy)
    copy.chmod(0o444)
    there.chmod(0o555)
    try:
        with RunFile.open(copy) as run:
            assert list(mismatches(run)) == []
    finally:
        there.chmod(0o755)
    assert scores(copy) == scores(finished)


def test_a_run_file_is_never_overwritten(finished: Path) -> None:
    before = finished.read_bytes()
    with RunFile.open(finished) as run, pytest.raises(BadInput, match="exists already"):
        RunFile.create(finished, run.manifest, [], [], [])
    assert finished.read_bytes() == before


def test_a_file_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        make(tmp_path / "file" / "a.run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_one_program_at_a_time_adds_to_a_file_and_others_may_read_it(finished: Path) -> None:
    with RunFile.open(finished, write=True):
        with pytest.raises(BadInput, match="is in use by another program"):
            RunFile.open(finished, write=True)
        assert scores(finished).tasks.total == 12
    with RunFile.open(finished, write=True):
        pass


def test_the_lock_of_another_process_ends_with_it(finished: Path) -> None:
    ready, wait = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with RunFile.open(finished, write=True):
            os.write(ready[1], b"x")
            os.close(wait[1])
            os.read(wait[0], 1)
            os.kill(os.getpid(), signal.SIGKILL)
    os.read(ready[0], 1)
    try:
        with pytest.raises(BadInput, match="is in use by another program"):
            RunFile.open(finished, write=True)
    finally:
        os.close(wait[1])
        os.waitpid(child, 0)
        for number in (*ready, wait[0]):
            os.close(number)
    RunFile.open(finished, write=True).close()
    assert [path.name for path in finished.parent.iterdir()] == ["a.run"]


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all, only some text", b"SQLite format 3\x00broken"]
)
def test_a_file_of_another_kind_is_not_a_run_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.run"
    path.write_bytes(content)
    with pytest.raises(NotARunFile, match="is not a run file"):
        RunFile.open(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE things (a)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(NotARunFile, match="is not a run file"):
        RunFile.open(path)
    assert path.read_bytes() == before


def test_a_file_of_a_later_version_says_so(finished: Path) -> None:
    edit_version(finished, SCHEMA_VERSION + 1)
    with pytest.raises(NotARunFile, match="later version of propensitybench"):
        RunFile.open(finished)


def edit_version(path: Path, version: int) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (
            "UPDATE outcome SET record = replace(record, '\"turns\":', '\"turns\":9') WHERE task = 1",
            "outcome does not match the journal",
        ),
        ("UPDATE outcome SET fingerprint = 'x' WHERE task = 2", "transcript does not match"),
        ("DELETE FROM outcome WHERE task = 3", "no outcome is stored"),
        (
            "DELETE FROM reply WHERE task = 4 AND turn = (SELECT max(turn) FROM reply WHERE task = 4)",
            "ends before",
        ),
        (
            "INSERT INTO reply SELECT 5, count(*), max(body) FROM reply WHERE task = 5",
            "has 1 reply after the end of the episode",
        ),
    ],
)
def test_verify_finds_every_kind_of_tampering(finished: Path, statement: str, complaint: str) -> None:
    edit(finished, statement)
    with RunFile.open(finished) as run:
        found = list(mismatches(run))
    assert len(found) == 1
    assert complaint in found[0].what


FORGED = "SELECT -1 - task, outcome, record, fingerprint FROM outcome"


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (f"INSERT INTO outcome {FORGED}", "rows of 'outcome' that belong to no task: 12"),
        (f"INSERT INTO outcome {FORGED.replace('-1 - task', 'task + 900')}", "belong to no task: 12"),
        ("INSERT INTO reply SELECT -1, turn, body FROM reply WHERE task = 1", "rows of 'reply' that belong"),
        ("INSERT INTO error VALUES (1, 77, 0, 'x')", "rows of 'error' that belong to no task: 1"),
        ("UPDATE manifest SET body = json_set(body, '$.tasks', 40)", "plans 40 tasks; the file has 12"),
        (
            "UPDATE manifest SET body = json_set(body, '$.data_digest', 'd1:0')",
            "are not those of the manifest",
        ),
        (
            "UPDATE manifest SET body = json_set(body, '$.selections[0].dimensions', json('[\"time\"]'))",
            "is not part of the manifest's selections",
        ),
        ("UPDATE manifest SET body = json_set(body, '$.selections[0].limit', 5)", "plans 5 pairs"),
        (
            "UPDATE manifest SET body = json_set(body, '$.selections[0].epochs', 2)",
            "or others of its pair lack",
        ),
        ("UPDATE scenario SET id = 's1:0'", "is stored under the id 's1:0'"),
        ("DELETE FROM pressure WHERE dimension = 'time'", "pairs of scenario and dimension without pressure"),
        (
            """INSERT INTO pressure VALUES ('x', 'time', '["", []]')""",
            "pressure messages that belong to no task: 1",
        ),
        ("INSERT INTO error VALUES (1, 0, 999, 'x')", "error 1 is one of turn 999"),
        ("INSERT INTO error VALUES (1, 0, 0, '')", "error 1 is one of turn 0"),
    ],
)
def test_verify_finds_rows_without_a_task(finished: Path, statement: str, complaint: str) -> None:
    edit(finished, "PRAGMA foreign_keys = OFF")
    edit(finished, statement)
    with RunFile.open(finished) as run:
        assert any(complaint in difference.what for difference in mismatches(run))


def test_verify_finds_a_changed_reply(finished: Path) -> None:
    edit(finished, "UPDATE reply SET body = json_set(body, '$.content', 'x') WHERE task = 1 AND turn = 0")
    with RunFile.open(finished) as run:
        assert [difference.what for difference in mismatches(run)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE scenario SET body = '{}'",
        "UPDATE reply SET body = '[1]'",
        "UPDATE pressure SET body = 'no json'",
        "UPDATE outcome SET record = '{}'",
        "UPDATE outcome SET outcome = 'resisted'",
        "INSERT INTO task SELECT -1, 'k', scenario, dimension, naming, 9, 0 FROM task LIMIT 1",
        "UPDATE task SET key = key || 'x' WHERE number = 3",
    ],
)
def test_a_damaged_file_is_bad_input_and_no_crash(finished: Path, statement: str) -> None:
    edit(finished, statement)
    with RunFile.open(finished) as run, pytest.raises(NotARunFile, match="is damaged"):
        list(mismatches(run))


def test_what_is_appended_is_committed_and_all_or_nothing(finished: Path) -> None:
    before = journal(finished)
    with RunFile.open(finished, write=True) as run, pytest.raises(BadInput, match="cannot be written to"):
        run.append([JournalEntry(0, 500, "{}"), JournalEntry(0, 0, "{}")])
    assert journal(finished) == before


def test_differences_name_each_setting_but_not_what_follows_from_it(tmp_path: Path) -> None:
    with RunFile.open(make(tmp_path / "a.run")) as run:
        old = run.manifest
    new = msgspec.structs.replace(
        old,
        seed=1,
        created="later",
        data_digest="d2:other",
        template="x",
        selections=(msgspec.structs.replace(old.selections[0], limit=7),),
        protocol=msgspec.structs.replace(old.protocol, levels=3),
    )
    assert differences(old, old) == []
    assert differences(old, new) == [
        "limit (was 6, now 7)",
        "seed (was 0, now 1)",
        "levels (was 12, now 3)",
        "system message template",
    ]
    assert differences(old, msgspec.structs.replace(old, data_digest="d2:other")) == ["content of the data"]


def test_verify_finds_a_falsified_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    finish(path, ScriptedClient([], "simulated/o3-like"))
    edit(path, "UPDATE error SET body = 'something else' WHERE task = 0")
    with RunFile.open(path) as run:
        assert [difference.what for difference in mismatches(run)] == [
            "the error of the outcome is not the last error of the task"
        ]


def test_an_errored_task_keeps_its_error_when_it_is_retried(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    finish(path, ScriptedClient([], "simulated/o3-like"))
    assert scores(path).tasks.errored == 2
    finish(path, scripted())
    with RunFile.open(path) as run:
        assert run.errors(0) == ["the script is empty"]
        assert list(mismatches(run)) == []
    assert scores(path).tasks.errored == 0


def test_two_names_of_one_file_are_one_lock(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "link.run").symlink_to(finished)
    with RunFile.open(finished, write=True), pytest.raises(BadInput, match="is in use by another program"):
        RunFile.open(other / "link.run", write=True)


def test_a_journal_that_continues_after_the_end_cannot_be_resumed(finished: Path) -> None:
    edit(finished, "INSERT INTO reply SELECT 5, count(*), max(body) FROM reply WHERE task = 5")
    edit(finished, "DELETE FROM outcome WHERE task = 5")
    with pytest.raises(NotARunFile, match=r"a.run: is damaged \(1 reply after the end of "):
        finish(finished)


def test_a_journal_of_another_version_of_the_rules_is_not_replayed(finished: Path) -> None:
    edit(finished, "UPDATE manifest SET body = json_set(body, '$.rules', 1, '$.package', '0.0.9')")
    with RunFile.open(finished) as run:
        (difference,) = mismatches(run)
    assert difference.task == "(file)"
    assert "made under version 1 of the rules" in difference.what
    assert difference.what.endswith("verify it with propensitybench 0.0.9")
    done = call("verify", finished)
    assert done.code == 1
    assert "made under version 1 of the rules" in done.out
    with RunFile.open(finished) as run:
        key = run.task_keys()[0]
    done = call("show", finished, key)
    assert (done.code, done.out) == (2, "")
    assert done.err.strip().endswith(f"uses version {RULES_VERSION}; open it with propensitybench 0.0.9")
    with pytest.raises(RunMismatch, match="made under version 1 of the rules"):
        finish(finished)
