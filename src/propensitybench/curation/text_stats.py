"""Words, sentences and n-grams of texts."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)*")


def sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop ends one only if whitespace follows."""
    return [part for part in _SENTENCE_END.split(text.strip()) if part]


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def ngrams(found: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """All n-grams of the words, also across sentences."""
    return zip(*(found[start:] for start in range(n)), strict=False)
