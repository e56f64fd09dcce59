"""Stand-ins for the mount table of a machine."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Mounted(NamedTuple):
    """A line of a mount table, in the order of proc_pid_mountinfo(5)."""

    number: int
    parent: int
    place: Path | str
    kind: str
    source: str = "none"
    options: str = "rw"


def table(mounts: Sequence[Mounted]) -> bytes:
    """A mount table, escaped as the kernel escapes it."""
    lines = b""
    for number, parent, *texts in mounts:
        place, kind, source, options = (_escaped(str(text)) for text in texts)
        lines += b"%d %d 0:%d / %s rw,relatime shared:%d master:1 - " % (
            number,
            parent,
            number,
            place,
            number,
        )
        lines += b"%s %s %s\n" % (kind, source, options)
    return lines


def _escaped(text: str) -> bytes:
    raw = os.fsencode(text).replace(b"\\", rb"\134")
    for one in b" \t\n#":
        raw = raw.replace(bytes([one]), b"\\%03o" % one)
    return raw


def with_share(folder: Path, kind: str = "nfs4") -> Path:
    """A mount table, in a file beside a folder, in which that folder is a network share."""
    path = folder.with_name("mounts")
    path.write_bytes(
        table([Mounted(20, 1, "/", "ext4"), Mounted(30, 20, folder.resolve(), kind, "server:/x")])
    )
    return path
