"""How varied and how readable a data set's texts are, and how alike its scenarios and storylines.

    .venv/bin/python perf/text_quality.py                         the built-in data, as in docs/dataset.md
    .venv/bin/python perf/text_quality.py --data DIR              another data set
    .venv/bin/python perf/text_quality.py --embeddings MODEL      also the two nearest scenarios in meaning

MODEL is a model2vec model: a folder, or a name on the Hugging Face Hub. Takes four seconds.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from textwrap import fill
from typing import Final, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.data import print_quality
from propensitybench.curation.cross_checks import story
from propensitybench.curation.scenario_texts import named_tools
from propensitybench.curation.similarity import SimilarPair, alike_pairs, near_duplicates, vectors
from propensitybench.curation.text_stats import ngrams, sentences, words
from propensitybench.generation.embeddings import ALIKE, Embedder
from propensitybench.presentation.formats import NOTHING, percent
from propensitybench.pressure import suitable
from propensitybench.pressure.fitting import SLOT, fit
from propensitybench.scenarios import Dataset, Scenario, read_dataset
from propensitybench.scenarios.model import PressureMessage
from propensitybench.scenarios.storyline import NEUTRAL, Storyline

WIDTH: Final = 100
SHOWN: Final = 5
RUNS: Final = (1, 2, 3)
# Pairs below this share almost nothing, and in a large set they are nearly all pairs.
MIN_COSINE: Final = 0.05
# Shorter sentences ("It is still open.") may repeat by chance.
LONG_SENTENCE: Final = 6
Chains = dict[str, Sequence[PressureMessage]]


class Kind(NamedTuple):
    """One kind of text in a data set, such as all tasks.

    Attributes:
        texts: their number.
        once: share of texts that occur only once (0..1).
        words: fewest, median and most words.
        distinct: distinct-1, -2 and -3; decreases with the amount of text.
        grade: Automated Readability Index of all texts together.
    """

    texts: int
    once: float
    words: tuple[int, float, int]
    distinct: tuple[float | None, ...]
    grade: float | None


def measured(texts: Sequence[str]) -> Kind:
    """Measures texts of one kind."""
    found = [words(text) for text in texts]
    lengths = sorted(map(len, found)) or [0]
    uses = Counter(texts)
    return Kind(
        texts=len(texts),
        once=sum(uses[text] == 1 for text in texts) / len(texts) if texts else 1.0,
        words=(lengths[0], median(lengths), lengths[-1]),
        distinct=tuple(distinct(found, n) for n in RUNS),
        grade=reading_grade(texts),
    )


def distinct(texts: Sequence[Sequence[str]], n: int) -> float | None:
    """Distinct-n of tokenised texts: the share of n-grams that are distinct (0..1); None without n-grams.

    Li et al. 2016, "A diversity-promoting objective function for neural conversation models". It decreases
    with the amount of text, so compare it only between collections of similar size.
    """
    uses = Counter(run for text in texts for run in ngrams(text, n))
    return len(uses) / uses.total() if uses else None


def reading_grade(texts: Sequence[str]) -> float | None:
    """Automated Readability Index: the US school grade needed to read the texts.

    4.71 x characters per word + 0.5 x words per sentence - 21.43 (Senter and Smith 1967). None without words.
    """
    found = [word for text in texts for word in words(text)]
    if not found:
        return None
    ends = sum(len(sentences(text)) for text in texts)
    return 4.71 * sum(map(len, found)) / len(found) + 0.5 * len(found) / ends - 21.43


def mean_cosine(texts: Sequence[str]) -> float | None:
    """The mean TF-IDF cosine over all pairs of texts; None for fewer than two.

    The squared length of the sum of all rows is the sum of all pairwise products, including each row with
    itself.
    """
    rows = vectors(texts)
    n = rows.shape[0]
    if n < 2:
        return None
    total = rows.sum(axis=0)
    return float((total @ total - rows.multiply(rows).sum()) / (n * (n - 1)))


def kinds(scenarios: Sequence[Scenario], chains: Chains) -> dict[str, Kind]:
    """Every kind of text."""
    messages = [message for chain in chains.values() for message in chain]
    texts = {
        "descriptions": [one.description for one in scenarios],
        "tasks": [one.task for one in scenarios],
        "policies": [f"{s.policy.role} {s.policy.duties} {s.policy.prohibitions}" for s in scenarios],
        "tool descriptions": [text for one in scenarios for text in _tool_descriptions(one)],
        "aligned errors": [error for one in scenarios for error in one.aligned.errors],
        "consequences": [one.misaligned.consequences for one in scenarios],
        "tool names": [name.replace("_", " ") for one in scenarios for _, name in named_tools(one)],
        "messages": [message.body for message in messages],
        "subjects": [message.subject for message in messages],
    }
    return {kind: measured(found) for kind, found in texts.items()}


def _tool_descriptions(scenario: Scenario) -> Iterator[str]:
    yield from (getter.description for getter in scenario.getters)
    yield scenario.aligned.description
    yield scenario.misaligned.harmful.description
    yield scenario.misaligned.benign.description


def chains_of(dataset: Dataset, seed: int) -> Chains:
    """Each storyline's messages, by its file, as fitted to the first scenario that it suits."""
    return {
        one.file: fit(one, suits[0], seed)
        for one in dataset.storylines
        if (suits := [s for s in dataset.scenarios if suitable([one], s, one.dimension, one.ladder)])
    }


def within_chains(chains: Chains) -> float | None:
    """The mean cosine of two messages of a storyline."""
    return _mean_of(mean_cosine([message.body for message in chain]) for chain in chains.values())


def between_storylines(storylines: Sequence[Storyline]) -> float | None:
    """The mean cosine of the texts of two storylines of a dimension."""
    by_dimension: defaultdict[str, list[str]] = defaultdict(list)
    for storyline in storylines:
        if storyline.dimension != NEUTRAL:
            by_dimension[storyline.dimension].append(_written(storyline))
    return _mean_of(mean_cosine(texts) for texts in by_dimension.values())


def nearest(texts: Sequence[str], least: float) -> list[SimilarPair]:
    """The most similar pairs by TF-IDF cosine, the most similar first."""
    return sorted(near_duplicates(texts, least), key=lambda pair: -pair.cosine)[:SHOWN]


def shared_sentences(storylines: Sequence[Storyline]) -> dict[str, tuple[str, ...]]:
    """Sentences in more than one storyline, with their files, ignoring case and the names of slots."""
    places: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    texts: dict[tuple[str, ...], str] = {}
    for storyline in storylines:
        lines = (line for one in storyline.messages for line in f"{one.deadline}\n{one.body}".split("\n"))
        for sentence in (sentence for line in lines for sentence in sentences(line)):
            key = tuple(words(SLOT.sub("it", sentence)))
            if len(key) >= LONG_SENTENCE:
                places[key][storyline.file] = None
                texts.setdefault(key, sentence)
    return {texts[key]: tuple(files) for key, files in places.items() if len(files) > 1}


def nearest_in_meaning(scenarios: Sequence[Scenario], embedder: Embedder) -> SimilarPair | None:
    """The two scenarios whose descriptions and tasks mean most nearly the same; None for fewer than two."""
    rows = embedder.rows([story(scenario) for scenario in scenarios])
    return max(alike_pairs(rows, -1.0), key=lambda pair: pair.cosine, default=None)


def _written(storyline: Storyline) -> str:
    """The text of a storyline without slots, which all storylines have."""
    return SLOT.sub(" ", " ".join(f"{message.deadline} {message.body}" for message in storyline.messages))


def _mean_of(values: Iterator[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return mean(found) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="of the numbers in the messages")
    parser.add_argument("--embeddings", metavar="MODEL")
    given = parser.parse_args()
    dataset = read_dataset(given.data)
    chains = chains_of(dataset, given.seed)
    tables.show(_kinds(kinds(dataset.scenarios, chains)))
    print("unique: percent of texts that occur once. grade: Automated Readability Index (US school grade).")
    print("distinct-n: distinct n-grams in percent of all n-grams; falls as the amount of text grows.\n")
    print_quality(dataset)
    if given.embeddings:
        _print_meaning(dataset.scenarios, Embedder(given.embeddings))
    _print_similarity(dataset, chains)


def _print_meaning(scenarios: Sequence[Scenario], embedder: Embedder) -> None:
    pair = nearest_in_meaning(scenarios, embedder)
    if pair is not None:
        names = f"{scenarios[pair.first].name} and {scenarios[pair.second].name}"
        print(f"Nearest in meaning (cosine of embeddings, below {ALIKE}): {pair.cosine:.3f}  {names}\n")


def _print_similarity(dataset: Dataset, chains: Chains) -> None:
    scenarios, storylines = dataset.scenarios, dataset.storylines
    stories = [story(scenario) for scenario in scenarios]
    print("Mean TF-IDF cosine similarity:")
    print(f"  {_share(mean_cosine(stories))}  two scenarios, by description and task")
    print(f"  {_share(within_chains(chains))}  two messages of a storyline")
    print(f"  {_share(between_storylines(storylines))}  two storylines of a dimension")
    for storyline in storylines:
        if storyline.file not in chains:
            print(f"\n{storyline.file} suits no scenario of this set.")
    shared = list(shared_sentences(storylines))
    print(f"\nSentences in more than one storyline: {len(shared)}")
    for sentence in shared[:SHOWN]:
        _print_item(sentence)
    print("\nNearest storylines:")
    for pair in nearest([_written(storyline) for storyline in storylines], 0.0):
        print(f"  {_share(pair.cosine)}  {storylines[pair.first].file} and {storylines[pair.second].file}")
    print("\nNearest neighbours by description and task:")
    for pair in nearest(stories, MIN_COSINE):
        first, second = scenarios[pair.first], scenarios[pair.second]
        print(f"\n  {_share(pair.cosine)}  {first.name} and {second.name}")
        _print_item(first.task)
        _print_item(second.task)


def _print_item(text: str) -> None:
    print(fill(text, WIDTH, initial_indent="    - ", subsequent_indent="      "))


def _kinds(found: dict[str, Kind]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Texts")
    table.add_column("kind", no_wrap=True)
    for title in ("texts", "unique", "words (min, median, max)", "distinct-1, -2, -3", "grade"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, kind in found.items():
        low, middle, high = kind.words
        runs = " ".join(f"{percent(share):>5}" for share in kind.distinct)
        grade = NOTHING if kind.grade is None else f"{kind.grade:.1f}"
        table.add_row(
            name, f"{kind.texts:,}", percent(kind.once), f"{low:3} {middle:5g} {high:3}", runs, grade
        )
    return table


def _share(value: float | None) -> str:
    return f"{NOTHING:>5}" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
