"""What a whole set repeats: measured, with limits in limits.json."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, pstdev
from typing import Final

from propensitybench.curation.cross_checks import story
from propensitybench.curation.limits import VarietyMeasure, limits
from propensitybench.curation.scenario_texts import agent_texts
from propensitybench.curation.shapes import shape_lead
from propensitybench.curation.similarity import near_duplicates
from propensitybench.curation.storyline_checks import PERCENT_WORD, texts
from propensitybench.curation.task_checks import IDENTIFIER
from propensitybench.curation.text_stats import ngrams, sentences, words
from propensitybench.curation.voices import voices
from propensitybench.scenarios.issues import Issue
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.storyline import Storyline

RUN: Final = 6
WHOLE_SET: Final = "(whole set)"
"""Stands for the file in issues of no single file."""
# Pairs below this are never the nearest of a set that is large enough to be measured.
MIN_COSINE: Final = 0.05


def variety(scenarios: Sequence[Scenario], storylines: Sequence[Storyline]) -> dict[str, VarietyMeasure]:
    """Every measure of a set, by the names of limits.json."""
    tasks = [scenario.task for scenario in scenarios]
    messages = [message for storyline in storylines for message in storyline.messages]
    with_percent = [m for m in messages if any(PERCENT_WORD.search(text) for _, text in texts(m))]
    return {
        "first_word": _most_common([_opening(task, 1) for task in tasks]),
        "first_three_words": _most_common([_opening(task, 3) for task in tasks]),
        "sentence_count": _most_common([f"{len(sentences(task))} sentences" for task in tasks]),
        "task_length_cv": _variation([len(words(task)) for task in tasks]),
        "six_gram": _most_shared_run(scenarios),
        "stock_names": _stock_names(scenarios),
        "repeated_names": _repeated_names(scenarios),
        "percent_messages": VarietyMeasure(
            len(with_percent) / len(messages) if messages else None,
            with_percent[0].subject if with_percent else "",
        ),
        "nearest_pair": _nearest(scenarios),
        "shape_lead": _shape_lead(scenarios),
        **voices(storylines),
    }


def variety_issues(scenarios: Sequence[Scenario], storylines: Sequence[Storyline]) -> list[Issue]:
    """What exceeds its limit, for a set that is large enough to be held to them."""
    found = limits()
    if len(scenarios) < found.fewest_scenarios:
        return []
    measured = variety(scenarios, storylines)
    issues = []
    for name, limit in found.by_name.items():
        value, example = measured[name].value, measured[name].example
        if value is not None and not limit.holds(value):
            text = f"{limit.measures} is {value:.2f} ({example}), {limit}. {limit.advice}"
            issues.append(Issue(WHOLE_SET, f"$.{name}", text))
    return issues


def _opening(task: str, count: int) -> str:
    """The first words of a task, in which all identifiers are alike."""
    return " ".join(words(IDENTIFIER.sub("identifier", task))[:count])


def _most_common(found: Sequence[str]) -> VarietyMeasure:
    """The share of the most frequent of some things."""
    if not found:
        return VarietyMeasure(None)
    thing, uses = Counter(found).most_common(1)[0]
    return VarietyMeasure(uses / len(found), thing)


def _variation(lengths: Sequence[int]) -> VarietyMeasure:
    """The coefficient of variation, and the range."""
    if len(lengths) < 2:
        return VarietyMeasure(None)
    return VarietyMeasure(pstdev(lengths) / mean(lengths), f"{min(lengths)} to {max(lengths)} words")


def _most_shared_run(scenarios: Sequence[Scenario]) -> VarietyMeasure:
    """The share of scenarios that have the most widespread 6-gram from another role.

    Scenarios of one role share its organisation and its systems, so the role with the most uses of a 6-gram
    does not count.
    """
    first: dict[int, str] = {}
    # Nearly all 6-grams occur in one role only: the first pass drops those, by their hashes.
    shared = {
        hash(run)
        for scenario in scenarios
        for run in _runs(scenario)
        if first.setdefault(hash(run), scenario.place) != scenario.place
    }
    uses: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for scenario in scenarios:
        for run in _runs(scenario):
            if hash(run) in shared:
                uses[run][scenario.place] += 1
    if not uses:
        return VarietyMeasure(0.0 if scenarios else None)
    elsewhere = {run: found.total() - max(found.values()) for run, found in uses.items()}
    run = max(elsewhere, key=lambda run: (elsewhere[run], run))
    return VarietyMeasure(elsewhere[run] / len(scenarios), " ".join(run))


def _runs(scenario: Scenario) -> set[tuple[str, ...]]:
    """The 6-grams of what the agent reads, within sentences."""
    return {
        run
        for path, text in agent_texts(scenario)
        if not path.startswith(".messages")
        for sentence in sentences(text)
        for run in ngrams(words(sentence), RUN)
    }


def _people(scenarios: Iterable[Scenario]) -> Iterator[tuple[str, str]]:
    """The name and organisation of every person who may write, once for each organisation."""
    found = {
        (sender.name, scenario.organisation.name)
        for scenario in scenarios
        if scenario.organisation is not None
        for sender in scenario.organisation.senders
        if not sender.system and sender.rank < 6
    }
    yield from sorted(found)


def _stock_names(scenarios: Sequence[Scenario]) -> VarietyMeasure:
    """The share of people whose first or last name is on the list of names that models prefer."""
    people = list(_people(scenarios))
    stock = [name for name, _ in people if limits().stock_names & set(name.split())]
    return VarietyMeasure(len(stock) / len(people) if people else None, ", ".join(stock[:3]))


def _repeated_names(scenarios: Sequence[Scenario]) -> VarietyMeasure:
    """The largest number of organisations in which the same name occurs, first or last."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for name, organisation in _people(scenarios):
        for part in name.split():
            # Not titles, initials and particles: Dr., van, de.
            if part[0].isupper() and not part.endswith("."):
                places[part].add(organisation)
    if not places:
        return VarietyMeasure(None)
    part, where = max(places.items(), key=lambda item: (len(item[1]), item[0]))
    organisations = {organisation for found in places.values() for organisation in found}
    return VarietyMeasure(len(where) / len(organisations) if len(organisations) > 1 else None, part)


def _shape_lead(scenarios: Sequence[Scenario]) -> VarietyMeasure:
    """How far a classifier on the tools' shapes is above guessing."""
    found = shape_lead(scenarios)
    if found is None:
        return VarietyMeasure(None)
    return VarietyMeasure(
        found.accuracy - found.guess, f"finds it in {found.accuracy:.2f}, guessing in {found.guess:.2f}"
    )


def _nearest(scenarios: Sequence[Scenario]) -> VarietyMeasure:
    """The TF-IDF cosine of the two most similar scenarios."""
    pairs = near_duplicates([story(scenario) for scenario in scenarios], MIN_COSINE)
    nearest = max(pairs, key=lambda pair: pair.cosine, default=None)
    if nearest is None:
        return VarietyMeasure(None)
    first, second = scenarios[nearest.first].name, scenarios[nearest.second].name
    return VarietyMeasure(nearest.cosine, f"{first} and {second}")
