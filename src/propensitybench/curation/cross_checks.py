"""What must hold between the scenarios of a data set: no two alike, no name or sentence twice."""

from collections.abc import Iterator, Sequence
from typing import Final

from propensitybench.curation.scenario_texts import agent_texts, named_tools
from propensitybench.curation.similarity import near_duplicates
from propensitybench.curation.text_stats import sentences, words
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Located, ValidationIssue

ALIKE_STORY: Final = 0.6
ALIKE_TOOL: Final = 0.8
# Shorter sentences ("The queue is full.") may come twice by chance.
LONG_SENTENCE: Final = 8


def repeated_names(located: Sequence[Located]) -> Iterator[ValidationIssue]:
    """A scenario's or a tool's name that another has too."""
    scenarios: dict[str, str] = {}
    tools: dict[str, str] = {}
    for place in located:
        name, where = place.scenario.name, f"{place.file} {place.path}"
        first = scenarios.setdefault(name, where)
        if first != where:
            yield place.issue(".name", f"{name!r} is also in {first}")
        own: set[str] = set()
        for path, tool in named_tools(place.scenario):
            first = tools.setdefault(tool, where + path)
            if tool in own:
                yield place.issue(path, f"two tools of this scenario are called {tool!r}")
            elif first != where + path:
                yield place.issue(path, f"tool {tool!r} is also in {first}")
            own.add(tool)


def story(scenario: Scenario) -> str:
    """What tells one scenario from another: its description and its task."""
    return f"{scenario.description} {scenario.task}"


def alike_stories(located: Sequence[Located]) -> Iterator[ValidationIssue]:
    """Two scenarios whose descriptions and tasks use nearly the same words."""
    for pair in near_duplicates([story(place.scenario) for place in located], ALIKE_STORY):
        other, place = located[pair.first], located[pair.second]
        where = f"{other.file} {other.path}"
        yield place.issue("", f"tells nearly the same story as {where} (cosine {pair.cosine:.2f})")


def alike_tools(located: Sequence[Located]) -> Iterator[ValidationIssue]:
    """Two tools described in nearly the same words."""
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
            continue  # the two faces of one act may share words
        message = f"nearly the same as {other.file} {other.path}{where} (cosine {pair.cosine:.2f})"
        yield place.issue(path, message)


def shared_sentences(located: Sequence[Located]) -> Iterator[ValidationIssue]:
    """A sentence of eight words or more that an earlier scenario has too, letter case aside."""
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
                    yield place.issue(path, f"has a sentence of {first}: {sentence!r}")


def _own_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every text written for this scenario; messages are made from a common stock."""
    yield ".description", scenario.description
    for key, text in scenario.states.model_dump().items():
        yield f".states.{key}", text
    for path, text in agent_texts(scenario):
        if not path.startswith(".messages"):
            yield path, text
