"""Shows quickly that the fitted messages of a storyline are sound, from the places where slots meet text.

What a slot can break lies within a phrase or beside it, and most scenarios give a place a phrase that others
have given it before. A large set has half a million messages; this is faster than reading each of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from string import ascii_letters, digits
from typing import Final, NamedTuple

from propensitybench.curation.text_stats import words
from propensitybench.pressure.fitting import NUMBERS, SLOT, SlotWords, without_deadline
from propensitybench.pressure.values import schedule
from propensitybench.scenarios.storyline import Storyline, StoryMessage

# Stands for a phrase of another place: an ordinary word that begins a sentence.
OTHER: Final = "Somebody"
NAME: Final = "Kim"
NUMBER: Final = "40"
REFERENCE: Final = "RQ-4711"
LAST_WORDS: Final = re.compile(r"(?:\S+\s+){3}\S*\Z")
FIRST_WORDS: Final = re.compile(r"\s*(?:\S+\s*){0,3}")
LETTERS: Final = ascii_letters + digits + "-/"
# A word may be counted twice where a phrase and the text beside it make one, as in "{requester}'s".
SLACK: Final = 8


class _Text(NamedTuple):
    """A subject or body: its slots, and the texts around them, one more.

    Attributes:
        alone: the texts, with a word for the phrase on either side.
        ends: the last words of each text, which stand before a slot.
        starts: the first words of each text, which stand after a slot.
        words: the number of words in the texts.
    """

    level: int
    is_body: bool
    texts: tuple[str, ...]
    alone: tuple[str, ...]
    ends: tuple[str, ...]
    starts: tuple[str, ...]
    slots: tuple[str, ...]
    words: int


class SlotPlaces:
    """The places of a storyline's slots.

    Args:
        storyline: one whose slots all have words.
        lengths: the words that a body may have.
        is_doubtful: whether something may be wrong in a text.
    """

    def __init__(self, storyline: Storyline, lengths: range, is_doubtful: Callable[[str], bool]) -> None:
        self._storyline = storyline
        self._lengths = lengths
        self._surely = range(lengths.start + SLACK, lengths.stop - SLACK)
        self._is_doubtful = is_doubtful
        self._known: dict[tuple[str, ...], bool] = {}

    @cached_property
    def _texts(self) -> list[_Text]:
        return [text for message in self._storyline.messages for text in _split(message)]

    def are_doubtful(self, scenario: SlotWords, names: Sequence[str]) -> bool:
        """Whether a message may have an issue in a scenario, or one of the names; False if none can."""
        steps = {step.level: scenario.at(step) for step in schedule()}
        whole = []
        for text in self._texts:
            given = steps[text.level]
            phrases = [NUMBER if slot in NUMBERS else given[slot] for slot in text.slots]
            if any(map(self._known_as_doubtful, _places(text, phrases))):
                return True
            filled = "".join(chain.from_iterable(zip_longest(text.texts, phrases, fillvalue="")))
            if text.is_body and not self._has_length(text.words + sum(map(_count, phrases)), filled):
                return True
            whole.append(filled)
        lower = "\n".join(whole).lower()
        return any(name in lower for name in names)

    def _has_length(self, about: int, text: str) -> bool:
        return about in self._surely or len(words(text)) in self._lengths

    def _known_as_doubtful(self, place: tuple[str, ...]) -> bool:
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self._is_doubtful("".join(place))
        return found


# The phrases of a scenario are counted once for all storylines.
@lru_cache(maxsize=1 << 16)
def _count(phrase: str) -> int:
    return len(words(phrase))


def _split(message: StoryMessage) -> Iterator[_Text]:
    body = (
        message.body.replace("{deadline}", message.deadline)
        if message.deadline
        else without_deadline(message.body)
    )
    for is_body, text in ((False, message.subject), (True, body)):
        parts = SLOT.split(text)
        texts, slots = tuple(parts[::2]), tuple(parts[1::2])
        left, right = ("", *(OTHER for _ in slots)), (*(OTHER for _ in slots), "")
        yield _Text(
            message.level,
            is_body,
            texts,
            tuple(map("".join, zip(left, texts, right, strict=True))),
            tuple(map(_end, map(str.__add__, left, texts))),
            tuple(map(_start, map(str.__add__, texts, right))),
            slots,
            sum(len(words(part)) for part in texts),
        )


def _end(text: str) -> str:
    """The last few words of a text, after a word that begins a sentence."""
    found = LAST_WORDS.search(text)
    start = found.start() if found else 0
    return f"{OTHER} {text[start:]}" if start else text


def _start(text: str) -> str:
    """The first few words of a text."""
    return text[: FIRST_WORDS.match(text).end()]  # type: ignore[union-attr]


@lru_cache(maxsize=1 << 16)
def _like_all(word: str) -> str:
    """A word, or one for all references and all names, which differ between scenarios but not in this."""
    if not word[:1].isupper():
        return word
    if not word.strip(LETTERS) and any(map(str.isdigit, word)):
        return REFERENCE
    # Not "The" and "Our", before which there may be no article.
    return NAME if len(word) > 3 and word.isalpha() and word[1:].islower() else word


def _places(text: _Text, phrases: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What has to be in order by itself: texts, phrases, and the last and first words where they meet.

    Where no word is between two phrases, the last word of one is beside the first of the other.
    """
    yield from ((part,) for part in text.alone)
    for index, phrase in enumerate(phrases):
        before, after = text.ends[index], text.starts[index + 1]
        first, _, rest = phrase.partition(" ")
        if index and not any(map(str.isalnum, text.texts[index])):
            before = f"{OTHER} {phrases[index - 1].rpartition(' ')[2]}{text.texts[index]}"
        yield before, _like_all(first), f" {OTHER}" if rest else after
        if rest:
            yield OTHER, " ", phrase
            yield OTHER, " ", _like_all(rest.rpartition(" ")[2]), after
