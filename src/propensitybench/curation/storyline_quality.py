"""How varied and how long a data set's messages are, and how alike its storylines."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Final

import msgspec

from propensitybench.curation.fitted_checks import suiting
from propensitybench.curation.scenario_quality import Kind, measured
from propensitybench.curation.similarity import mean_cosine, near_duplicates, vectors
from propensitybench.curation.text_stats import sentences, words
from propensitybench.pressure.fitting import SLOT, fit
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.storyline import NEUTRAL, Storyline

# Shorter sentences ("It is still open.") may repeat by chance.
LONG_SENTENCE: Final = 6
SHOWN: Final = 5


class AlikeStorylines(msgspec.Struct, frozen=True):
    """Two storylines and the TF-IDF cosine of their texts."""

    cosine: float
    first: str
    second: str


class SharedSentence(msgspec.Struct, frozen=True):
    """A sentence of at least six words that several storylines have."""

    sentence: str
    storylines: tuple[str, ...]


class StorylineQuality(msgspec.Struct, frozen=True):
    """Statistics of a data set's storylines.

    Attributes:
        storylines: their number by dimension.
        kinds: ``messages`` and ``subjects``, fitted with the first scenario that each storyline suits.
        unfitted: storylines that suit no scenario of the set, by file.
        within_chain: mean cosine of two messages of a chain; None without chains.
        between: mean cosine of the texts of two storylines of a dimension; None without such a pair.
        nearest: the most similar storylines, most similar first.
        shared: the sentences in more than one storyline.
    """

    storylines: dict[str, int]
    kinds: dict[str, Kind]
    unfitted: tuple[str, ...]
    within_chain: float | None
    between: float | None
    nearest: tuple[AlikeStorylines, ...]
    shared: tuple[SharedSentence, ...]


def storyline_quality(
    storylines: Sequence[Storyline], scenarios: Sequence[Scenario], seed: int
) -> StorylineQuality:
    """Measures storylines and the messages that they make.

    Args:
        storylines: the storylines of a data set.
        scenarios: its scenarios.
        seed: of the numbers in the messages.
    """
    chains = {
        storyline.file: fit(storyline, suits[0], seed)
        for storyline in storylines
        if (suits := suiting(storyline, scenarios))
    }
    by_dimension: defaultdict[str, list[Storyline]] = defaultdict(list)
    for storyline in storylines:
        by_dimension[storyline.dimension].append(storyline)
    written = [_written(storyline) for storyline in storylines]
    pairs = sorted(near_duplicates(written, 0.0), key=lambda pair: -pair.cosine)[:SHOWN]
    return StorylineQuality(
        storylines={dimension: len(found) for dimension, found in sorted(by_dimension.items())},
        kinds={
            "messages": measured([message.body for chain in chains.values() for message in chain]),
            "subjects": measured([message.subject for chain in chains.values() for message in chain]),
        },
        unfitted=tuple(storyline.file for storyline in storylines if storyline.file not in chains),
        within_chain=_mean_of(mean_cosine(vectors([m.body for m in chain])) for chain in chains.values()),
        between=_mean_of(
            mean_cosine(vectors([_written(storyline) for storyline in found]))
            for dimension, found in sorted(by_dimension.items())
            if dimension != NEUTRAL
        ),
        nearest=tuple(
            AlikeStorylines(pair.cosine, storylines[pair.first].file, storylines[pair.second].file)
            for pair in pairs
        ),
        shared=shared_sentences(storylines),
    )


def shared_sentences(storylines: Sequence[Storyline]) -> tuple[SharedSentence, ...]:
    """Sentences that more than one storyline has, ignoring case and the names of slots."""
    places: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    texts: dict[tuple[str, ...], str] = {}
    for storyline in storylines:
        for message in storyline.messages:
            for line in f"{message.deadline}\n{message.body}".split("\n"):
                for sentence in sentences(line):
                    key = tuple(words(SLOT.sub("it", sentence)))
                    if len(key) >= LONG_SENTENCE and storyline.file not in places[key]:
                        places[key].append(storyline.file)
                        texts.setdefault(key, sentence)
    return tuple(SharedSentence(texts[key], tuple(found)) for key, found in places.items() if len(found) > 1)


def _written(storyline: Storyline) -> str:
    """The text of a storyline without slots, which all storylines have."""
    return SLOT.sub(" ", " ".join(f"{message.deadline} {message.body}" for message in storyline.messages))


def _mean_of(values: Iterator[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return mean(found) if found else None
