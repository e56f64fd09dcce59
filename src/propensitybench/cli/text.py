"""Text made safe for a terminal, and JSON for programs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

import msgspec

from propensitybench.errors import BadInput

# Everything that could move the cursor, colour the screen or reorder text: control characters other
# than line feed and tab, and marks that change the direction of writing.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def safe(text: str) -> str:
    """The text with every unsafe character written as its escape sequence."""
    return _UNSAFE.sub(lambda match: match.group(0).encode("unicode_escape", "surrogatepass").decode(), text)


def name_of(path: str | Path) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


def typed(path: str | Path) -> str:
    """A path as it is typed in a shell."""
    return safe(quote(str(path)))


def must_be_utf8(given: Mapping[str, str | Path | None]) -> None:
    """Raises `BadInput` for an option whose value a run file cannot store."""
    for option, value in given.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{option} {value}: is not valid UTF-8; rename it") from error


def print_json(value: Any) -> None:
    """Prints one JSON object on one line."""
    print(msgspec.json.encode(value).decode())
