"""Looks for a key in what a run leaves behind, in any encoding. Shares no code with the program."""

import html
import json
import re
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_UNICODE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_OCTET = re.compile(r"\\+x([0-9a-fA-F]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{10,}")


def readings(text: str) -> Iterator[str]:
    """The text as it is, and as somebody who looks for a key would decode it."""
    yield text
    units = _UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
    units = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
    octets = _OCTET.sub(lambda match: chr(int(match[1], 16)), text)
    for decoded in (units, octets.encode("latin-1", "replace").decode("utf-8", "replace"), unquote(text)):
        yield decoded
        yield decoded.replace("\\", "")
    yield html.unescape(text)
    for run in _BASE64.findall(text):
        for start in range(4):
            whole = run[start : start + (len(run) - start) // 4 * 4].replace("-", "+").replace("_", "/")
            yield b64decode(whole).decode("utf-8", "replace")


def leaks(text: str, key: str) -> bool:
    """Whether a text gives a key away, backslashes aside."""
    bare = key.replace("\\", "")
    return any(key in reading or bare in reading for reading in readings(text))


def texts_of(path: Path) -> Iterator[str]:
    """The bytes of a file as text, and the rows of a run file."""
    yield path.read_bytes().decode("utf-8", "surrogateescape")
    if path.suffix == ".run":
        with sqlite3.connect(path) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                yield json.dumps(db.execute(f"SELECT * FROM {table}").fetchall(), default=repr)
                yield repr(db.execute(f"SELECT * FROM {table}").fetchall())
        db.close()
