"""Reads files that others may have made: only regular files, and only up to a size."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from propensitybench.errors import BadData

MIB: Final = 2**20
_OTHER_KINDS: Final = (
    (stat.S_ISDIR, errno.EISDIR, os.strerror(errno.EISDIR)),
    (stat.S_ISFIFO, errno.EINVAL, "a pipe, not a regular file"),
    (stat.S_ISSOCK, errno.EINVAL, "a socket, not a regular file"),
    (lambda mode: not stat.S_ISREG(mode), errno.EINVAL, "a device, not a regular file"),
)


def read_file(path: Path, name: str, limit: int) -> bytes:
    """The content of a regular file, or of a link to one.

    Args:
        path: the file.
        name: its name in errors, for example with the option that gave it.
        limit: the largest size in bytes.

    Raises:
        BadData: the file is not a regular file, cannot be read, or is larger than the limit.
    """
    try:
        with open_regular(path) as file:
            # A file can grow, and some of the kernel's have no size.
            large = os.fstat(file.fileno()).st_size > limit
            content = b"" if large else file.read(limit + 1)
    except OSError as error:
        raise BadData(name, f"cannot be read ({error.strerror or error})") from error
    if large or len(content) > limit:
        raise BadData(name, f"is larger than {limit / MIB:g} MiB, the limit for such a file")
    return content


def read_text(path: Path, name: str, limit: int) -> str:
    """The text of a regular file; raises `BadData` as `read_file` does, and if it is not UTF-8."""
    try:
        return read_file(path, name, limit).decode()
    except UnicodeDecodeError as error:
        raise BadData(name, f"is not UTF-8 text (byte {error.start})") from error


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file, or a link to one, for reading.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device.
    """
    _refuse_other_kinds(path.stat().st_mode, path)  # opening a device can have effects
    # Without O_NONBLOCK, opening a pipe that took the file's place would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    number = os.open(path, flags)
    try:
        _refuse_other_kinds(os.fstat(number).st_mode, path)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _refuse_other_kinds(mode: int, path: Path) -> None:
    for is_kind, number, reason in _OTHER_KINDS:
        if is_kind(mode):
            raise OSError(number, reason, str(path))


def file_name(path: str | Path) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")
