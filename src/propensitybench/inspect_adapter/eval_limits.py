"""What an Inspect log may inflate to, checked before Inspect reads it, because Inspect sets no limit.

A log is a ZIP archive, and a few megabytes can inflate to many gigabytes. The check inflates each member in
small steps and counts, because an archive can lie about sizes. It also requires that the archive's end allows
one interpretation only, so that Inspect finds the same members.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Self, cast

import zstandard
from inspect_ai.log import EvalSpec, read_eval_log

from propensitybench.errors import BadInput
from propensitybench.files import MIB, open_regular

VARIABLE: Final = "PROPENSITYBENCH_MAX_LOG_MIB"
# A log of 200 tasks with 12 levels has 0.5 MiB of summaries, samples of 0.4 MiB, and ratios up to 26.
MAX_MEMBER_MIB: Final = 64
MAX_RATIO: Final = 100
RATIO_COUNTS_FROM: Final = 4 * MIB
MAX_MEMBERS: Final = 100_000
MAX_DIRECTORY: Final = 32 * MIB
# The whole log, and a log in the JSON format, which is read as a whole: so many times the largest member.
MEMBERS_IN_TOTAL: Final = 64
MEMBERS_IN_JSON: Final = 4

_STEP: Final = 2**16
_ZSTD: Final = 93
_END: Final = struct.Struct("<4s4H2IH")
_END_64: Final = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64: Final = struct.Struct("<4sIQI")
_LOCAL: Final = struct.Struct("<4s22x2H")


class CheckedLog:
    """A log whose size is checked; use it as a context manager.

    Args:
        path: a log in either of Inspect's formats.

    Raises:
        BadInput: the log is damaged, or larger than the limits, and how to raise them.
        OSError: the log cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._largest, self._is_raised = _largest_member()
        self._inflated = 0
        self._members: dict[str, list[zipfile.ZipInfo]] = {}
        self._file = open_regular(path)
        try:
            if path.suffix == ".eval":
                self._members = self._directory()
                for name in self._members:
                    if not name.startswith("samples/"):
                        self._check(name)
            elif os.fstat(self._file.fileno()).st_size > MEMBERS_IN_JSON * self._largest:
                raise self._too_large(f"has more than {MEMBERS_IN_JSON * self._largest // MIB} MiB")
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read_spec(self) -> EvalSpec:
        """What was evaluated; raises whatever a damaged log leads to.

        A log in the JSON format is read as a whole, because for its header alone Inspect uses a parser whose
        memory grows with the square of the nesting.
        """
        return read_eval_log(str(self._path), header_only=self._path.suffix == ".eval").eval

    def read_sample(self, identity: str | int, epoch: int) -> bytes:
        """One sample of a log in the format ``.eval``, as JSON.

        Raises:
            BadInput: the log has no such sample, or it is damaged or larger than the limits.
        """
        name = f"samples/{identity}_epoch_{epoch}.json"
        if name not in self._members:
            raise self._damaged(f"it has no member {name!r}")
        return b"".join(self._parts(name, self._members[name][-1]))

    def _directory(self) -> dict[str, list[zipfile.ZipInfo]]:
        start = self._start_of_directory()
        try:
            with zipfile.ZipFile(self._file) as archive:
                members, found = archive.infolist(), archive.start_dir
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise self._damaged(str(error)) from error
        if found != start:
            raise self._damaged("its directory is not where its end says")
        if len(members) > MAX_MEMBERS:
            raise BadInput(f"{self._path}: has {len(members)} members; at most {MAX_MEMBERS} are read")
        by_name: dict[str, list[zipfile.ZipInfo]] = {}
        for member in members:
            by_name.setdefault(member.filename, []).append(member)
        return by_name

    def _start_of_directory(self) -> int:
        """Where the directory starts, if every reader of ZIP archives must find it there."""
        size = self._file.seek(0, os.SEEK_END)
        end = size - _END.size
        mark, *numbers, directory, start, comment = self._read(_END, end)
        locator = end - _LOCATOR_64.size
        is_64 = locator >= 0 and self._read(_LOCATOR_64, locator)[0] == b"PK\x06\x07"
        if mark != b"PK\x05\x06" or comment:
            raise self._damaged("it does not end with a ZIP directory")
        if is_64 != (0xFFFF in numbers or 0xFFFFFFFF in (directory, start)):
            raise self._damaged("its end is ambiguous")
        if is_64:
            end = locator - _END_64.size
            if self._read(_LOCATOR_64, locator)[2] != end:
                raise self._damaged("its end is ambiguous")
            mark, *_, directory, start = self._read(_END_64, end)
            if mark != b"PK\x06\x06":
                raise self._damaged("its end is ambiguous")
        if start + directory != end:
            raise self._damaged("its directory is not where its end says")
        if directory > MAX_DIRECTORY:
            raise BadInput(f"{self._path}: has too many members; at most {MAX_MEMBERS} are read")
        return int(start)

    def _read(self, form: struct.Struct, offset: int) -> tuple[Any, ...]:
        if offset < 0:
            raise self._damaged("it is too short")
        self._file.seek(offset)
        content = self._file.read(form.size)
        if len(content) < form.size:
            raise self._damaged("it is too short")
        return form.unpack(content)

    def _check(self, name: str) -> None:
        """Inflates the members of that name without keeping them."""
        for member in self._members[name]:
            for _ in self._parts(name, member):
                pass

    def _parts(self, name: str, member: zipfile.ZipInfo) -> Iterator[bytes]:
        """The inflated member in parts, as long as it is within the limits."""
        size = 0
        for part in self._inflate(member):
            yield part
            size += len(part)
            self._inflated += len(part)
            if size > self._largest:
                raise self._too_large(f"{name!r} inflates to more than {self._largest // MIB} MiB")
            if self._inflated > MEMBERS_IN_TOTAL * self._largest:
                total = MEMBERS_IN_TOTAL * self._largest // MIB
                raise self._too_large(f"the log inflates to more than {total} MiB")
            ratio_counts = size > RATIO_COUNTS_FROM and not self._is_raised
            if ratio_counts and size > MAX_RATIO * member.compress_size:
                raise self._too_large(f"{name!r} inflates to more than {MAX_RATIO} times its size")

    def _inflate(self, member: zipfile.ZipInfo) -> Iterator[bytes]:
        mark, name, extra = self._read(_LOCAL, member.header_offset)
        if mark != b"PK\x03\x04":
            raise self._damaged(f"{member.filename!r} is not where its directory says")
        self._file.seek(name + extra, os.SEEK_CUR)
        part = _CheckedPart(self._file, member.compress_size)
        try:
            match member.compress_type:
                case zipfile.ZIP_STORED:
                    yield from iter(part.read, b"")
                case zipfile.ZIP_DEFLATED:
                    yield from _deflated(part)
                case _ if member.compress_type == _ZSTD:
                    yield from _zstandard(part)
                case other:
                    raise self._damaged(f"{member.filename!r} has the unknown compression {other}")
        except (zlib.error, zstandard.ZstdError) as error:
            raise self._damaged(f"{member.filename!r}: {error}") from error

    def _damaged(self, why: str) -> BadInput:
        return BadInput(f"{self._path}: is not an Inspect log, or is damaged ({why})")

    def _too_large(self, what: str) -> BadInput:
        larger = 4 * self._largest // MIB
        return BadInput(f"{self._path}: {what}; if you trust this log, set {VARIABLE}={larger} or more")


class _CheckedPart:
    """The next bytes of a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = _STEP) -> bytes:
        """At most that many of the bytes; empty after the last."""
        content = self._file.read(min(size if size >= 0 else _STEP, self._left))
        self._left -= len(content)
        return content


def _deflated(part: _CheckedPart) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    while not inflater.eof:
        content = inflater.unconsumed_tail or part.read()
        inflated = inflater.decompress(content, MIB)
        if not content and not inflated:
            return
        yield inflated


def _zstandard(part: _CheckedPart) -> Iterator[bytes]:
    with zstandard.ZstdDecompressor().stream_reader(cast(IO[bytes], part), read_across_frames=True) as reader:
        while inflated := reader.read(MIB):
            yield inflated


def _largest_member() -> tuple[int, bool]:
    """The limit in bytes, and whether the user set it."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return MAX_MEMBER_MIB * MIB, False
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 10 or int(text) < 1:
        raise BadInput(f"{VARIABLE}: must be a number of MiB, like {4 * MAX_MEMBER_MIB}, found {text!r}")
    return int(text) * MIB, True
