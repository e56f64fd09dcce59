"""Commands on a run file that is on a network file system: it is read, and never written to in place."""

import sys
from pathlib import Path

import pytest
from helpers.forking import MOUNT_TABLE
from helpers.mounts import with_share
from helpers.program import Done, call
from helpers.runs import finish, make

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the mount table of Linux")
NEW = ("run", "--model", "simulated/never", "--limit", "1", "--levels", "1", "--run")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = make(tmp_path_factory.mktemp("runs") / "a.run", limit=1)
    finish(path)
    return path.read_bytes()


@pytest.fixture
def share(tmp_path: Path, played: bytes) -> Path:
    """A network share with the file of a run and that of an unplayed one."""
    folder = tmp_path / "share"
    folder.mkdir()
    (folder / "a.run").write_bytes(played)
    make(folder / "new.run", limit=1)
    return folder


def on(share: Path, *arguments: str) -> Done:
    return call(*arguments, cwd=share, env={MOUNT_TABLE: str(with_share(share))})


@pytest.mark.parametrize(
    "arguments",
    [
        (*NEW, "b.run"),
        (*NEW, "below/b.run"),
        ("resume", "new.run"),
        ("judge", "a.run", "--judge", "keyless/words"),
        ("probe", "a.run"),
        ("experiment", "run", "../design.toml", "--out", "study"),
        ("label", "a.run", "--question", "justification", "--as", "anna"),
    ],
    ids=" ".join,
)
def test_writing_on_a_share_is_refused_with_one_sentence(arguments: tuple[str, ...], share: Path) -> None:
    if arguments[0] == "experiment":
        call("experiment", "new", share.with_name("design.toml"), "--model", "simulated/never")
    before = {path: path.read_bytes() for path in share.glob("*.run")}
    done = on(share, *arguments)
    assert done.code == 2, done.err
    # The experiment says which cell it is at.
    assert len(done.err.splitlines()) == 1 + (arguments[0] == "experiment"), done.err
    assert ": is on a network file system (nfs4), where SQLite is not safe; use a local disk" in done.err
    assert "(--run $TMPDIR/" in done.err
    assert "(`run --shard I/N`) and `merge` them" in done.err
    assert {path: path.read_bytes() for path in share.glob("*.run")} == before


def test_nothing_is_sent_for_a_run_that_could_not_be_stored(share: Path) -> None:
    nowhere = ("--base-url", "http://127.0.0.1:9/v1", "--run", "b.run")
    done = on(share, "run", "--model", "m", *nowhere)
    assert "is on a network file system" in done.err


@pytest.mark.parametrize(
    "command",
    [
        ("score",),
        ("verify",),
        ("show",),
        ("report", "--out", "page", "--no-figures"),
        ("export", "--out", "rows.jsonl"),
    ],
)
def test_reading_on_a_share_works(command: tuple[str, ...], share: Path) -> None:
    done = on(share, command[0], "a.run", *command[1:])
    assert (done.code, done.err) == (0, "")
