"""Which file system a path is on: SQLite's write-ahead log is not safe on one that several machines share.

See https://sqlite.org/wal.html and https://sqlite.org/howtocorrupt.html.
"""

import os
import re
import sys
from pathlib import Path
from typing import Final

from propensitybench.errors import BadInput

MOUNT_TABLE: Final = Path("/proc/self/mounts")
_NETWORK: Final = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "davfs", "fuse"),
        *("lustre", "gpfs", "beegfs", "wekafs", "pvfs2", "panfs", "gfs2", "ocfs2"),
        *("9p", "virtiofs", "vboxsf", "vmhgfs"),  # a virtual machine's folders of its host
    )
)
# Most programs behind FUSE are clients of a network; these store on a local disk.
_LOCAL_FUSE: Final = frozenset(("fuse.fuse-overlayfs", "fuse.bindfs", "fuse.mergerfs", "fuse.ntfs-3g"))
_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2})")


def require_local(path: Path) -> None:
    """Checks that SQLite may write to a file, which need not exist.

    Raises:
        BadInput: it is on a network file system.
    """
    if kind := network_kind(path):
        raise BadInput(
            f"{path}: is on a network file system ({kind}), where SQLite is not safe; use a local disk "
            f"(--run $TMPDIR/{path.name}) and copy the file here when the program has ended, or play shards "
            "on local disks (`run --shard I/N`) and `merge` them"
        )


def network_kind(path: Path) -> str:
    """The type of the network file system that a path is on; empty for a local one, and if unknown.

    Only Linux is asked.
    """
    if sys.platform != "linux":
        return ""
    try:
        place = os.path.realpath(path)
        table = MOUNT_TABLE.read_bytes()
    except (OSError, ValueError):
        return ""
    longest, kind = "", ""
    for line in table.splitlines():
        fields = line.split(b" ")
        if len(fields) < 3:
            continue
        folder = os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), fields[1])).rstrip("/")
        # Of several mounts at one place the last one is on top.
        if f"{place}/".startswith(f"{folder}/") and len(folder) >= len(longest):
            longest, kind = folder, os.fsdecode(fields[2])
    is_network = kind in _NETWORK or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
    return kind if is_network else ""
