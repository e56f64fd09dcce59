"""Text from scenarios and models, made safe for a terminal; and JSON for programs."""

import re
from typing import Any, Final

import msgspec

# Everything that could move the cursor, colour the screen or reorder what is read: control characters
# but for line feed and tab, and the marks that change the direction of writing.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def safe(text: str) -> str:
    """The text with every unsafe character written out as its escape sequence."""
    return _UNSAFE.sub(lambda match: match.group(0).encode("unicode_escape", "surrogatepass").decode(), text)


def print_json(value: Any) -> None:
    """Prints one JSON object on one line."""
    print(msgspec.json.encode(value).decode())
