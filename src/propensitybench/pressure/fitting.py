"""Fits a storyline with the words of a scenario."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import dropwhile
from types import MappingProxyType
from typing import Final, NamedTuple

from propensitybench.digests import seed_from
from propensitybench.errors import BadInput
from propensitybench.pressure.values import DEADLINE, Step, ranges, schedule
from propensitybench.scenarios.model import MAX_TEXT, PressureMessage, Scenario, Situation, Value
from propensitybench.scenarios.storyline import NEUTRAL, REQUESTER, Storyline, StoryMessage
from propensitybench.taxonomy import PAPER_LADDER

SLOT: Final = re.compile(r"\{(\w+)\}")
CAPITAL: Final = "_cap"
# Slots that may begin a sentence, for which they have a form ending in `_cap`.
WORDS: Final = tuple(name for name in Situation.model_fields if not name.endswith("_kind"))
FIRST: Final = "_first"
"""Ends the slots of people's first names."""
COLLEAGUES: Final = MappingProxyType({"lead": 1, "manager": 2, "director": 3})
"""The slots of colleagues whom a message may name, by their rank."""
NAMED: Final = ("contact", "from", "from_previous", *COLLEAGUES)
PEOPLE: Final = (*NAMED, *(name + FIRST for name in NAMED), "org", "title")
COMPONENTS: Final = tuple("ABCDE")
NUMBERS: Final = frozenset(("T", *COMPONENTS))
SLOTS: Final = NUMBERS.union(
    WORDS, (name + CAPITAL for name in WORDS), PEOPLE, ("notice", "deadline", "opening")
)
# Not after the initial of a name.
SENTENCE_END: Final = re.compile(r"(?<=[.!?;])(?<!\b[A-Z]\.)\s+")
MIN_WORDS: Final = 4
"""What is left of an error has to say something."""
# Where the place of a person begins: "Dana Whitfield at Whitfield Retail".
PLACE: Final = re.compile(r",| (?:at|in|from|on|for|of|with)\b")


_TITLE: Final = re.compile(r"\w+\.$|(?:Captain|Major|Sister|Judge|Sir|Lady)$")


class Writer(NamedTuple):
    """Who writes a message; ``system`` for one that is none of a person."""

    name: str
    title: str
    system: bool = False

    @property
    def first_name(self) -> str:
        """The first name of a person; the whole name of anybody else, such as a board."""
        words = list(dropwhile(_TITLE.match, self.name.split()))
        is_person = len(words) > 1 and not self.system and not {"of", "the", "Board", "Office"} & set(words)
        return words[0] if is_person else self.name

    def __str__(self) -> str:
        """As the From line shows it."""
        return f"{self.name} ({self.title})" if self.system else f"{self.name}, {self.title}"


def steps(storyline: Storyline) -> tuple[Step, ...]:
    """The steps of a storyline's messages: those of the schedule, or its own."""
    if storyline.ladder == PAPER_LADDER:
        return schedule()
    return tuple(
        Step(message.level, message.intensity or 0, None if message.sender == REQUESTER else message.sender)
        for message in storyline.messages
    )


def fit(
    storyline: Storyline, scenario: Scenario, seed: int, *, deadline: bool = True
) -> tuple[PressureMessage, ...]:
    """The 12 messages of a storyline in a scenario, mildest first.

    Args:
        storyline: the storyline.
        scenario: gives the words and the senders.
        seed: of the numbers, drawn from the range of their component at the intensity; they never ease.
        deadline: whether the sentence with the time that remains stands in the messages.

    Raises:
        BadInput: the scenario has no organisation or situation, or the storyline a slot that does not exist
            or a text that gets too long.
    """
    fitting = _Fitting(storyline, SlotWords(scenario), (seed, scenario.name))
    messages = storyline.messages if deadline else map(_without_deadline, storyline.messages)
    return tuple(map(fitting.message, steps(storyline), messages))


def _without_deadline(message: StoryMessage) -> StoryMessage:
    return message.model_copy(update={"deadline": ""})


class SlotWords:
    """What the slots of a storyline stand for in a scenario, except for numbers and the deadline.

    Raises:
        BadInput: the scenario has no organisation or situation.
    """

    def __init__(self, scenario: Scenario) -> None:
        if scenario.organisation is None or scenario.situation is None:
            raise BadInput(f"{scenario.name}: has no organisation and situation to fit a storyline with")
        self.scenario = scenario.name
        self._organisation = scenario.organisation
        self._contact = _contact(scenario.situation)
        self._words = _words_of(scenario.situation) | {
            "notice": _notice(
                scenario.aligned.errors, tuple(_stated(scenario.unknown)), scenario.situation.system
            )
        }

    def writer(self, rank: int | None) -> Writer:
        """The sender of a rank, or the person who waits for the item."""
        if rank is None:
            return self._contact
        sender = self._organisation.sender(rank)
        return Writer(sender.name, sender.title, sender.system)

    def at(self, step: Step, before: Step | None) -> dict[str, str]:
        """The words at a step, where somebody else has written at the step before or nobody has."""
        writer = self.writer(step.rank)
        people = {"from": writer, "contact": self._contact}
        people |= {slot: self.writer(rank) for slot, rank in COLLEAGUES.items()}
        if before is not None:
            people["from_previous"] = self.writer(before.rank)
        names = {slot: person.name for slot, person in people.items()}
        names |= {slot + FIRST: person.first_name for slot, person in people.items()}
        return self._words | names | {"org": self._organisation.name, "title": writer.title}


class _Fitting:
    def __init__(self, storyline: Storyline, words: SlotWords, key: tuple[int, str]) -> None:
        self._storyline = storyline
        self._steps = steps(storyline)
        self._words = words
        self._key = (*key, storyline.dimension, storyline.name)

    def message(self, step: Step, message: StoryMessage) -> PressureMessage:
        """One message."""
        texts = (
            message.deadline,
            message.subject,
            message.body,
            message.after_message,
            message.after_silence,
        )
        used = frozenset(slot for text in texts for slot in _split(text)[1::2])
        slots = self._words.at(step, other_before(self._steps, step)) | self._numbers(step, used)
        slots["deadline"] = self._filled(message.deadline, slots)
        written = without_slot(message.body, "deadline") if not message.deadline else message.body
        answered, silent = (
            self._filled(
                written.replace("{opening}", line) if line else without_slot(written, "opening"), slots
            )
            for line in (message.after_message, message.after_silence)
        )
        return PressureMessage(
            str(self._words.writer(step.rank)),
            self._filled(message.subject, slots),
            silent,
            answered if answered != silent else "",
        )

    def _numbers(self, step: Step, used: frozenset[str]) -> dict[str, str]:
        if self._storyline.dimension == NEUTRAL or self._storyline.ladder != PAPER_LADDER:
            return {}
        found = {"T": self._number(DEADLINE, step)} if "T" in used else {}
        for letter in COMPONENTS:
            if letter in used and (self._storyline.dimension, letter, step.intensity) in ranges():
                found[letter] = self._number((self._storyline.dimension, letter), step)
        return found

    def _number(self, component: tuple[str, str], step: Step) -> str:
        place, alike = _place(step)
        jitter = (seed_from(*self._key, *component, step.level) >> 11) / 2**53
        share = (place + 0.1 + 0.8 * jitter) / alike
        return ranges()[*component, step.intensity].at(share)

    def _filled(self, text: str, slots: dict[str, str]) -> str:
        parts = list(_split(text))
        try:
            parts[1::2] = [slots[name] for name in parts[1::2]]
        except KeyError as missing:
            name = missing.args[0]
            raise BadInput(f"{self._storyline.file}: no value for the slot {{{name}}}") from None
        length = sum(map(len, parts))
        if length > MAX_TEXT:
            raise BadInput(
                f"{self._storyline.file}: gives a text of {length} characters with the words of "
                f"{self._words.scenario}; {MAX_TEXT} are allowed"
            )
        return "".join(parts)


# A text of a storyline is filled in for every scenario that it suits.
@lru_cache(maxsize=1 << 14)
def _split(text: str) -> tuple[str, ...]:
    """Text, slot, text, slot and so on, with a text at the end."""
    return tuple(SLOT.split(text))


def other_before(ladder: Sequence[Step], step: Step) -> Step | None:
    """The last step before at which somebody else has written, if there is one.

    People do not mention themselves by name: after several messages of one sender, the one before is named.
    """
    earlier = (other for other in reversed(ladder[: step.level - 1]) if other.rank != step.rank)
    return next(earlier, None)


@cache
def _place(step: Step) -> tuple[int, int]:
    """The place of a level among those of the same intensity, and their number.

    They have their own parts of the range, so that later ones are worse.
    """
    alike = [other.level for other in schedule() if other.intensity == step.intensity]
    return alike.index(step.level), len(alike)


@lru_cache(maxsize=4096)
def _words_of(situation: Situation) -> dict[str, str]:
    """What the slots of a scenario's words stand for."""
    words = situation.model_dump(include=set(WORDS))
    capitals = {name + CAPITAL: capitalised(text) for name, text in words.items()}
    return words | capitals


def _contact(situation: Situation) -> Writer:
    """The person who waits for the item, with their place as the title."""
    name, _, place = (
        situation.requester_contact.partition(found.group())
        if (found := PLACE.search(situation.requester_contact))
        else (situation.requester_contact, "", "")
    )
    return Writer(name, place.strip() or situation.requester)


@lru_cache(maxsize=4096)
def _notice(errors: tuple[str, ...], hidden: tuple[str, ...], system: str) -> str:
    """What the stuck system says, for messages that quote it: an error that gives away no unknown value.

    The agent has to ask its tools for these values. The last error comes first, as the one that is repeated.
    """
    for error in reversed(errors):
        left = SENTENCE_END.split(error)
        # Most errors hold none of the values, and to compile a pattern for each scenario takes long.
        if not hidden or any(text in error for text in hidden):
            values = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in hidden))
            left = [sentence for sentence in left if not values.search(sentence)]
        if sum(len(sentence.split()) for sentence in left) >= MIN_WORDS:
            return " ".join(left)
    return f"No response from {system}."


def _stated(values: Mapping[str, Value]) -> Iterator[str]:
    """The values as a text would state them, a list item by item."""
    for value in values.values():
        for item in value if isinstance(value, list | tuple) else (value,):
            yield str(item)


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def without_slot(body: str, name: str) -> str:
    """A body without a slot that stands for a whole sentence: its line goes, or the space beside it."""
    body = re.sub(rf"^\{{{name}\}}\n+", "", body, flags=re.MULTILINE)
    return re.sub(rf" ?\{{{name}\}}", "", body).strip().replace("\n ", "\n")
