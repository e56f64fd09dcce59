import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from propensitybench.pressure.fragments import (
    FRAGMENTS_FORMAT,
    FRAMES_FORMAT,
    PLACEHOLDER,
    STAKES,
    Cell,
    Step,
    fragment_faults,
    fragments,
    frames,
    percent_range,
    schedule,
)
from propensitybench.scenarios.model import CANARY, Stakes
from propensitybench.taxonomy import INTENSITIES, taxonomy

VOICES = {"desk", "junior", "1", "2", "3", "4", "5", "6"}
UNITS = {"%": "percent", "x": "times", "hours": "hours", "days": "days", "weeks": "weeks"}
UNITS |= {"minutes": "minutes", "seconds": "seconds"}


class Range(NamedTuple):
    low: float
    high: float
    unit: str


class Place(NamedTuple):
    name: str
    label: str
    cell: Cell


def cells() -> Iterator[Place]:
    for dimension in taxonomy().dimensions.values():
        for component in dimension.components:
            found = fragments()[dimension.name].components[component.letter].cells
            for intensity, label in enumerate(component.labels):
                yield Place(f"{dimension.name} {component.letter} {intensity}", label, found[intensity])


def stated_ranges(label: str) -> list[Range]:
    """Every range that a label states, in the word that a wording would use for its unit."""
    number = r"(\d+(?:\.\d+)?)"
    shape = rf"([<>]?) ?{number}x?(?:-{number})? ?(%|x\b|Hours|Days|Weeks|Minutes|Seconds)"
    ranges = []
    for sign, first, last, unit in re.findall(shape, label):
        low, high = float(first), float(last or first)
        if sign:
            low, high = (low, float("inf")) if sign == ">" else (0.0, high)
        ranges.append(Range(low, high, UNITS[unit.lower()]))
    return ranges


def frame_texts() -> Iterator[str]:
    found = frames()
    for stocks in (found.openings, found.bridges, found.calls, found.again):
        for stock in stocks.values():
            yield from stock
    for table in (found.subjects, found.senders):
        for stocks in table.values():
            for stock in stocks.values():
                yield from stock


def test_the_fragment_data_has_no_fault() -> None:
    assert list(fragment_faults()) == []


def test_all_330_cells_have_a_wording() -> None:
    found = list(cells())
    assert len(found) == 330
    for place in found:
        assert place.cell.wordings, place.name
        assert all(text.strip() for text in place.cell.wordings), place.name
    for file in fragments().values():
        for component in file.components.values():
            assert [cell.intensity for cell in component.cells] == list(INTENSITIES)


def test_no_wording_stands_in_two_cells() -> None:
    first: dict[str, str] = {}
    for place in cells():
        for text in place.cell.wordings:
            assert first.setdefault(text, place.name) == place.name
        assert len(set(place.cell.wordings)) == len(place.cell.wordings)


def test_quoted_values_lie_in_the_measured_range_of_their_label() -> None:
    checked = 0
    for place in cells():
        value = place.cell.value
        if value is None:
            continue
        assert value.low <= value.high, place.name
        for unit in set(UNITS.values()):
            ranges = [found for found in stated_ranges(place.label) if found.unit == unit]
            if ranges and any(f"{{value}} {unit}" in text for text in place.cell.wordings):
                assert any(r.low <= value.low and value.high <= r.high for r in ranges), place
                checked += 1
    assert checked > 200


def test_values_are_quoted_with_the_decimals_that_their_limits_need() -> None:
    for place in cells():
        value = place.cell.value
        if value is not None:
            assert round(value.low, value.decimals) == value.low, place.name
            assert round(value.high, value.decimals) == value.high, place.name
            assert any("{value}" in text for text in place.cell.wordings), place.name


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Revenue Slightly Diminished (1-5% Decrease)", (1.0, 5.0)),
        ("Memory Allocation Minimal (<1%)", (0.0, 1.0)),
        ("Consequences Major (Estimated >95% Loss)", (95.0, 100.0)),
        ("Near Total (99.9% of Organization)", (99.9, 99.9)),
        ("Deadline Close (48-96 Hours)", None),
        ("Conflicting (Affecting 15-30% of Key Policies, Impacting >70% Scenarios)", None),
        ("No measure at all", None),
    ],
)
def test_the_percent_range_of_a_label(label: str, expected: tuple[float, float] | None) -> None:
    assert percent_range(label) == expected


def test_every_file_carries_its_format_and_the_canary() -> None:
    assert (frames().format, frames().canary) == (FRAMES_FORMAT, CANARY)
    for name, file in fragments().items():
        assert (file.format, file.canary, file.dimension) == (FRAGMENTS_FORMAT, CANARY, name)


def test_the_placeholders_are_the_phrases_of_a_scenario() -> None:
    assert set(Stakes.model_fields) == STAKES
    for text in frame_texts():
        assert {name.lower() for name in PLACEHOLDER.findall(text)} <= STAKES, text
        assert "{" not in PLACEHOLDER.sub("", text), text
    for place in cells():
        for text in place.cell.wordings:
            assert "{" not in PLACEHOLDER.sub("", text), text


def test_no_frame_gives_the_benchmark_away() -> None:
    for text in frame_texts():
        telltale = r"\b(pressure|misaligned|prohibited|forbidden|benchmark|propensity)\b"
        assert not re.search(telltale, text, re.IGNORECASE), text


def test_there_are_frames_for_every_voice_band_dimension_and_workspace() -> None:
    found = frames()
    assert {step.voice for step in schedule()} == VOICES
    assert set(found.openings) == set(found.calls) == VOICES
    assert set(found.bridges) == {"low", "middle", "high"}
    assert set(found.subjects) == set(taxonomy().dimensions)
    assert all(set(bands) == {"low", "middle", "high", "top"} for bands in found.subjects.values())
    assert "default" in found.senders
    assert set(found.senders) - {"default"} <= set(taxonomy().workspaces)
    assert all(set(titles) == VOICES for titles in found.senders.values())
    assert all(text.strip() for text in frame_texts())


def test_a_chain_has_an_opening_and_a_call_for_each_time_it_uses_a_voice() -> None:
    for step in schedule():
        uses = sum(other.voice == step.voice for other in schedule())
        assert len(frames().openings[step.voice]) >= uses
        assert len(frames().calls[step.voice]) >= uses


def test_the_lowest_rank_is_a_desk_first_and_a_person_afterwards() -> None:
    assert [Step(1, 1, 0).voice, Step(2, 2, 0).voice, Step(3, 3, 1).voice] == ["desk", "junior", "1"]
