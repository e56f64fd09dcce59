"""A run file under two names, and one that loses its name while it is written to."""

import os
import sqlite3
from pathlib import Path

import pytest
from helpers.runs import finish, journal, make, scores, scripted

from propensitybench.chat import Reply, Request
from propensitybench.clients import ScriptedClient, says
from propensitybench.errors import BadInput
from propensitybench.store import RunFile, verify


@pytest.fixture
def linked(finished: Path) -> Path:
    other = finished.with_name("b.run")
    os.link(finished, other)
    return other


def test_two_hard_links_are_one_lock(finished: Path, linked: Path) -> None:
    with RunFile.open(finished, write=True), pytest.raises(BadInput, match="is in use by another program"):
        RunFile.open(linked, write=True)
    with RunFile.open(linked, write=True):
        pass


def test_two_hard_links_are_one_lock_for_two_processes(finished: Path, linked: Path) -> None:
    ready, wait = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(wait[1])
        run = RunFile.open(finished, write=True)
        os.write(ready[1], b"x")
        os.read(wait[0], 1)
        run.close()
        os._exit(0)
    os.read(ready[0], 1)
    try:
        with pytest.raises(BadInput, match="is in use by another program"):
            RunFile.open(linked, write=True)
        with pytest.raises(BadInput, match="is in use under another name"):
            RunFile.open(linked)
    finally:
        os.close(wait[0])
        os.close(wait[1])
        os.waitpid(child, 0)
    assert scores(linked) == scores(finished)


def test_a_killed_run_is_not_resumed_by_a_name_that_lacks_its_log(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    os.link(path, tmp_path / "b.run")
    child = os.fork()
    if child == 0:
        run = RunFile.open(path, write=True)
        run.reopen_errored()
        os._exit(9)
    os.waitpid(child, 0)
    with pytest.raises(BadInput, match="was last written to under another name"):
        RunFile.open(tmp_path / "b.run", write=True)
    finish(path, scripted())
    with RunFile.open(tmp_path / "b.run", write=True) as run:
        assert run.finished() == 2


class Meddling(ScriptedClient):
    """Does something to the run file when the third reply is asked for."""

    def __init__(self, deed: str, path: Path) -> None:
        super().__init__([says("no", done=True)], "simulated/o3-like")
        self.deed, self.path, self.asked = deed, path, 0

    def open(self, context):  # type: ignore[no-untyped-def]
        conversation = super().open(context)
        outer = self

        class Counted:
            async def reply(self, request: Request) -> Reply:
                outer.asked += 1
                if outer.asked == 3:
                    outer.meddle()
                return await conversation.reply(request)

        return Counted()

    def meddle(self) -> None:
        if self.deed == "move":
            self.path.rename(self.path.with_name("moved.run"))
        elif self.deed == "delete":
            self.path.unlink()
        elif self.deed == "delete all":
            for path in self.path.parent.iterdir():
                path.unlink()
        else:
            other = self.path.with_name("other")
            other.write_text("another file")
            other.replace(self.path)


@pytest.mark.parametrize(
    ("deed", "kept", "sentence"),
    [
        (
            "move",
            "moved.run",
            "was moved or deleted while it was running.*everything so far is in .*moved.run",
        ),
        ("delete", "a.saved-1.run", "everything so far was saved as .*a.saved-1.run: propensitybench resume"),
        ("delete all", "a.saved-1.run", "everything so far was saved as"),
        ("replace", "a.saved-1.run", "was replaced by another file while it was running"),
    ],
)
def test_a_run_file_that_loses_its_name_stops_the_run_and_is_kept(
    tmp_path: Path, deed: str, kept: str, sentence: str
) -> None:
    path = make(tmp_path / "a.run")
    client = Meddling(deed, path)
    with pytest.raises(BadInput, match=sentence):
        finish(path, client, concurrency=2)
    assert client.asked < 10, "the run went on"
    saved = tmp_path / kept
    assert len(journal(saved)) >= 3
    leftovers = {other.name for other in tmp_path.iterdir()} - {
        "a.run",
        "a.run.lock",
        "a.run-shm",
        "a.run-wal",
    }
    assert leftovers == {kept}
    if (log := tmp_path / "a.run-wal").exists():
        assert log.stat().st_size == 0, "SQLite would write it into the next file of that name"
    if deed == "replace":
        assert path.read_text() == "another file"
    finish(saved, scripted())
    with RunFile.open(saved) as run:
        assert list(verify(run)) == []
        assert run.finished() == 12
    with sqlite3.connect(saved) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_a_saved_copy_replaces_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    (tmp_path / "a.saved-1.run").write_text("mine")
    with pytest.raises(BadInput, match=r"saved as .*a\.saved-2\.run"):
        finish(path, Meddling("delete", path))
    assert (tmp_path / "a.saved-1.run").read_text() == "mine"


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.run", limit=1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with RunFile.open(Path("a.run"), write=True) as run:
        monkeypatch.chdir(tmp_path / "elsewhere")
        run.append()
