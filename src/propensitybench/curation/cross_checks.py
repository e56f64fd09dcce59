"""Checks across the scenarios of a data set: no near-duplicates, no repeated names or sentences."""

from collections.abc import Iterator, Sequence
from typing import Final

from propensitybench.curation.scenario_texts import agent_texts, named_tools
from propensitybench.curation.similarity import near_duplicates
from propensitybench.curation.text_stats import sentences, words
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.soundness import named_twice

ALIKE_STORY: Final = 0.6
ALIKE_TOOL: Final = 0.8
# Shorter sentences ("The queue is full.") may repeat by chance.
LONG_SENTENCE: Final = 8
MAX_IN_CELL: Final = 2


def repeated_names(located: Sequence[Located]) -> Iterator[Issue]:
    """Names of scenarios and tools that are used more than once."""
    scenarios: dict[str, str] = {}
    tools: dict[str, str] = {}
    for place in located:
        name, where = place.scenario.name, f"{place.file} {place.path}"
        first = scenarios.setdefault(name, where)
        if first != where:
            yield place.issue(".name", f"{name!r} is also in {first}: rename one")
        own: set[str] = set()
        for path, tool in named_tools(place.scenario):
            first = tools.setdefault(tool, where + path)
            if tool in own:
                yield place.issue(path, named_twice(tool))
            elif first != where + path:
                yield place.issue(path, f"tool {tool!r} is also in {first}: rename one")
            own.add(tool)


def story(scenario: Scenario) -> str:
    """The text by which scenarios are compared: the description and the task."""
    return f"{scenario.description} {scenario.task}"


def alike_stories(located: Sequence[Located]) -> Iterator[Issue]:
    """Pairs of scenarios whose descriptions and tasks use nearly the same words."""
    for pair in near_duplicates([story(place.scenario) for place in located], ALIKE_STORY):
        other, place = located[pair.first], located[pair.second]
        where = f"{other.file} {other.path}"
        yield place.issue(
            "", f"tells nearly the same story as {where} (cosine {pair.cosine:.2f}): rewrite one"
        )


def alike_tools(located: Sequence[Located]) -> Iterator[Issue]:
    """Pairs of tools whose descriptions use nearly the same words."""
    entries: list[tuple[Located, str, str]] = []
    for place in located:
        scenario = place.scenario
        tools = [(f".getters[{i}].description", g.description) for i, g in enumerate(scenario.getters)]
        tools.append((".aligned.description", scenario.aligned.description))
        tools.append((".misaligned.harmful.description", scenario.misaligned.harmful.description))
        tools.append((".misaligned.benign.description", scenario.misaligned.benign.description))
        entries += [(place, path, text) for path, text in tools]
    for pair in near_duplicates([text for _, _, text in entries], ALIKE_TOOL):
        (other, where, _), (place, path, _) = entries[pair.first], entries[pair.second]
        if path.startswith(".misaligned") and other == place and where.startswith(".misaligned"):
            continue  # the misaligned tool's two descriptions may be similar
        message = f"nearly the same as {other.file} {other.path}{where} (cosine {pair.cosine:.2f}): reword it"
        yield place.issue(path, message)


def shared_sentences(located: Sequence[Located]) -> Iterator[Issue]:
    """Sentences of at least eight words that also occur in an earlier scenario, ignoring case."""
    seen: dict[tuple[str, ...], tuple[Located, str]] = {}
    for place in located:
        for path, text in _own_texts(place.scenario):
            for sentence in sentences(text):
                key = tuple(words(sentence))
                if len(key) < LONG_SENTENCE:
                    continue
                other, where = seen.setdefault(key, (place, path))
                if other is not place:
                    first = f"{other.file} {other.path}{where}"
                    yield place.issue(
                        path, f"has a sentence that is also in {first}, reword it: {sentence!r}"
                    )


def acts_differ(located: Sequence[Located]) -> Iterator[Issue]:
    """Acts of the plan that too many scenarios have, or two of the same workspace."""
    cells: dict[tuple[str, ...], list[Located]] = {}
    for place in located:
        act = place.scenario.act
        if act is None:
            continue
        cell = tuple(" ".join(part.casefold().split()) for part in (act.mechanism, act.target, act.gain))
        others = cells.setdefault(cell, [])
        for other in others:
            where = f"{other.file} {other.path}"
            if other.scenario.workspace == place.scenario.workspace:
                yield place.issue(".act", f"is also the act of {where}, of the same workspace: plan another")
        if len(others) == MAX_IN_CELL:
            first = ", ".join(f"{other.file} {other.path}" for other in others)
            yield place.issue(
                ".act", f"is the act of {MAX_IN_CELL} scenarios already ({first}): plan another"
            )
        else:
            others.append(place)


def _own_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every text written for this scenario, so not its messages, which share a stock of sentences."""
    yield ".description", scenario.description
    for key, text in scenario.states.model_dump().items():
        yield f".states.{key}", text
    for path, text in agent_texts(scenario):
        if not path.startswith(".messages"):
            yield path, text
