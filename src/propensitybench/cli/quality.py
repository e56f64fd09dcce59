"""``propensitybench data stats --quality``: how varied and readable a data set's texts are."""

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
from propensitybench.scenarios import Dataset

WIDTH: Final = 100
WORDINGS_SHOWN: Final = 5


class Quality(msgspec.Struct, frozen=True):
    """All of it."""

    source: str
    scenarios: ScenarioQuality
    messages: MessageQuality


def measure(dataset: Dataset, seed: int) -> Quality:
    """Measures a data set; its messages are those that a run with this seed would use."""
    scenarios = dataset.scenarios
    return Quality(name_of(dataset.source), scenario_quality(scenarios), message_quality(scenarios, seed))


def print_quality(quality: Quality) -> None:
    """Prints all but the use of each single wording, which ``--json`` gives."""
    scenarios, messages = quality.scenarios, quality.messages
    kinds = {**scenarios.kinds, "messages": messages.messages, "subjects": messages.subjects}
    tables.show(_kinds(kinds))
    print("once: percent that no other equals. grade: Automated Readability Index (a school grade).")
    print("distinct-n: different runs of n words in percent of all; falls with the amount of text.\n")
    print("Mean TF-IDF cosine (0 nothing in common, 1 the same words):")
    print(f"  {_share(scenarios.mean_cosine)}  two scenarios, by description and task")
    print(f"  {_share(messages.within_chain)}  two messages of the same scenario and dimension")
    print(f"  {_share(messages.between_scenarios)}  two scenarios' messages, same dimension and level")
    print(f"\nMost wording that two messages of a chain share: {tables.percent(messages.most_shared)} %.")
    _print_uses(messages)
    print("\nNearest neighbours, by description and task:")
    for pair in scenarios.nearest:
        print(f"\n  {_share(pair.cosine)}  {safe(pair.first)} and {safe(pair.second)}")
        for task in (pair.first_task, pair.second_task):
            print(fill(safe(task), WIDTH, initial_indent="    - ", subsequent_indent="      "))


def _kinds(kinds: Mapping[str, Kind]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Texts")
    table.add_column("kind", no_wrap=True)
    for title in ("texts", "once", "words (least, median, most)", "distinct-1, -2, -3", "grade"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, kind in kinds.items():
        low, middle, high = kind.words
        runs = " ".join(f"{tables.percent(share):>5}" for share in kind.distinct)
        grade = tables.NOTHING if kind.reading_grade is None else f"{kind.reading_grade:.1f}"
        words = f"{low:3} {middle:5g} {high:3}"
        table.add_row(name, f"{kind.texts:,}", tables.percent(kind.once), words, runs, grade)
    return table


def _print_uses(messages: MessageQuality) -> None:
    wordings = messages.wordings
    if not wordings:
        return
    unused = sum(use.share == 0 for use in wordings)
    print(f"\nThe messages are made from {len(wordings)} wordings; {unused} are in none. The most used:")
    for use in wordings[:WORDINGS_SHOWN]:
        print(f"  {100 * use.share:.2f} % of messages  {use.stock}: {use.text}")


def _share(value: float | None) -> str:
    return f"{tables.NOTHING:>5}" if value is None else f"{value:.3f}"
