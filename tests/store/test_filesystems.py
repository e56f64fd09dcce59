"""Which file system a path is on, from a mount table as the kernel writes it."""

import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.mounts import Mounted, table, with_share
from helpers.runs import finish, make, scores
from hypothesis import example, given
from hypothesis import strategies as st

from propensitybench.errors import BadInput
from propensitybench.generation.journal import Journal
from propensitybench.store import RunFile
from propensitybench.store import filesystems as fs

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the mount table of Linux")
ROOT = Mounted(20, 1, "/", "ext4", "/dev/sda1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to mount something on, whose name has to be escaped."""
    place = tmp_path.resolve() / "a b\\c#é"
    place.mkdir()
    return place


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, mounts: Sequence[Mounted]) -> None:
    path = folder.with_name("mounts")
    path.write_bytes(table(mounts))
    monkeypatch.setattr(fs, "MOUNT_TABLE", path)


@linux
@pytest.mark.parametrize(
    ("kind", "is_network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "afs")),
        *((kind, True) for kind in ("lustre", "gpfs", "beegfs", "gfs2", "ocfs2", "vboxsf")),
        *((kind, True) for kind in ("fuse.sshfs", "fuse.gcsfuse", "fuse.rclone", "fuse.new", "fuse")),
        *(
            (kind, False)
            for kind in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "unheard-of")
        ),
        *((kind, False) for kind in ("fuseblk", "fuse.ntfs-3g", "fuse.fuse-overlayfs", "autofs")),
    ],
)
def test_kinds(kind: str, is_network: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, folder, [ROOT, Mounted(30, 20, folder, kind, "server:/export")])
    for path in (folder, folder / "a.run", folder / "not" / "yet" / "a.run"):
        assert fs.network_kind(path) == (kind if is_network else "")
    assert fs.network_kind(folder.parent / "a.run") == ""


@linux
def test_links_lead_to_where_the_file_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, folder, [ROOT, Mounted(30, 20, folder, "nfs4")])
    local = folder.parent / "local"
    local.mkdir()
    (local / "away").symlink_to(folder)
    (folder / "back").symlink_to(local)
    (local / "a.run").symlink_to(folder / "missing.run")
    (local / "loop").symlink_to(local / "loop")
    assert fs.network_kind(local / "away" / "x") == "nfs4"
    assert fs.network_kind(local / "a.run") == "nfs4"
    assert fs.network_kind(folder / "back" / "x") == ""
    assert fs.network_kind(local / "loop") == ""


@linux
def test_a_bind_mount_is_of_the_kind_of_what_it_shows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bound").mkdir()
    mounts = [ROOT, Mounted(30, 20, folder, "nfs4"), Mounted(31, 30, folder / "bound", "ext4", "/dev/sda1")]
    use(monkeypatch, folder, mounts)
    assert [fs.network_kind(folder / name) for name in ("x", "bound/x", "bounds/x")] == ["nfs4", "", "nfs4"]


@linux
@pytest.mark.parametrize("kind", ["overlay", "fuse.bindfs", "ecryptfs"])
@pytest.mark.parametrize("beneath", ["nfs4", "xfs"])
def test_layers_are_of_the_kind_of_what_they_store_in(
    kind: str, beneath: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper = folder.parent / "upper"
    upper.mkdir()
    options = f"rw,lowerdir=/a:/b,upperdir={upper},workdir={upper}.work"
    layer = Mounted(40, 20, folder, kind, "overlay" if kind == "overlay" else str(upper), options)
    use(monkeypatch, folder, [ROOT, Mounted(30, 20, upper, beneath), layer])
    assert fs.network_kind(folder / "x") == ("nfs4" if beneath == "nfs4" else "")


@linux
@pytest.mark.parametrize("upper", ["/var/lib/of-the-host/upper", "/", ""])
def test_an_upper_folder_of_the_host_tells_nothing(
    upper: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the root is an overlay, whose folders have the names of another namespace."""
    root = Mounted(20, 1, "/", "overlay", "overlay", f"rw,upperdir={upper},workdir=/w")
    use(monkeypatch, folder, [root, Mounted(30, 20, "/var", "nfs4")])
    assert fs.network_kind(folder / "x") == ""


@linux
def test_what_cannot_be_found_out_is_local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "MOUNT_TABLE", folder / "none")
    assert fs.network_kind(folder / "x") == ""
    use(monkeypatch, folder, [])
    assert fs.network_kind(folder / "x") == ""
    line = table([Mounted(30, 20, folder, "nfs4")])
    (folder.with_name("mounts")).write_bytes(b"\nodd\n1 x\n- - -\n" + line[: len(line) // 2] + b"\n")
    assert fs.network_kind(folder / "x") == ""
    assert fs.network_kind(Path("a\0b")) == ""


NAMES = st.text(st.sampled_from("ab \\#\t\né\udc80-"), min_size=1, max_size=3)
PLACES = st.lists(NAMES, max_size=3).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(PLACES, max_size=8), PLACES)
@example(["/a/b", "/a"], "/a/b")
@example(["/a", "/a"], "/a/b")
@example(["/a b"], "/a b/c")
def test_the_mount_that_was_made_last_on_the_way_is_found(places: list[str], place: str) -> None:
    """The oracle knows the order in which mounts were made; the table need not be in that order."""

    def on_top(path: str, made: list[Mounted]) -> Mounted:
        ways = [m for m in made if m.place == "/" or (path + "/").startswith(f"{m.place}/")]
        return ways[-1]

    made = [ROOT]
    for number, where in enumerate(places, 30):
        made.append(Mounted(number, on_top(where, made).number, where, f"kind {number}"))
    for listed in (made, made[::-1]):
        found = fs.mount_of(place, fs.read_mounts(table(listed)))
        assert found is not None
        assert (found.number, found.place, found.kind) == on_top(place, made)[:1] + on_top(place, made)[2:4]


@given(st.binary(max_size=200))
def test_no_table_is_too_odd(raw: bytes) -> None:
    fs.mount_of("/a/b", fs.read_mounts(raw))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), PLACES), max_size=6), PLACES)
def test_no_tree_of_mounts_holds_the_search_up(rows: list[tuple[int, int, str]], place: str) -> None:
    fs.mount_of(place, fs.read_mounts(table([Mounted(*row, "ext4") for row in rows])))


@linux
def test_the_kernel_says_the_same_of_this_machine() -> None:
    mounts = fs.read_mounts(fs.MOUNT_TABLE.read_bytes())
    for place in ("/", "/proc", "/dev", "/dev/shm", "/sys", "/tmp", str(Path(__file__).resolve().parent)):
        number = os.open(place, os.O_RDONLY)
        try:
            told = Path(f"/proc/self/fdinfo/{number}").read_text()
        finally:
            os.close(number)
        found = fs.mount_of(os.path.realpath(place), mounts)
        assert found is not None
        assert f"mnt_id:\t{found.number}\n" in told, place


def test_macos_says_itself_what_is_local() -> None:
    """`struct statfs` of <sys/mount.h> with 64-bit inodes, as the documented fields give it."""

    def raw(flags: int, name: bytes) -> bytes:
        head = struct.pack("=Ii5Q2i", 4096, 1 << 20, 10, 9, 8, 7, 6, 16, 17)
        return head + struct.pack("=4I16s", 501, 26, flags, 0, name) + bytes(2048)

    assert fs.statfs_kind(raw(0x04801000, b"apfs")) == ""
    assert fs.statfs_kind(raw(0x00000018, b"smbfs")) == "smbfs"


@pytest.mark.parametrize("path", [r"\\server\share\a.run", r"\\?\UNC\server\share\a.run"])
def test_windows_shares(path: str) -> None:
    assert fs.windows_kind(path) == "a network share"


@linux
def test_run_files_are_read_but_not_written_on_a_share(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, shared = make(folder.parent / "a.run"), folder / "a.run"
    finish(local)
    shared.write_bytes(local.read_bytes())
    monkeypatch.setattr(fs, "MOUNT_TABLE", with_share(folder))
    assert scores(shared) == scores(local)
    for attempt in (lambda: RunFile.open(shared, write=True), lambda: Journal(folder / "journal.sqlite")):
        with pytest.raises(BadInput, match=r"is on a network file system \(nfs4\).* --scratch DIR"):
            attempt()
    with pytest.raises(BadInput, match=r"b\.run: is on a network file system \(nfs4\)"):
        make(folder / "new" / "b.run")
    assert [path.name for path in folder.iterdir()] == ["a.run"]
