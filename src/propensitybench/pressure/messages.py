"""The 12 messages of a scenario and a dimension.

A message has one fragment of each of the dimension's components at its intensity. It starts with the
deadline (component A of the dimension time), between an opening and a call to action that fit the sender's
rank. Every choice depends only on seed, scenario and dimension.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from propensitybench.digests import seed_from, shuffled
from propensitybench.errors import BadInput
from propensitybench.pressure.fragments import (
    PLACEHOLDER,
    Step,
    Value,
    fragments,
    frames,
    schedule,
)
from propensitybench.scenarios.model import PressureMessage, Scenario, Stakes

DEADLINE: Final = ("time", "A")
# One message in three has a bridge between its paragraphs; in every message it would be formulaic.
BRIDGED_IN: Final = 3


def pressure_messages(scenario: Scenario, dimension: str, seed: int) -> tuple[PressureMessage, ...]:
    """The pressure messages of a scenario, mildest first.

    A scenario with its own messages (in the published layout) uses those, whatever the seed.

    Raises:
        BadInput: the scenario has neither messages for the dimension nor stakes to generate them from.
    """
    if scenario.messages is not None and dimension in scenario.messages:
        return scenario.messages[dimension]
    return tuple(made.message for made in compose(scenario, dimension, seed))


class Wording(NamedTuple):
    """A stock text in a message.

    Attributes:
        stock: its place in the files: "time A 4" for a fragment (dimension, component, intensity), otherwise
            for example "opening 3", "bridge low" or "call desk".
        text: the text, with its placeholders.
        value: the number for its ``{value}``; empty if it has none.
    """

    stock: str
    text: str
    value: str = ""


class Composed(NamedTuple):
    """A message, and the stock texts of its body in order."""

    message: PressureMessage
    wordings: tuple[Wording, ...]


def compose(scenario: Scenario, dimension: str, seed: int) -> tuple[Composed, ...]:
    """The 12 messages composed from stock texts, each with those texts.

    Raises:
        BadInput: the scenario has no stakes.
    """
    if scenario.stakes is None:
        raise BadInput(f"{scenario.name}: has no messages and no stakes for the dimension {dimension}")
    chain = _Chain(scenario, scenario.stakes, dimension, seed)
    return tuple(chain.compose(step) for step in schedule())


class _Chain:
    """Composes the messages of one scenario and dimension, and tracks which texts it has used."""

    def __init__(self, scenario: Scenario, stakes: Stakes, dimension: str, seed: int) -> None:
        self._workspace = scenario.workspace
        self._phrases: dict[str, str] = stakes.model_dump()
        self._dimension = dimension
        self._key = (seed, scenario.name, dimension)
        self._uses: Counter[str] = Counter()

    def compose(self, step: Step) -> Composed:
        """The message of a step. Call it in the order of the schedule."""
        voice = step.voice
        opening = self._pick(f"opening {voice}", frames().openings[voice])
        deadline, *others = self._fragments(step)
        call = self._pick(f"call {voice}", frames().calls[voice])
        first = [opening, deadline, *others[:2]]
        second = [*self._bridge(step), *others[2:], call]
        senders = frames().senders.get(self._workspace, frames().senders["default"])
        subjects = frames().subjects[self._dimension][step.subject_band]
        message = PressureMessage(
            sender=self._pick(f"sender {voice}", senders[voice]).text,
            subject=_sentence_case(
                self._fill("subject", step, [self._pick(f"subject {step.subject_band}", subjects)])
            ),
            body=f"{self._fill('first', step, first)}\n\n{self._fill('second', step, second)}",
        )
        return Composed(message, (*first, *second))

    def _fragments(self, step: Step) -> Iterator[Wording]:
        """The deadline, then the dimension's other components in random order."""
        components = {(self._dimension, k): v for k, v in fragments()[self._dimension].components.items()}
        components.pop(DEADLINE, None)
        letters = list(components)
        order = shuffled(range(len(letters)), *self._key, "order", step.level)
        for name in (DEADLINE, *(letters[place] for place in order)):
            yield self._fragment(name, step)

    def _fragment(self, name: tuple[str, str], step: Step) -> Wording:
        dimension, letter = name
        cell = fragments()[dimension].components[letter].cells[step.intensity]
        stock = f"{dimension} {letter} {step.intensity}"
        use = self._uses[stock]
        wording = self._pick(stock, cell.wordings)
        if cell.value is None:
            return wording
        uses = sum(other.intensity == step.intensity for other in schedule())
        # Each use of a cell has its own part of the range, so that later uses get worse numbers.
        jitter = (seed_from(*self._key, stock, use) >> 11) / 2**53
        return wording._replace(value=_number(cell.value, (use + 0.1 + 0.8 * jitter) / uses))

    def _bridge(self, step: Step) -> Iterator[Wording]:
        if seed_from(*self._key, "bridge", step.level) % BRIDGED_IN == 0:
            yield self._pick(f"bridge {step.bridge_band}", frames().bridges[step.bridge_band])

    def _pick(self, stock: str, texts: Sequence[str]) -> Wording:
        """The next stock text in this chain's random order; none repeats before all were used."""
        use = self._uses[stock]
        self._uses[stock] += 1
        order = shuffled(range(len(texts)), *self._key, stock)
        return Wording(stock, texts[order[use % len(texts)]])

    def _fill(self, paragraph: str, step: Step, wordings: Sequence[Wording]) -> str:
        """A paragraph with the scenario's phrases filled in; a repeated phrase gets a substitute."""
        text = " ".join(wording.text.replace("{value}", wording.value) for wording in wordings)
        seen: Counter[str] = Counter()

        def phrase(match: re.Match[str]) -> str:
            name = match.group(1)
            key = name.lower()
            stock = frames().again.get(key)
            words = self._phrases[key]
            if stock and seen[key]:
                start = seed_from(*self._key, "again", key, paragraph, step.level)
                words = stock[(start + seen[key]) % len(stock)]
            seen[key] += 1
            return words[0].upper() + words[1:] if name[0].isupper() else words

        return PLACEHOLDER.sub(phrase, text)


def _number(value: Value, share: float) -> str:
    """The number at a fraction (0..1) of the way from the milder to the worse end of the range."""
    if value.worse == "lower":
        share = 1 - share
    number = round(value.low + (value.high - value.low) * share, value.decimals)
    number = min(max(number, value.low), value.high)
    return f"{number:.{value.decimals}f}"


def _sentence_case(text: str) -> str:
    return re.sub(r"^[a-z]", lambda match: match.group(0).upper(), text)
