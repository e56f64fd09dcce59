"""What an Inspect log may inflate to, checked before Inspect reads it, because Inspect sets no limit."""

import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Final, Self

from inspect_ai.log import EvalSpec, read_eval_log

from propensitybench.errors import BadInput
from propensitybench.files import MIB, open_regular

VARIABLE: Final = "PROPENSITYBENCH_MAX_LOG_MIB"
# A log of 200 tasks with 12 levels has 0.5 MiB of summaries and samples of 0.4 MiB.
MAX_MEMBER_MIB: Final = 64
# A log in the JSON format is read as a whole: so many times the largest member of one in the ZIP format.
MEMBERS_IN_JSON: Final = 4
# Bytes in a step: a decompressor returns whatever a step inflates to.
_STEP: Final = 4096


class CheckedLog:
    """A log whose size is checked; use it as a context manager.

    What an archive states of a member's size is checked against its contents by their checksum.

    Args:
        path: a log in either of Inspect's formats.

    Raises:
        BadInput: the log is larger than the limits, and how to raise them.
        Exception: whatever a damaged archive leads to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._largest = _largest_member()
        self._archive: zipfile.ZipFile | None = None
        self._file = open_regular(path)
        try:
            if path.suffix == ".eval":
                self._archive = zipfile.ZipFile(self._file)
                for member in self._archive.infolist():
                    if not member.filename.startswith("samples/"):
                        self._read(self._archive, member)
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
        return read_eval_log(str(self._path), header_only=self._archive is not None).eval

    def read_sample(self, identity: str | int, epoch: int) -> bytes:
        """One sample of a log in the format ``.eval``, as JSON; raises as `CheckedLog` does."""
        assert self._archive is not None
        return self._read(self._archive, self._archive.getinfo(f"samples/{identity}_epoch_{epoch}.json"))

    def _read(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
        if member.file_size > self._largest:
            raise self._too_large(f"{member.filename!r} inflates to more than {self._largest // MIB} MiB")
        with archive.open(member) as content:
            return b"".join(iter(partial(content.read, _STEP), b""))

    def _too_large(self, what: str) -> BadInput:
        larger = 4 * self._largest // MIB
        return BadInput(f"{self._path}: {what}; if you trust this log, set {VARIABLE}={larger} or more")


def _largest_member() -> int:
    """The limit in bytes."""
    text = os.environ.get(VARIABLE, "") or str(MAX_MEMBER_MIB)
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise BadInput(f"{VARIABLE}: must be a number of MiB, like {4 * MAX_MEMBER_MIB}, found {text!r}")
    return int(text) * MIB
