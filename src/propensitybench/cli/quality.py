"""``propensitybench data stats --quality``: variety and readability of a data set's texts."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Final

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import name_of, safe
from propensitybench.curation.scenario_quality import Kind, ScenarioQuality, scenario_quality
from propensitybench.curation.storyline_quality import StorylineQuality, storyline_quality
from propensitybench.curation.variety import limits, variety
from propensitybench.generation.embeddings import ALIKE, Embedder, nearest_in_meaning
from propensitybench.metrics.display import NOTHING, percent
from propensitybench.scenarios import Dataset
from propensitybench.scenarios.model import Scenario

WIDTH: Final = 100
SHOWN: Final = 5


class Against(msgspec.Struct, frozen=True):
    """A measure of the whole set beside its limit; ``within`` is None in sets too small to be held to it."""

    measures: str
    value: float | None
    example: str
    limit: str
    within: bool | None


class Quality(msgspec.Struct, frozen=True):
    """Quality of a data set's scenarios and storylines."""

    source: str
    scenarios: ScenarioQuality
    storylines: StorylineQuality
    variety: Mapping[str, Against]


def measure(dataset: Dataset, seed: int, embeddings: str = "") -> Quality:
    """The quality of a data set, with the numbers that the messages of a run with this seed have.

    With ``embeddings``, a model for `Embedder`, the nearest scenarios are also found by meaning.
    """
    embedder = Embedder(embeddings) if embeddings else None
    scenarios, storylines = dataset.scenarios, dataset.storylines
    rows = _against_limits(dataset)
    if embedder:
        rows["nearest_in_meaning"] = _in_meaning(scenarios, embedder)
    return Quality(
        name_of(dataset.source),
        scenario_quality(scenarios),
        storyline_quality(storylines, scenarios, seed),
        rows,
    )


def _in_meaning(scenarios: Sequence[Scenario], embedder: Embedder) -> Against:
    pair = nearest_in_meaning(scenarios, embedder)
    measures, limit = (
        "similarity of the two nearest scenarios in meaning (cosine of embeddings)",
        f"below {ALIKE}",
    )
    if pair is None:
        return Against(measures, None, "", limit, None)
    example = f"{scenarios[pair.first].name} and {scenarios[pair.second].name}"
    return Against(measures, pair.cosine, example, limit, pair.cosine < ALIKE)


def _against_limits(dataset: Dataset) -> dict[str, Against]:
    measured, bounds = variety(dataset.scenarios, dataset.storylines), limits()
    held = len(dataset.scenarios) >= bounds.fewest_scenarios
    return {
        name: Against(
            limit.measures,
            measured[name].value,
            measured[name].example,
            str(limit),
            limit.holds(measured[name].value) if held else None,
        )
        for name, limit in bounds.by_name.items()
    }


def print_quality(quality: Quality) -> None:
    """Prints the quality."""
    scenarios, storylines = quality.scenarios, quality.storylines
    tables.show(_kinds({**scenarios.kinds, **storylines.kinds}))
    print("unique: percent of texts that occur once. grade: Automated Readability Index (US school grade).")
    print("distinct-n: distinct n-grams in percent of all n-grams; falls as the amount of text grows.\n")
    tables.show(_variety(quality.variety))
    if any(row.within is None for row in quality.variety.values()):
        print(f"Limits (limits.json) hold for sets of at least {limits().fewest_scenarios} scenarios.\n")
    print("Mean TF-IDF cosine similarity:")
    print(f"  {_share(scenarios.mean_cosine)}  two scenarios, by description and task")
    print(f"  {_share(storylines.within_chain)}  two messages of a storyline")
    print(f"  {_share(storylines.between)}  two storylines of a dimension")
    for file in storylines.unfitted:
        print(f"\n{safe(file)} suits no scenario of this set.")
    print(f"\nSentences in more than one storyline: {len(storylines.shared)}")
    for shared in storylines.shared[:SHOWN]:
        print(fill(safe(shared.sentence), WIDTH, initial_indent="    - ", subsequent_indent="      "))
    if storylines.nearest:
        print("\nNearest storylines:")
    for alike in storylines.nearest:
        print(f"  {_share(alike.cosine)}  {safe(alike.first)} and {safe(alike.second)}")
    print("\nNearest neighbours by description and task:")
    for pair in scenarios.nearest:
        print(f"\n  {_share(pair.cosine)}  {safe(pair.first)} and {safe(pair.second)}")
        for task in (pair.first_task, pair.second_task):
            print(fill(safe(task), WIDTH, initial_indent="    - ", subsequent_indent="      "))


def _variety(rows: Mapping[str, Against]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Variety")
    table.add_column("measure")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("most frequent, or nearest")
    for row in rows.values():
        note = "" if row.within is not False else "  exceeded"
        table.add_row(row.measures, _share(row.value).strip(), row.limit + note, safe(row.example))
    return table


def _kinds(kinds: Mapping[str, Kind]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Texts")
    table.add_column("kind", no_wrap=True)
    for title in ("texts", "unique", "words (min, median, max)", "distinct-1, -2, -3", "grade"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, kind in kinds.items():
        low, middle, high = kind.words
        runs = " ".join(f"{percent(share):>5}" for share in kind.distinct)
        grade = NOTHING if kind.reading_grade is None else f"{kind.reading_grade:.1f}"
        words = f"{low:3} {middle:5g} {high:3}"
        table.add_row(name, f"{kind.texts:,}", percent(kind.once), words, runs, grade)
    return table


def _share(value: float | None) -> str:
    return f"{NOTHING:>5}" if value is None else f"{value:.3f}"
