"""Words and sentences of texts, and statistics of them."""

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


def distinct(texts: Sequence[Sequence[str]], n: int) -> float | None:
    """Distinct-n of tokenised texts: the share of n-grams that are distinct (0..1).

    Li et al. 2016, "A diversity-promoting objective function for neural conversation models". It decreases
    with the amount of text, so compare it only between collections of similar size. None if there are no
    n-grams.
    """
    total = 0
    different: set[tuple[str, ...]] = set()
    for text in texts:
        total += max(0, len(text) - n + 1)
        different.update(ngrams(text, n))
    return len(different) / total if total else None


def reading_grade(texts: Sequence[str]) -> float | None:
    """Automated Readability Index: the US school grade needed to read the texts.

    4.71 x characters per word + 0.5 x words per sentence - 21.43 (Senter and Smith 1967). None without words.
    """
    found = [words(text) for text in texts]
    count = sum(map(len, found))
    ends = sum(len(sentences(text)) for text in texts)
    if not count:
        return None
    characters = sum(len(word) for text in found for word in text)
    return 4.71 * characters / count + 0.5 * count / ends - 21.43
