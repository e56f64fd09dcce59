"""Which file system a path is on, from a mount table as the kernel writes it."""

import sys
from pathlib import Path

import pytest
from helpers.mounts import with_share
from helpers.runs import finish, make, scores

from propensitybench.errors import BadInput
from propensitybench.generation.journal import ReplyJournal
from propensitybench.store import RunFile
from propensitybench.store import filesystems as fs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the mount table of Linux")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to mount something on, whose name has to be escaped."""
    place = tmp_path.resolve() / "a b\\c#é"
    place.mkdir()
    return place


@pytest.mark.parametrize(
    ("kind", "is_network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "lustre", "9p", "fuse.sshfs", "fuse.new")),
        *((kind, False) for kind in ("ext4", "tmpfs", "overlay", "unheard-of", "fuseblk", "fuse.ntfs-3g")),
    ],
)
def test_kinds(kind: str, is_network: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "MOUNT_TABLE", with_share(folder, kind))
    for path in (folder, folder / "a.run", folder / "not" / "yet" / "a.run"):
        assert fs.network_kind(path) == (kind if is_network else "")
    assert fs.network_kind(folder.parent / "a.run") == ""


def test_the_longest_mount_point_counts_and_the_last_of_two(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = (
        (folder.parent, "xfs"),
        (folder / "disk", "ext4"),
        (folder / "twice", "xfs"),
        (folder / "twice", "nfs"),
    )
    monkeypatch.setattr(fs, "MOUNT_TABLE", with_share(folder, "nfs4", *more))
    kinds = {name: fs.network_kind(folder / name) for name in ("x", "disk/x", "disks/x", "twice/x")}
    assert kinds == {"x": "nfs4", "disk/x": "", "disks/x": "nfs4", "twice/x": "nfs"}


def test_links_lead_to_where_the_file_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "MOUNT_TABLE", with_share(folder))
    away = folder.parent / "away"
    away.symlink_to(folder)
    assert fs.network_kind(away / "x") == "nfs4"


@pytest.mark.parametrize("table", [None, b"", b"\nodd\n\\999 \\1\xff\n"])
def test_what_cannot_be_found_out_is_local(
    table: bytes | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder / "mounts"
    if table is not None:
        place.write_bytes(table)
    monkeypatch.setattr(fs, "MOUNT_TABLE", place)
    assert fs.network_kind(folder / "x") == fs.network_kind(Path("a\0b")) == ""


def test_run_files_are_read_but_not_written_on_a_share(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, shared = make(folder.parent / "a.run"), folder / "a.run"
    finish(local)
    shared.write_bytes(local.read_bytes())
    monkeypatch.setattr(fs, "MOUNT_TABLE", with_share(folder))
    assert scores(shared) == scores(local)
    for attempt in (
        lambda: RunFile.open(shared, write=True),
        lambda: ReplyJournal(folder / "journal.sqlite"),
    ):
        with pytest.raises(BadInput, match=r"is on a network file system \(nfs4\).* local disk"):
            attempt()
    with pytest.raises(BadInput, match=r"b\.run: is on a network file system \(nfs4\)"):
        make(folder / "new" / "b.run")
    assert [path.name for path in folder.iterdir()] == ["a.run"]
