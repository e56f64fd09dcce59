"""Text made safe for a terminal, and JSON for programs."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from propensitybench.errors import BadInput
from propensitybench.escaping import json_visible
from propensitybench.store.atomic import new_file


def shell_quoted(path: str | Path) -> str:
    """A path as it is typed in a shell."""
    return quote(str(path))


def must_be_utf8(given: Mapping[str, str | Path | None]) -> None:
    """Raises `BadInput` for an option whose value a run file cannot store."""
    for option, value in given.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{option} {value}: is not valid UTF-8; rename it") from error


def write_new(path: Path, text: str) -> None:
    """Writes the file of an option ``--out``; raises `BadInput` if it exists or cannot be written."""
    try:
        with new_file(path) as file:
            file.write(text.encode())
    except FileExistsError as error:
        raise BadInput(f"--out {path}: exists already; give another file") from error
    except OSError as error:
        raise BadInput(f"--out {path}: cannot be written ({error.strerror or error})") from error


def print_json(value: Any) -> None:
    """Prints one JSON object on one line; unsafe characters in it are JSON escapes."""
    print(json_visible(msgspec.json.encode(value)))
