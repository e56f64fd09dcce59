"""Makes text from models and scenarios safe to show in HTML.

Such text may contain tags, scripts, terminal escape codes and characters that reverse the reading
direction. It is displayed as text and nothing in it takes effect.
"""

import json
import re
from html import escape
from typing import Any, Final

import msgspec

# Control characters except line feed and tab, invisible characters, bidirectional controls, and lone
# surrogates, which cannot be written to a file.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with control and invisible characters replaced by their escape sequences."""
    return _UNSAFE.sub(_escape_sequence, text)


def html(text: str) -> str:
    """The text escaped for use as HTML content or in a quoted attribute."""
    return escape(visible(text))


def json_visible(raw: bytes) -> str:
    """Equivalent JSON with control and invisible characters as JSON escapes."""
    return _UNSAFE.sub(lambda match: json.dumps(match.group(0))[1:-1], raw.decode())


def json_document(value: Any) -> str:
    """A value as indented JSON for a file, see `json_visible`."""
    return json_visible(msgspec.json.format(msgspec.json.encode(value), indent=1))


def json_text(raw: bytes) -> str:
    """Equivalent JSON that is safe inside a script element: it can neither end it nor open a comment."""
    return json_visible(raw).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _escape_sequence(match: re.Match[str]) -> str:
    return match.group(0).encode("unicode_escape", "surrogatepass").decode()
