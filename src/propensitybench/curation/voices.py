"""How the messages of storylines sound: what they repeat, ask and leave out, as a script can count it."""

import re
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import Final

from propensitybench.curation.limits import VarietyMeasure, limits
from propensitybench.curation.text_stats import sentences, words
from propensitybench.pressure.fitting import COLLEAGUES, SLOT, steps
from propensitybench.scenarios.storyline import NEUTRAL, Storyline, StoryMessage

FILLER: Final = 5
"""Lines that a notice of a system needs; more are filler."""
SEARCHING: Final = range(5, 12)
"""The levels at which people look for another way."""
FULL_NAMES: Final = ("contact", "requester_contact", "from_previous", *COLLEAGUES)
PERSON: Final = re.compile(r"\{(?:contact|from_previous|lead|manager|director)(?:_first)?\}")
THEY: Final = re.compile(r"\b(?:they|their|them|they'\w+)\b", re.IGNORECASE)
MANY: Final = re.compile(
    r"\{(?:requester|org|rival)(?:_cap)?\}|\} and |\band \{|"
    r"\b(?:people|IT|colleagues|others|everybody|both|two)\b"
)
STATUS: Final = re.compile(
    r"\b(?:where (?:are|do) we|any news|how far|what(?:'s| is) the (?:status|state)|when (?:will|can|do)|"
    r"is (?:it|\{deliverable_short\}) (?:done|there|through|in|finished)|still open)\b[^.?!]*\?",
    re.IGNORECASE,
)


def voices(storylines: Sequence[Storyline]) -> dict[str, VarietyMeasure]:
    """Every measure of the messages of a set, by the names of limits.json."""
    pressing = [one for one in storylines if one.dimension != NEUTRAL]
    messages = [(one, message) for one in pressing for message in one.messages]
    stock = [(one, phrase) for one, message in messages for phrase in _stock_phrases(message)]
    named = [one for one in pressing if any(_named_again(one))]
    they = [(one, sentence) for one, message in messages for sentence in _they_for_one(message)]
    notices = [
        (one, message)
        for one in pressing
        for step, message in zip(steps(one), one.messages, strict=True)
        if step.rank == 0
    ]
    filled = [one for one, message in notices if message.body.count("\n") + 1 > FILLER]
    status = [sum(bool(STATUS.search(message.body)) for message in one.messages) for one in pressing]
    ways = [_questions_for_a_way(one) for one in pressing]
    lengths = [len(words(message.body)) for _, message in messages]
    return {
        "stock_phrases": _share(
            len({id(one) for one, _ in stock}), len(pressing), stock[0][1] if stock else ""
        ),
        "names_in_full": _share(len(named), len(pressing), named[0].name if named else ""),
        "they_for_one": _share(len(they), len(messages), they[0][1] if they else ""),
        "filler_lines": _share(len(filled), len(notices), filled[0].name if filled else ""),
        "status_questions": VarietyMeasure(mean(status) if status else None, "a chain"),
        "questions_for_a_way": VarietyMeasure(mean(ways) if ways else None, "a chain"),
        "words_per_message": VarietyMeasure(
            float(median(lengths)) if lengths else None,
            f"{min(lengths)} to {max(lengths)} before they are fitted" if lengths else "",
        ),
    }


def _share(count: int, of: int, example: str) -> VarietyMeasure:
    return VarietyMeasure(count / of if of else None, example)


def _stock_phrases(message: StoryMessage) -> list[str]:
    text = f"{message.body} {message.after_message} {message.after_silence}".lower()
    return [phrase for phrase in limits().stock_phrases if phrase in text]


def _named_again(storyline: Storyline) -> Iterator[str]:
    """The slots with a full name that a chain has after their first mention."""
    seen: set[str] = set()
    for message in storyline.messages:
        for slot in SLOT.findall(f"{message.subject} {message.body}"):
            person = slot.removeprefix("requester_")
            if slot in FULL_NAMES and slot != "from_previous" and person in seen:
                yield slot
            seen.add(person.removesuffix("_first"))


def _they_for_one(message: StoryMessage) -> Iterator[str]:
    """The sentences in which "they" can only stand for a person named just before."""
    for sentence in (one for line in message.body.split("\n") for one in sentences(line)):
        person = PERSON.search(sentence)
        if person and THEY.search(sentence, person.end()) and not MANY.search(sentence):
            yield sentence


def _questions_for_a_way(storyline: Storyline) -> int:
    """The messages of the middle levels that ask something other than how far the item is."""
    return sum(
        "?" in STATUS.sub("", message.body) for message in storyline.messages if message.level in SEARCHING
    )
