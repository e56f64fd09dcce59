"""The 12 messages of a scenario and a dimension.

A message has one fragment of each of the dimension's components at its intensity, opened by the
deadline (component A of the dimension time), framed by an opening and a call to act that fit the
sender's rank. Every choice is a digest of seed, scenario and dimension: the same three give the same
messages, and two scenarios share little but the stock of sentences.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from propensitybench.digests import seed_from, shuffled
from propensitybench.errors import BadInput
from propensitybench.pressure.fragments import (
    PLACEHOLDER,
    ComponentFragments,
    Step,
    Value,
    fragments,
    frames,
    schedule,
)
from propensitybench.scenarios.model import PressureMessage, Scenario, Stakes

DEADLINE: Final = ("time", "A")
# A chain in which every mail has the same joint between its paragraphs would read like a form.
BRIDGED_IN: Final = 3


def pressure_messages(scenario: Scenario, dimension: str, seed: int) -> tuple[PressureMessage, ...]:
    """The messages that follow level 0, the mildest first.

    A scenario that brings its own messages (the published layout) gets those, whatever the seed.

    Raises:
        BadInput: the scenario has neither messages for that dimension nor stakes to make them from.
    """
    if scenario.messages is not None and dimension in scenario.messages:
        return scenario.messages[dimension]
    if scenario.stakes is None:
        raise BadInput(f"{scenario.name}: has no messages and no stakes for the dimension {dimension}")
    return _Chain(scenario, scenario.stakes, dimension, seed).messages()


class _Chain:
    """The messages of one scenario and dimension in the making; knows what it has used up."""

    def __init__(self, scenario: Scenario, stakes: Stakes, dimension: str, seed: int) -> None:
        self._workspace = scenario.workspace
        self._phrases: dict[str, str] = stakes.model_dump()
        self._dimension = dimension
        self._key = (seed, scenario.name, dimension)
        self._uses: Counter[str] = Counter()

    def messages(self) -> tuple[PressureMessage, ...]:
        return tuple(self._message(step) for step in schedule())

    def _message(self, step: Step) -> PressureMessage:
        voice = step.voice
        components = dict(fragments()[self._dimension].components)
        if self._dimension == DEADLINE[0]:
            deadline = components.pop(DEADLINE[1])
        else:
            deadline = fragments()[DEADLINE[0]].components[DEADLINE[1]]
        letters = list(components)
        order = [letters[i] for i in shuffled(range(len(letters)), *self._key, "order", step.level)]
        sentences = [self._fragment(letter, components[letter], step) for letter in order]
        first = [
            self._pick(f"opening {voice}", frames().openings[voice]),
            self._fragment("deadline", deadline, step),
            *sentences[:2],
        ]
        second = [*sentences[2:], self._pick(f"call {voice}", frames().calls[voice])]
        if seed_from(*self._key, "bridge", step.level) % BRIDGED_IN == 0:
            band = step.bridge_band
            second.insert(0, self._pick(f"bridge {band}", frames().bridges[band]))
        titles = frames().senders.get(self._workspace, frames().senders["default"])
        band = step.subject_band
        subjects = frames().subjects[self._dimension][band]
        return PressureMessage(
            sender=self._pick(f"sender {voice}", titles[voice]),
            subject=_sentence_case(self._fill(self._pick(f"subject {band}", subjects))),
            body="\n\n".join(self._fill(" ".join(paragraph)) for paragraph in (first, second)),
        )

    def _pick(self, what: str, stock: Sequence[str]) -> str:
        """The next of a stock in this chain's own order: none comes twice before all came once."""
        use = self._uses[what]
        self._uses[what] += 1
        order = shuffled(range(len(stock)), *self._key, what)
        return stock[order[use % len(stock)]]

    def _fragment(self, name: str, component: ComponentFragments, step: Step) -> str:
        cell = component.cells[step.intensity]
        what = f"{name} {step.intensity}"
        use = self._uses[what]
        text = self._pick(what, cell.wordings)
        if cell.value is None:
            return text
        uses = sum(other.intensity == step.intensity for other in schedule())
        # A later use of the same cell gets a worse number: each has its own part of the range.
        jitter = (seed_from(*self._key, what, use) >> 11) / 2**53
        return text.replace("{value}", _number(cell.value, (use + 0.1 + 0.8 * jitter) / uses))

    def _fill(self, text: str) -> str:
        """The text with the scenario's phrases; one that it repeats is referred to, not repeated."""
        seen: Counter[str] = Counter()

        def phrase(match: re.Match[str]) -> str:
            name = match.group(1)
            key = name.lower()
            stock = frames().again.get(key)
            words = self._phrases[key]
            if stock and seen[key]:
                words = stock[(seen[key] - 1) % len(stock)]
            seen[key] += 1
            return words[0].upper() + words[1:] if name[0].isupper() else words

        return PLACEHOLDER.sub(phrase, text)


def _number(value: Value, share: float) -> str:
    """The number at that share (0..1) of the way from the milder to the worse end of the range."""
    if value.worse == "lower":
        share = 1 - share
    number = round(value.low + (value.high - value.low) * share, value.decimals)
    number = min(max(number, value.low), value.high)
    return f"{number:.{value.decimals}f}"


def _sentence_case(text: str) -> str:
    return re.sub(r"^[a-z]", lambda match: match.group(0).upper(), text)
