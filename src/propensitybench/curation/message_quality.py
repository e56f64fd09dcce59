"""How varied a data set's pressure messages are, and how often each stock text is used."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import msgspec

from propensitybench.curation.scenario_quality import Kind, measured
from propensitybench.curation.similarity import mean_cosine, vectors
from propensitybench.curation.text_stats import ngrams, words
from propensitybench.pressure.fragments import fragments, frames, schedule
from propensitybench.pressure.messages import Wording, compose
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.taxonomy import taxonomy

MOST_USED: Final = 0.015
MOST_SHARED: Final = 0.5
RUN: Final = 3


class Use(msgspec.Struct, frozen=True):
    """A text of the stock, and the share (0..1) of all messages that have it."""

    stock: str
    text: str
    share: float


class MessageQuality(msgspec.Struct, frozen=True):
    """The pressure messages of a data set.

    Attributes:
        messages: lengths, distinct-n and the like, over all message bodies.
        subjects: the same over their subject lines.
        within_chain: mean TF-IDF cosine of two messages of the same scenario and dimension.
        between_scenarios: the same for two scenarios at the same level of the same dimension.
        most_shared: the largest share of a message's trigrams that also occur in another message of the
            same scenario and dimension.
        wordings: every stock text, most used first; empty for scenarios with their own messages.
    """

    messages: Kind
    subjects: Kind
    within_chain: float | None
    between_scenarios: float | None
    most_shared: float
    wordings: tuple[Use, ...]


class _Chain(NamedTuple):
    """The messages of a scenario and a dimension; ``wordings`` is empty if they are the scenario's own."""

    scenario: Scenario
    dimension: str
    messages: tuple[PressureMessage, ...]
    wordings: tuple[tuple[Wording, ...], ...]


def message_quality(scenarios: Sequence[Scenario], seed: int) -> MessageQuality:
    """Measures the messages of some scenarios, under every dimension."""
    chains = _chains(scenarios, seed)
    bodies = [message.body for chain in chains for message in chain.messages]
    rows = vectors(bodies)
    levels = len(schedule())
    dimensions = len(taxonomy().dimensions)
    within = [mean_cosine(rows[start : start + levels]) for start in range(0, len(bodies), levels)]
    # Rows are ordered by scenario, dimension and level, so this is the distance to the next scenario.
    step = levels * dimensions
    between = [mean_cosine(rows[place::step]) for place in range(step)]
    return MessageQuality(
        messages=measured(bodies),
        subjects=measured([message.subject for chain in chains for message in chain.messages]),
        within_chain=_mean(within),
        between_scenarios=_mean(between),
        most_shared=max((share for chain in chains for share, _, _ in _sharing(chain)), default=0.0),
        wordings=tuple(_uses(chains)),
    )


def repetition_issues(scenarios: Sequence[Scenario], seed: int) -> Iterator[tuple[str, str]]:
    """Repetition in messages: where it is, and a sentence about it.

    No stock text may be in more than 1.5 % of all messages, and no two messages of the same scenario and
    dimension may share more than half of their trigrams.
    """
    chains = _chains(scenarios, seed)
    for use in _uses(chains):
        if use.share > MOST_USED:
            percent = f"{100 * use.share:.2f} percent"
            yield use.stock, f"is in {percent} of all messages, more wordings are needed: {use.text!r}"
    for chain in chains:
        where = f"{chain.scenario.name} {chain.dimension}"
        for share, first, second in _sharing(chain):
            if share > MOST_SHARED:
                yield where, f"messages {first} and {second} share {100 * share:.0f} percent of their wording"


def stock() -> Iterator[Wording]:
    """Every text that the body of a message can be composed of."""
    for dimension, file in fragments().items():
        for letter, component in file.components.items():
            for cell in component.cells:
                for text in cell.wordings:
                    yield Wording(f"{dimension} {letter} {cell.intensity}", text)
    for kind, stocks in (
        ("opening", frames().openings),
        ("bridge", frames().bridges),
        ("call", frames().calls),
    ):
        for key, texts in stocks.items():
            for text in texts:
                yield Wording(f"{kind} {key}", text)


def _chains(scenarios: Sequence[Scenario], seed: int) -> list[_Chain]:
    return [
        _chain(scenario, dimension, seed) for scenario in scenarios for dimension in taxonomy().dimensions
    ]


def _chain(scenario: Scenario, dimension: str, seed: int) -> _Chain:
    if scenario.messages is not None and dimension in scenario.messages:
        return _Chain(scenario, dimension, scenario.messages[dimension], ())
    made = compose(scenario, dimension, seed)
    messages, wordings = (tuple(column) for column in zip(*made, strict=True))
    return _Chain(scenario, dimension, messages, wordings)


def _uses(chains: Sequence[_Chain]) -> Iterator[Use]:
    """Every stock text with the share of messages that use it, most used first."""
    found: Counter[tuple[str, str]] = Counter()
    messages = 0
    for chain in chains:
        messages += len(chain.wordings)
        for wordings in chain.wordings:
            found.update({(wording.stock, wording.text) for wording in wordings})
    if not messages:
        return
    everything = {(wording.stock, wording.text): 0 for wording in stock()}
    for (name, text), count in sorted((everything | found).items(), key=lambda item: (-item[1], item[0])):
        yield Use(name, text, count / messages)


def _sharing(chain: _Chain) -> Iterator[tuple[float, int, int]]:
    """For each pair of messages: the share of the shorter one's trigrams that both have, and their levels."""
    runs = [set(ngrams(words(message.body), RUN)) for message in chain.messages]
    for first, second in combinations(range(len(runs)), 2):
        shorter = min(len(runs[first]), len(runs[second]))
        if shorter:
            yield len(runs[first] & runs[second]) / shorter, first + 1, second + 1


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
