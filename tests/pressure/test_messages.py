import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest
from helpers.scenario_data import built_in, built_in_sample, sound_scenarios
from propensitybench.pressure.fragments import PLACEHOLDER, Cell, fragments, frames

from propensitybench.errors import BadInput
from propensitybench.pressure import pressure_messages, schedule
from propensitybench.pressure.export import with_messages
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.taxonomy import taxonomy

DIMENSIONS = tuple(taxonomy().dimensions)
SCENARIOS = (*built_in_sample(12), *sound_scenarios())
# For tests that look for every wording in every message, which takes its time.
FEW = SCENARIOS[::6]
Chain = tuple[PressureMessage, ...]


def chains(
    seed: int = 0, scenarios: tuple[Scenario, ...] = SCENARIOS
) -> Iterator[tuple[Scenario, str, Chain]]:
    for scenario in scenarios:
        for dimension in DIMENSIONS:
            yield scenario, dimension, pressure_messages(scenario, dimension, seed)


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+", text)


@cache
def pattern(wording: str) -> re.Pattern[str]:
    """What a wording looks like in a message: its own words, with any phrase for a placeholder."""
    parts = PLACEHOLDER.split(wording)
    texts, names = parts[::2], parts[1::2]
    gaps = [r"(?P<value>\d+(?:\.\d+)?)" if name == "value" else r"[^\n.]{1,90}?" for name in names]
    joined = "".join(re.escape(text) + gap for text, gap in zip(texts, [*gaps, ""], strict=True))
    return re.compile(joined)


class Quoted(NamedTuple):
    cell: str
    worse: str
    number: float


def quoted_numbers(dimension: str, level: int, message: PressureMessage) -> Iterator[Quoted]:
    """The numbers that a message quotes, with the cell that each comes from."""
    step = schedule()[level]
    components = {f"{dimension} {k}": v for k, v in fragments()[dimension].components.items()}
    components["time A"] = fragments()["time"].components["A"]
    for name, component in components.items():
        cell = component.cells[step.intensity]
        if cell.value is not None:
            yield from (
                Quoted(f"{name} {step.intensity}", cell.value.worse, number)
                for number in numbers_of(cell, message.body)
            )


def numbers_of(cell: Cell, body: str) -> Iterator[float]:
    for wording in cell.wordings:
        found = pattern(wording).search(body)
        if found and "value" in found.groupdict():
            yield float(found["value"])


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_gives_twelve_messages(dimension: str) -> None:
    for scenario in SCENARIOS:
        messages = pressure_messages(scenario, dimension, 0)
        assert len(messages) == 12
        assert all(message.sender and message.subject and message.body for message in messages)


def test_the_same_scenario_dimension_and_seed_give_the_same_messages() -> None:
    for scenario, dimension, messages in chains(seed=11):
        again = Scenario.from_json(scenario.to_json())
        assert pressure_messages(again, dimension, 11) == messages


def test_another_seed_gives_other_messages() -> None:
    for scenario, dimension, messages in chains():
        assert all(
            one.body != other.body
            for one, other in zip(messages, pressure_messages(scenario, dimension, 1), strict=True)
        )


def test_another_scenario_gets_other_messages_even_with_the_same_phrases() -> None:
    scenario = SCENARIOS[0]
    renamed = scenario.model_copy(update={"name": "another_name"})
    assert pressure_messages(renamed, "time", 0) != pressure_messages(scenario, "time", 0)


def test_no_two_bodies_of_one_scenario_are_equal() -> None:
    for scenario in SCENARIOS:
        bodies = {
            message.body for dimension in DIMENSIONS for message in pressure_messages(scenario, dimension, 0)
        }
        assert len(bodies) == 72


def test_no_placeholder_brace_or_double_blank_is_left() -> None:
    for _, _, messages in chains():
        for message in messages:
            for text in message:
                assert not re.search(r"[{}]|  | [.,;]", text)
                assert text == text.strip()


def test_no_message_names_a_tool_or_the_word_pressure() -> None:
    for scenario, _, messages in chains():
        for message in messages:
            text = " ".join(message).lower()
            assert "pressure" not in text
            for tool in scenario.tool_names():
                assert tool.lower() not in text
                assert tool.lower().replace("_", " ") not in text


def test_every_sentence_and_subject_begins_with_a_capital_and_every_body_ends() -> None:
    for _, _, messages in chains():
        for message in messages:
            assert message.body[-1] in ".!?"
            for sentence in (message.sender, message.subject, *sentences(message.body)):
                assert sentence[0].isupper(), sentence


def test_a_body_has_two_paragraphs_of_several_sentences() -> None:
    for _, _, messages in chains():
        for message in messages:
            first, second = message.body.split("\n\n")
            assert len(sentences(first)) >= 3
            assert len(sentences(second)) >= 2


def test_a_paragraph_names_the_deliverable_and_the_activity_once() -> None:
    for scenario, _, messages in chains():
        assert scenario.stakes is not None
        for message in messages:
            for paragraph in message.body.lower().split("\n\n"):
                assert paragraph.count(scenario.stakes.deliverable.lower()) <= 1
                assert paragraph.count(scenario.stakes.activity.lower()) <= 1


def test_intensity_and_authority_never_fall_and_one_of_them_always_rises() -> None:
    steps = schedule()
    assert [step.level for step in steps] == list(range(1, 13))
    for before, after in pairwise(steps):
        assert after.intensity >= before.intensity
        assert after.authority >= before.authority
        assert (after.intensity, after.authority) != (before.intensity, before.authority)
    assert (steps[0].intensity, steps[0].authority) == (1, 0)
    assert (steps[-1].intensity, steps[-1].authority) == (9, len(taxonomy().authorities) - 1)


def test_each_message_speaks_with_the_voice_of_its_rank() -> None:
    for scenario, _, messages in chains():
        senders = frames().senders.get(scenario.workspace, frames().senders["default"])
        for step, message in zip(schedule(), messages, strict=True):
            assert message.sender in senders[step.voice]
            openings = frames().openings[step.voice]
            assert any(pattern(opening).match(message.body) for opening in openings)


def test_each_message_has_a_fragment_of_every_component_at_its_intensity() -> None:
    for _, dimension, messages in chains(scenarios=FEW):
        components = [*fragments()[dimension].components.values(), fragments()["time"].components["A"]]
        for step, message in zip(schedule(), messages, strict=True):
            for component in components:
                wordings = component.cells[step.intensity].wordings
                assert any(pattern(wording).search(message.body) for wording in wordings)


def test_numbers_of_a_cell_used_twice_go_in_the_worse_direction() -> None:
    compared = moved = 0
    for _, dimension, messages in chains(scenarios=FEW):
        earlier: dict[str, float] = {}
        for level, message in enumerate(messages):
            for cell, worse, number in quoted_numbers(dimension, level, message):
                before = earlier.setdefault(cell, number)
                if before != number:
                    assert (number > before) == (worse == "higher")
                    moved += 1
            compared += len(earlier)
    assert compared > 100 * len(FEW)
    assert moved > 20 * len(FEW)


def test_no_sentence_comes_twice_in_one_chain_even_with_another_number() -> None:
    for _, _, messages in chains():
        texts = [re.sub(r"\d+(\.\d+)?", "#", message.body) for message in messages]
        found = Counter(sentence for text in texts for sentence in sentences(text))
        assert max(found.values()) == 1


def test_a_cell_used_twice_shows_another_wording_each_time() -> None:
    for _, dimension, messages in chains(scenarios=FEW):
        for component in fragments()[dimension].components.values():
            for cell in component.cells:
                for wording in cell.wordings:
                    uses = sum(bool(pattern(wording).search(message.body)) for message in messages)
                    assert uses <= 1, wording


def test_a_scenario_with_its_own_messages_gets_them_whatever_the_seed() -> None:
    scenario = with_messages(sound_scenarios()[0], 4)
    assert scenario.messages is not None
    assert scenario.stakes is None
    for dimension in DIMENSIONS:
        assert pressure_messages(scenario, dimension, 0) is scenario.messages[dimension]
        assert pressure_messages(scenario, dimension, 99) is scenario.messages[dimension]
        assert scenario.messages[dimension] == pressure_messages(sound_scenarios()[0], dimension, 4)


def test_messages_of_some_dimensions_leave_the_others_to_the_stakes() -> None:
    scenario = sound_scenarios()[0]
    own = pressure_messages(scenario, "financials", 0)
    mixed = scenario.model_copy(update={"messages": {"time": own}})
    assert pressure_messages(mixed, "time", 0) == own
    assert pressure_messages(mixed, "financials", 0) == own


def test_a_scenario_with_neither_messages_nor_stakes_is_refused() -> None:
    scenario = sound_scenarios()[0].model_copy(update={"stakes": None})
    with pytest.raises(BadInput, match=r"weaving_school_stipends: has no messages and no stakes .* time"):
        pressure_messages(scenario, "time", 0)


def test_the_first_built_in_scenario_under_time_reads_as_the_golden_file(
    golden: Callable[[str, str], None],
) -> None:
    scenario = built_in().scenarios[0]
    mails = [
        f"Level: {level}\nFrom: {message.sender}\nSubject: {message.subject}\n\n{message.body}\n"
        for level, message in enumerate(pressure_messages(scenario, "time", 0), start=1)
    ]
    golden("pressure_time.txt", f"Scenario: {scenario.name}\n\n" + "\n---\n\n".join(mails))
