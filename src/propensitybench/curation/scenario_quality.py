"""How varied and how readable a data set's texts are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final

import msgspec

from propensitybench.curation.cross_checks import story
from propensitybench.curation.scenario_texts import named_tools
from propensitybench.curation.similarity import mean_cosine, near_duplicates, vectors
from propensitybench.curation.text_stats import distinct, reading_grade, words
from propensitybench.scenarios.model import Scenario

RUNS: Final = (1, 2, 3)
PAIRS_SHOWN: Final = 5
# Pairs below this share almost nothing, and in a large set they are nearly all pairs.
MIN_COSINE: Final = 0.05


class Kind(msgspec.Struct, frozen=True):
    """One kind of text in a data set, such as all tasks.

    Attributes:
        texts: their number.
        once: share of texts that occur only once (0..1).
        words: fewest, median and most words.
        distinct: distinct-1, -2 and -3; decreases with the amount of text.
        reading_grade: Automated Readability Index of all texts together.
    """

    texts: int
    once: float
    words: tuple[int, float, int]
    distinct: tuple[float | None, ...]
    reading_grade: float | None


class Neighbours(msgspec.Struct, frozen=True):
    """Two similar scenarios, by TF-IDF cosine of description and task."""

    cosine: float
    first: str
    second: str
    first_task: str
    second_task: str


class ScenarioQuality(msgspec.Struct, frozen=True):
    """Statistics of a data set's texts, by kind, and the similarity of its scenarios.

    Attributes:
        mean_cosine: mean over all pairs of scenarios; None for a single scenario.
        nearest: the most similar pairs, most similar first.
    """

    kinds: Mapping[str, Kind]
    mean_cosine: float | None
    nearest: tuple[Neighbours, ...]


def scenario_quality(scenarios: Sequence[Scenario]) -> ScenarioQuality:
    """Measures the texts of some scenarios, except their messages."""
    texts = {
        "descriptions": [scenario.description for scenario in scenarios],
        "tasks": [scenario.task for scenario in scenarios],
        "policies": [f"{s.policy.role} {s.policy.duties} {s.policy.prohibitions}" for s in scenarios],
        "tool descriptions": [text for scenario in scenarios for text in _tool_descriptions(scenario)],
        "aligned errors": [error for scenario in scenarios for error in scenario.aligned.errors],
        "consequences": [scenario.misaligned.consequences for scenario in scenarios],
    }
    names = [name.replace("_", " ") for scenario in scenarios for _, name in named_tools(scenario)]
    kinds = {kind: measured(found) for kind, found in texts.items()}
    stories = [story(scenario) for scenario in scenarios]
    pairs = sorted(near_duplicates(stories, MIN_COSINE), key=lambda pair: -pair.cosine)[:PAIRS_SHOWN]
    return ScenarioQuality(
        kinds={**kinds, "tool names": measured(names)},
        mean_cosine=mean_cosine(vectors(stories)),
        nearest=tuple(
            Neighbours(cosine, one.name, other.name, one.task, other.task)
            for one, other, cosine in ((scenarios[p.first], scenarios[p.second], p.cosine) for p in pairs)
        ),
    )


def measured(texts: Sequence[str]) -> Kind:
    """Measures texts of one kind."""
    found = [words(text) for text in texts]
    lengths = sorted(map(len, found)) or [0]
    return Kind(
        texts=len(texts),
        once=_once(texts),
        words=(lengths[0], median(lengths), lengths[-1]),
        distinct=tuple(distinct(found, n) for n in RUNS),
        reading_grade=reading_grade(texts),
    )


def _once(texts: Sequence[str]) -> float:
    uses = Counter(texts)
    return sum(uses[text] == 1 for text in texts) / len(texts) if texts else 1.0


def _tool_descriptions(scenario: Scenario) -> Iterable[str]:
    yield from (getter.description for getter in scenario.getters)
    yield scenario.aligned.description
    yield scenario.misaligned.harmful.description
    yield scenario.misaligned.benign.description
