"""Which file system a path is on, and whether SQLite's write-ahead log is safe there.

Readers and writers of the log share memory, so all of them must be on one machine, and locks must hold
(https://sqlite.org/wal.html, https://sqlite.org/howtocorrupt.html). A file system that several machines can
have open promises neither to SQLite. What cannot be found out counts as local.
"""

import ctypes
import os
import re
import struct
import sys
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.errors import BadInput

# The mount table of this process, as Linux gives it (proc_pid_mountinfo(5)).
MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smb2", "smbfs", "ncpfs", "afs", "coda", "ceph", "webdav", "davfs"),
        # Parallel and cluster file systems: many machines mount them by design. Locks between machines are
        # an option of the mount (lustre: flock, localflock), and no shared memory is promised between them.
        *("lustre", "gpfs", "beegfs", "fhgfs", "wekafs", "pvfs2", "orangefs", "panfs", "gfs2", "ocfs2"),
        # Folders that a virtual machine shares with its host: locks end at the machine, and shared memory
        # does so too or is missing (WSL's /mnt/c is of the kind 9p).
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs"),
    )
)
# FUSE passes locks and shared memory on to a program, and most such programs are clients of a network. These
# store on a local disk, or in a folder that is looked at in their place. The kind `fuseblk` is a local disk.
LOCAL_FUSE: Final = frozenset(
    (
        *("fuse-overlayfs", "bindfs", "mergerfs", "unionfs", "unionfs-fuse", "encfs", "gocryptfs", "cryfs"),
        *("ext2", "fuse-ext2", "fuse2fs", "ntfs", "ntfs-3g", "exfat", "squashfuse", "squashfuse_ll"),
    )
)
_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2})")
_DRIVE_REMOTE: Final = 4
# macOS: `struct statfs` with 64-bit inodes, from f_bsize to f_fstypename; and its flag for local disks.
_STATFS: Final = struct.Struct("=IiQQQQQiiIIII16s")
_STATFS_SIZE: Final = 4096
_MNT_LOCAL: Final = 0x1000


class Mount(NamedTuple):
    """A line of the mount table.

    Attributes:
        number, parent: its id, and that of the mount on which it lies.
        place: where it is mounted.
        kind: the type of the file system, e.g. ``nfs4``.
        source: what is mounted there.
        options: of the file system itself, e.g. ``upperdir=/upper``.
    """

    number: int
    parent: int
    place: str
    kind: str
    source: str
    options: str


def require_local(path: Path) -> None:
    """Checks that SQLite may write to a file, which need not exist.

    Raises:
        BadInput: it is on a network file system.
    """
    if kind := network_kind(path):
        raise BadInput(
            f"{path}: is on a network file system ({kind}), where SQLite's write-ahead log is not safe; use "
            "a file on a local disk, for example in the node's temporary folder, or give `run` and `resume` "
            "--scratch DIR with a local folder"
        )


def network_kind(path: Path) -> str:
    """The type of the network file system that a file is on or would be made on; empty for a local one."""
    try:
        if sys.platform == "win32":
            return windows_kind(os.path.realpath(path))
        if sys.platform == "darwin":
            return _macos_kind(_nearest(path))
        return _linux_kind(_nearest(path), read_mounts(MOUNT_TABLE.read_bytes()))
    except (OSError, ValueError):
        return ""


def _nearest(path: Path) -> str:
    """A path without links, or its nearest parent that exists."""
    place = os.path.realpath(path)
    while not os.path.exists(place):  # noqa: PTH110
        place = os.path.dirname(place)  # noqa: PTH120
    os.path.isdir(os.path.join(place, "."))  # noqa: PTH112, PTH118 - the dot makes an automounter mount it
    return place


def read_mounts(table: bytes) -> list[Mount]:
    """The mounts in a mount table; lines that cannot be read are left out."""
    mounts = []
    for line in table.split(b"\n"):
        before, _, after = line.partition(b" - ")
        fields, system = [*map(_text, before.split(b" "))], [*map(_text, after.split(b" "))]
        if len(fields) >= 6 and len(system) >= 3 and fields[0].isdecimal() and fields[1].isdecimal():
            mounts.append(Mount(int(fields[0]), int(fields[1]), fields[4], *system[:3]))
    return mounts


def _text(field: bytes) -> str:
    """A field of the mount table, in which space, tab, newline, ``#`` and backslash are octal numbers."""
    return os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field))


def mount_of(place: str, mounts: list[Mount]) -> Mount | None:
    """The mount that an absolute path without links is on.

    Found as the kernel does: from the root, each time into the first mount on the way. So a mount that a
    later one hides, at the same place or above, is not found.
    """
    numbers = {mount.number for mount in mounts}
    found: Mount | None = None
    left = [mount for mount in mounts if _is_below(place, mount.place)]
    while True:
        on_the_way = [
            mount for mount in left if (mount.parent == found.number if found else _is_root(mount, numbers))
        ]
        if not on_the_way:
            return found
        # Of several at one place the one listed last is on top.
        found = min(reversed(on_the_way), key=lambda mount: len(mount.place))
        left.remove(found)


def _is_root(mount: Mount, numbers: set[int]) -> bool:
    """Whether a mount lies on none of the table: that of ``/``, and in a chroot perhaps others."""
    return mount.parent == mount.number or mount.parent not in numbers


def _is_below(place: str, folder: str) -> bool:
    return folder == "/" or place == folder or place.startswith(folder + "/")


def _linux_kind(place: str, mounts: list[Mount]) -> str:
    beneath: set[Mount] = set()
    while (mount := mount_of(place, mounts)) is not None and mount not in beneath:
        if _is_network(mount.kind):
            return mount.kind
        beneath.add(mount)
        place = os.path.realpath(_stored_in(mount))
        if not os.path.isdir(place):  # noqa: PTH112 - or a path of another namespace, as in containers
            return ""
    return ""


def _is_network(kind: str) -> bool:
    return kind in NETWORK or kind == "fuse" or (kind.startswith("fuse.") and kind[5:] not in LOCAL_FUSE)


def _stored_in(mount: Mount) -> str:
    """The folder in which a mount stores what is written to it, as far as the table tells."""
    if mount.kind == "overlay":
        options = dict(option.partition("=")[::2] for option in mount.options.split(","))
        return options.get("upperdir", "/")
    return mount.source if mount.kind == "ecryptfs" or mount.kind.startswith("fuse.") else "/"


def _macos_kind(place: str) -> str:
    library = ctypes.CDLL(None)
    # On Intel the plain name is that of a structure with 32-bit inodes.
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(_STATFS_SIZE)
    return statfs_kind(buffer.raw) if statfs(os.fsencode(place), buffer) == 0 else ""


def statfs_kind(raw: bytes) -> str:
    """The type in macOS's ``struct statfs`` of a file system; empty if the flags say that it is local."""
    *_, flags, _subtype, name = _STATFS.unpack_from(raw)
    return "" if flags & _MNT_LOCAL else name.split(b"\0")[0].decode(errors="replace")


def windows_kind(place: str) -> str:
    """What a full Windows path is on, if that is on another machine; empty for a local drive."""
    place = place.removeprefix("\\\\?\\")
    if place.startswith(("\\\\", "UNC\\")):
        return "a network share"
    drive = os.path.splitdrive(place)[0] + "\\"
    remote = sys.platform == "win32" and ctypes.windll.kernel32.GetDriveTypeW(drive) == _DRIVE_REMOTE
    return "a network drive" if remote else ""
