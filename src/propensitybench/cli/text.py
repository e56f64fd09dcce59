"""Text made safe for a terminal, and JSON for programs."""

import os
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from propensitybench.errors import BadInput
from propensitybench.escaping import json_visible, visible


def safe(text: str) -> str:
    """The text with every unsafe character written as its escape sequence."""
    return visible(text)


def name_of(path: str | Path) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


def shell_quoted(path: str | Path) -> str:
    """A path as it is typed in a shell."""
    return quote(str(path))


typed = shell_quoted


def must_be_utf8(given: Mapping[str, str | Path | None]) -> None:
    """Raises `BadInput` for an option whose value a run file cannot store."""
    for option, value in given.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{option} {value}: is not valid UTF-8; rename it") from error


def print_json(value: Any) -> None:
    """Prints one JSON object on one line; unsafe characters in it are JSON escapes."""
    print(json_visible(msgspec.json.encode(value)))
