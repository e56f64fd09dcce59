"""Text from models and scenarios, made safe to show in HTML.

It may hold tags, scripts, terminal codes and marks that reverse the direction of reading: all of it
is shown as text, none of it acts.
"""

import json
import re
from html import escape
from typing import Final

# Control characters but for line feed and tab, invisible characters, the marks that change the direction
# of writing, and halves of characters that no file can hold.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text with every character that acts or hides written out as its escape sequence."""
    return _UNSEEN.sub(_written_out, text)


def html(text: str) -> str:
    """The text for the content or a quoted attribute of an HTML element."""
    return escape(visible(text))


def json_text(raw: bytes) -> str:
    """The same JSON with every character that acts or hides as its escape, fit for a script element.

    Nothing in it can end the element or open a comment.
    """
    escaped = _UNSEEN.sub(lambda match: json.dumps(match.group(0))[1:-1], raw.decode())
    return escaped.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _written_out(match: re.Match[str]) -> str:
    return match.group(0).encode("unicode_escape", "surrogatepass").decode()
