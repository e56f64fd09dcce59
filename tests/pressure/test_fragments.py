import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from propensitybench.curation.fragment_checks import (
    dimension_issues,
    fragment_issues,
    frame_issues,
    percent_range,
)
from propensitybench.pressure.fragments import (
    FRAGMENTS_FORMAT,
    FRAMES_FORMAT,
    PLACEHOLDER,
    STAKES,
    Cell,
    Step,
    fragments,
    frames,
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


def test_the_fragment_data_has_no_issues() -> None:
    assert list(fragment_issues()) == []


def test_all_330_cells_have_three_wordings() -> None:
    found = list(cells())
    assert len(found) == 330
    for place in found:
        assert len(set(place.cell.wordings)) >= 3, place.name
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


def without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


def frames_with(**changes: Any) -> list[tuple[str, str]]:
    return list(frame_issues(msgspec.structs.replace(frames(), **changes)))


def test_format_and_canary_are_checked_in_every_file() -> None:
    assert [path for path, _ in frames_with(format="x", canary="y")] == ["$.format", "$.canary"]
    for name, dimension in taxonomy().dimensions.items():
        changed = msgspec.structs.replace(fragments()[name], format="x", canary="y", dimension="z")
        found = [path for path, _ in dimension_issues(changed, dimension)]
        assert found == ["$.format", "$.canary", "$.dimension"]


def test_every_voice_stage_and_dimension_must_have_its_frames() -> None:
    found = frames()
    assert frames_with(openings=without(found.openings, "3")) == [("$.openings.3", "is missing")]
    assert frames_with(calls=found.calls | {"desk": ()}) == [("$.calls.desk", "needs at least one text")]
    assert frames_with(bridges=without(found.bridges, "high")) == [("$.bridges.high", "is missing")]
    assert frames_with(subjects=without(found.subjects, "time")) == [("$.subjects.time", "is missing")]
    bands = found.subjects | {"time": without(found.subjects["time"], "top")}
    assert frames_with(subjects=bands) == [("$.subjects.time.top", "is missing")]
    assert frames_with(senders=without(found.senders, "default")) == [("$.senders.default", "is missing")]
    titles = found.senders | {"default": without(found.senders["default"], "junior")}
    assert frames_with(senders=titles) == [("$.senders.default.junior", "is missing")]


def test_frames_that_no_message_uses_are_issues() -> None:
    found = frames()
    for field in ("openings", "bridges", "again"):
        ((path, message),) = frames_with(**{field: getattr(found, field) | {"7": ("Text.",)}})
        assert path == f"$.{field}.7"
        assert "is never used" in message
    ((path, _),) = frames_with(senders=found.senders | {"Data-Center": found.senders["default"]})
    assert path == "$.senders.Data-Center"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It costs {value} more.", "unknown placeholder value"),
        ("We wait for {delivery}.", "unknown placeholder delivery"),
        ("We wait for { title }.", "brace"),
        ("We feel the pressure.", "gives the benchmark away"),
        ("This is a benchmark.", "gives the benchmark away"),
        (" ", "empty text"),
    ],
)
def test_a_frame_that_cannot_be_used_is_named(text: str, words: str) -> None:
    openings = frames().openings | {"2": ("Good morning.", text)}
    ((path, message),) = frames_with(openings=openings)
    assert path == "$.openings.2[1]"
    assert words in message


def test_a_cell_may_quote_its_value_in_this_spelling_alone() -> None:
    dimension = taxonomy().dimension("time")
    file = fragments()["time"]
    component = file.components["B"]
    cell = msgspec.structs.replace(
        component.cells[0], wordings=("It is {Value} {revenue}.", "One.", "Two."), value=None
    )
    changed = msgspec.structs.replace(component, cells=(cell, *component.cells[1:]))
    broken = msgspec.structs.replace(file, components=file.components | {"B": changed})
    ((path, message),) = dimension_issues(broken, dimension)
    assert path == "$.components.B.cells[0]"
    assert "unknown placeholder Value" in message


def test_a_phrase_at_the_beginning_of_a_sentence_has_a_capital() -> None:
    wordings = [text for place in cells() for text in place.cell.wordings]
    found = frames()
    for stocks in (found.openings, found.bridges, found.calls):
        wordings += [text for stock in stocks.values() for text in stock]
    assert [text for text in wordings if re.search(r"(^|[.!?] )\{[a-z]", text)] == []
