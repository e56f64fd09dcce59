"""Standard output and standard error, with control characters escaped.

Everything that the program prints goes through here: errors, notes, tables and progress may contain text from
run files, endpoints, file names and options.
"""

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Literal, TextIO, cast

from propensitybench.escaping import visible

MAX_SENTENCE: Final = 2000


class SafeStream:
    """A text stream that escapes unsafe characters; otherwise the same as the stream below.

    Args:
        below: where the text goes.
        may_fail: whether write errors are raised. Those of standard error are ignored: a closed pipe or a
            full disk must not end a run.
    """

    def __init__(self, below: TextIO, *, may_fail: bool) -> None:
        self.below = below
        self._may_fail = may_fail

    def write(self, text: str) -> int:
        """Writes a text, escaped; returns its length."""
        return self.write_controls(visible(text))

    def write_controls(self, text: str) -> int:
        """Writes a text unescaped, for the control sequences that rich generates."""
        try:
            return self.below.write(text)
        except OSError:
            if self._may_fail:
                raise
            return len(text)

    @property
    def unescaped(self) -> TextIO:
        """The same stream for rich, whose colours and cursor movements take effect."""
        return cast(TextIO, _Controls(self))

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flushes the stream."""
        try:
            self.below.flush()
        except OSError:
            if self._may_fail:
                raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


class _Controls:
    """The stream below a `SafeStream`, for rich: colours and cursor movements take effect."""

    def __init__(self, stream: SafeStream) -> None:
        self.write = stream.write_controls
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def make_streams_safe() -> None:
    """Wraps standard output and standard error; closed ones are replaced by the null device."""
    for name in ("stdout", "stderr"):
        # A closed stream is None: `print` would raise, or write errors to standard output.
        stream = getattr(sys, name) or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        if isinstance(stream, TextIOWrapper):  # not every terminal can encode every file name
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, SafeStream(stream, may_fail=name == "stdout"))


def styled(name: Literal["stdout", "stderr"]) -> TextIO:
    """A standard stream for rich, without escaping; `SafeConsole` escapes the text."""
    stream = getattr(sys, name)
    return stream.unescaped if isinstance(stream, SafeStream) else cast(TextIO, stream)


def sentence(text: object) -> str:
    """A message as one line of bounded length, so that no part of it looks like another message."""
    line = visible(str(text)).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= MAX_SENTENCE else f"{line[:MAX_SENTENCE]}... ({len(line):,} characters)"


def print_note(text: object) -> None:
    """Prints one line to standard error."""
    print(sentence(text), file=sys.stderr)
