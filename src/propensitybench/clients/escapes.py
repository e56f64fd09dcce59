"""Texts with their escapes undone, and where each character came from.

JSON, percent-encoding, HTML and Python's representations, also nested in each other.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

# No model writes as many; an endpoint that does must not stall the program.
MOST_ESCAPES: Final = 200_000
# Possessive, and only from the first backslash of a run: linear in the length of the text.
_ESCAPE: Final = re.compile(
    r"(?<!\\)\\++(?:u([0-9a-f]{4})|x([0-9a-f]{2}))?|%(?:25)*+([0-9a-f]{2})"
    r"|&#x0{0,9}([0-9a-f]{1,6});|&#0{0,9}(\d{1,7});|&(quot|apos|amp|lt|gt);",
    re.IGNORECASE,
)
_BACKSLASH: Final = ord("\\")
_ENTITIES: Final = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">"}


class _Part(NamedTuple):
    """A part of the original: an escape, or the characters between two.

    Attributes:
        outer: where it begins, with the lone backslashes before it.
        start, end: where it begins and ends without them.
        escape: whether it is an escape, which stands for one character.
    """

    outer: int
    start: int
    end: int
    escape: bool


class Unescaped:
    """A text with its escapes undone.

    Args:
        text: the original.

    Attributes:
        text: without escapes, and without any other backslash.
        length: characters of the original that were read: all, or those before escape `MOST_ESCAPES`.
    """

    def __init__(self, text: str) -> None:
        self._parts: list[_Part] = []
        self._begins: list[int] = []
        self._texts: list[str] = []
        self._size = self._outer = 0
        done = 0
        self.length = len(text)
        for count, match in enumerate(_ESCAPE.finditer(text)):
            if count == MOST_ESCAPES:
                self.length = match.start()
                break
            self._add(text[done : match.start()], done, match.start())
            self._add(_character(match), match.start(), match.end(), escape=True)
            done = match.end()
        self._add(text[done : self.length], done, self.length)
        self.text = "".join(self._texts)

    def _add(self, text: str, start: int, end: int, *, escape: bool = False) -> None:
        if not text:
            return  # a lone backslash belongs to the part after it
        self._parts.append(_Part(self._outer, start, end, escape))
        self._begins.append(self._size)
        self._texts.append(text)
        self._size += len(text)
        self._outer = end

    def origin(self, begin: int, end: int) -> tuple[int, int]:
        """Where in the original the characters from ``begin`` to ``end``, which is not before it, are."""
        first = bisect_right(self._begins, begin) - 1
        part, offset = self._parts[first], begin - self._begins[first]
        start = part.start + offset if offset else part.outer
        last = bisect_right(self._begins, end - 1) - 1
        part, offset = self._parts[last], end - self._begins[last]
        return start, part.end if part.escape else part.start + offset


def occurrences(forms: Sequence[str], text: str) -> Iterator[tuple[int, int]]:
    """Where any of some forms begins and ends, in order; of two that overlap, the one that begins first."""
    done = 0
    hits = sorted((begin, -len(form)) for form in forms for begin in _every(form, text))
    for begin, length in hits:
        if begin >= done:
            done = begin - length
            yield begin, done


def _every(form: str, text: str) -> Iterator[int]:
    begin = text.find(form)
    while begin >= 0:
        yield begin
        begin = text.find(form, begin + len(form))


def _character(match: re.Match[str]) -> str:
    """The character that an escape stands for; none for a backslash."""
    json, octet, percent, html_hex, html, entity = match.groups()
    if entity:
        return _ENTITIES[entity.lower()]
    digits = json or octet or percent or html_hex
    code = int(html) if html else int(digits, 16) if digits else _BACKSLASH
    return chr(code) if code != _BACKSLASH and code <= sys.maxunicode else ""
