"""Files and folders that appear completely or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from propensitybench.store.atomic import NEW, OLD, draft_folder, new_entries, new_file, remove_stale

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="drafts of killed programs stay there")

# Writes half a draft of each kind, and waits to be killed.
HALF = """
import sys, time
from pathlib import Path
from propensitybench.store.atomic import *
from propensitybench.store import atomic
out = Path(sys.argv[1])
with new_file(out / "file") as file, new_entries(out / "new") as new, new_entries(out / "old") as old:
    with draft_folder(out / "moved") as draft:
        (out / "moved").rename(draft / atomic.OLD)
        for path in (new / "a", old / "a", draft / "a"):
            path.write_text("half")
        file.write(b"half")
        file.flush()
        print("ready", flush=True)
        time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def half_written(tmp_path: Path) -> "subprocess.Popen[str]":
    """A program that has written half of everything."""
    for name in ("old", "moved"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("mine")
    process = subprocess.Popen(
        [sys.executable, "-c", HALF, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_killed_program_s_drafts_are_removed_and_what_it_had_moved_is_back(
    half_written: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("file", "new", "old", "moved")]
    before = names(tmp_path)
    assert not (tmp_path / "moved").exists()
    for place in places:
        remove_stale(place)
    assert names(tmp_path) == before, "the program was still writing"
    half_written.kill()
    half_written.communicate()
    for place in places:
        remove_stale(place)
    assert names(tmp_path) == ["moved", "moved/mine", "old", "old/mine"]


def test_what_others_put_there_is_not_a_draft(tmp_path: Path) -> None:
    others = [
        ".file.draft",
        ".file.1.draft",
        ".file.0123456789abcdef.draft.txt",
        ".other.0123456789abcdef.draft",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    os.mkfifo(tmp_path / ".file.aaaaaaaaaaaaaaaa.draft")  # must not be waited for
    (tmp_path / ".file.bbbbbbbbbbbbbbbb.draft").symlink_to(tmp_path / ".file.draft")
    remove_stale(tmp_path / "file")
    assert set(names(tmp_path)) >= set(others)
    assert (tmp_path / ".file.draft").read_text() == "mine"


def interrupted_file(path: Path) -> None:
    with new_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def interrupted_entries(out: Path) -> None:
    with new_entries(out) as new:
        (new / "a").write_text("half")
        raise KeyboardInterrupt


def test_an_interrupted_program_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted_file(tmp_path / "deep" / "deeper" / "file")
    with pytest.raises(KeyboardInterrupt):
        interrupted_entries(tmp_path / "new")
    assert names(tmp_path) == []


def overtaken_file(path: Path) -> None:
    with new_file(path) as file:
        file.write(b"new")
        path.write_text("mine")


def overtaken_entries(out: Path) -> None:
    with new_entries(out) as new:
        for name in ("a", "b", "c"):
            (new / name).write_text("new")
        (out / "b").write_text("mine")


def test_a_name_that_was_taken_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        overtaken_file(tmp_path / "file")
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError):
        overtaken_entries(tmp_path / "out")
    assert names(tmp_path) == ["file", "out", "out/b"]
    assert (tmp_path / "file").read_text() == (tmp_path / "out" / "b").read_text() == "mine"


def test_two_writers_of_one_place(tmp_path: Path) -> None:
    with draft_folder(tmp_path / "out") as first, draft_folder(tmp_path / "out") as second:
        assert first != second
        for draft in (first, second):
            (draft / NEW).mkdir()
        (first / NEW).rename(tmp_path / "out")
        (tmp_path / "out" / "mine").write_text("mine")
        (tmp_path / "out").rename(second / OLD)
    assert names(tmp_path) == ["out", "out/mine"], "the one moved away is back"
