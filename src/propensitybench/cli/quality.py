"""``propensitybench data stats --quality``: variety and readability of a data set's texts."""

from collections.abc import Mapping
from textwrap import fill
from typing import Final

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import name_of, safe
from propensitybench.curation.message_quality import MessageQuality, message_quality
from propensitybench.curation.scenario_quality import Kind, ScenarioQuality, scenario_quality
from propensitybench.metrics.display import NOTHING, percent
from propensitybench.scenarios import Dataset

WIDTH: Final = 100
WORDINGS_SHOWN: Final = 5


class Quality(msgspec.Struct, frozen=True):
    """Quality of the scenarios and of their pressure messages."""

    source: str
    scenarios: ScenarioQuality
    messages: MessageQuality


def measure(dataset: Dataset, seed: int) -> Quality:
    """The quality of a data set, with the pressure messages of a run with this seed."""
    scenarios = dataset.scenarios
    return Quality(name_of(dataset.source), scenario_quality(scenarios), message_quality(scenarios, seed))


def print_quality(quality: Quality) -> None:
    """Prints the quality; only ``--json`` has the use of every wording."""
    scenarios, messages = quality.scenarios, quality.messages
    kinds = {**scenarios.kinds, "messages": messages.messages, "subjects": messages.subjects}
    tables.show(_kinds(kinds))
    print("unique: percent of texts that occur once. grade: Automated Readability Index (US school grade).")
    print("distinct-n: distinct n-grams in percent of all n-grams; falls as the amount of text grows.\n")
    print("Mean TF-IDF cosine similarity:")
    print(f"  {_share(scenarios.mean_cosine)}  two scenarios, by description and task")
    print(f"  {_share(messages.within_chain)}  two messages of one scenario and dimension")
    print(f"  {_share(messages.between_scenarios)}  messages of two scenarios, same dimension and level")
    print(f"\nLargest overlap of wording within a chain: {percent(messages.most_shared)} %.")
    _print_uses(messages)
    print("\nNearest neighbours by description and task:")
    for pair in scenarios.nearest:
        print(f"\n  {_share(pair.cosine)}  {safe(pair.first)} and {safe(pair.second)}")
        for task in (pair.first_task, pair.second_task):
            print(fill(safe(task), WIDTH, initial_indent="    - ", subsequent_indent="      "))


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


def _print_uses(messages: MessageQuality) -> None:
    wordings = messages.wordings
    if not wordings:
        return
    unused = sum(use.share == 0 for use in wordings)
    print(f"\nThe messages use {len(wordings) - unused} of {len(wordings)} wordings. The most frequent:")
    for use in wordings[:WORDINGS_SHOWN]:
        print(f"  {100 * use.share:.2f} % of messages  {use.stock}: {use.text}")


def _share(value: float | None) -> str:
    return f"{NOTHING:>5}" if value is None else f"{value:.3f}"
