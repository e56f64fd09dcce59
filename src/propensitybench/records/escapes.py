"""Text from run files, made safe for Markdown, YAML and BibTeX."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from propensitybench.escaping import json_visible, visible

_MARKDOWN: Final = re.compile(r"[\\`*_{}\[\]<>#!|~&@$^]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_TEX: Final[Mapping[str, str]] = {
    # BibTeX counts braces, also escaped ones.
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    '"': r"\textquotedbl{}",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
}


class Escaped(str):
    """Text that is already in the language of the record."""

    __slots__ = ()


def markdown(value: Any) -> Escaped:
    """A value as one line of Markdown that shows it and nothing else: no link, image, tag or table cell."""
    return Escaped(_MARKDOWN.sub(r"\\\g<0>", _line(value)))


def code(value: Any) -> Escaped:
    """A value as a code span that may stand in a table cell."""
    return Escaped("`" + _line(value).replace("`", "'").replace("|", r"\|") + "`")


def tex(value: Any) -> Escaped:
    """A value as text of a BibTeX field."""
    return Escaped("".join(_TEX.get(mark, mark) for mark in _line(value)))


def yaml(value: Any) -> Escaped:
    """A value as YAML, which includes JSON."""
    return Escaped(json_visible(msgspec.json.encode(value)))


def escaper(escape: Callable[[Any], Escaped]) -> Callable[[Any], str]:
    """Escapes what a template outputs, unless it is written already."""
    return lambda value: value if isinstance(value, Escaped) else escape(value)


def _line(value: Any) -> str:
    return " ".join(visible(str(value)).split())
