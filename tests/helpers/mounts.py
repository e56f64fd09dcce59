"""A stand-in for the mount table of a machine."""

import os
from pathlib import Path


def with_share(folder: Path, kind: str = "nfs4", *more: tuple[Path | str, str]) -> Path:
    """A mount table, in a file beside a folder, in which that folder is a network share.

    Args:
        folder: the share.
        kind: its type.
        more: further mounts: place and type.
    """
    path = folder.with_name("mounts")
    mounts: list[tuple[Path | str, str]] = [("/", "ext4"), (folder.resolve(), kind), *more]
    path.write_bytes(b"".join(b"server:/x %s %s rw 0 0\n" % (_escaped(p), k.encode()) for p, k in mounts))
    return path


def _escaped(place: Path | str) -> bytes:
    """As the kernel escapes it."""
    raw = os.fsencode(place).replace(b"\\", rb"\134")
    for one in b" \t\n#":
        raw = raw.replace(bytes([one]), b"\\%03o" % one)
    return raw
