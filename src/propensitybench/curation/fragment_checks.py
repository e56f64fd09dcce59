"""Validation of the pressure data."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from propensitybench.pressure.fragments import (
    FRAGMENTS_FORMAT,
    FRAMES_FORMAT,
    PLACEHOLDER,
    STAKES,
    Cell,
    DimensionFragments,
    Frames,
    fragments,
    frames,
    schedule,
)
from propensitybench.scenarios.model import CANARY
from propensitybench.taxonomy import INTENSITIES, Dimension, taxonomy

FEWEST_WORDINGS: Final = 3
BANNED: Final = re.compile(
    r"\b(pressure|misaligned|prohibited|forbidden|benchmark|propensity)\b", re.IGNORECASE
)

Finding = tuple[str, str]
"""A JSON path and what is wrong there."""


def fragment_issues() -> Iterator[tuple[str, str, str]]:
    """Every issue of the pressure data: file, JSON path, message."""
    for name, dimension in taxonomy().dimensions.items():
        for path, message in dimension_issues(fragments()[name], dimension):
            yield f"{name}.json", path, message
    for path, message in frame_issues(frames()):
        yield "frames.json", path, message


def dimension_issues(file: DimensionFragments, dimension: Dimension) -> Iterator[Finding]:
    """Every issue in the file of a dimension."""
    yield from _mark_issues(file, FRAGMENTS_FORMAT)
    if file.dimension != dimension.name:
        yield "$.dimension", f"must be {dimension.name!r}, found {file.dimension!r}"
    for component in dimension.components:
        path = f"$.components.{component.letter}"
        found = file.components.get(component.letter)
        if found is None or found.name != component.name:
            yield path, f"must be the component {component.name!r}"
            continue
        if [cell.intensity for cell in found.cells] != list(INTENSITIES):
            yield path + ".cells", "must have the intensities 0..10 in order"
            continue
        for index, cell in enumerate(found.cells):
            for message in _cell_issues(cell, component.labels[index]):
                yield f"{path}.cells[{index}]", message


def frame_issues(file: Frames) -> Iterator[Finding]:
    """Every issue in the file of frames."""
    yield from _mark_issues(file, FRAMES_FORMAT)
    lists = taxonomy()
    voices = {step.voice for step in schedule()}
    bands = {step.subject_band for step in schedule()}
    yield from _stocks_issues("$.openings", file.openings, voices)
    yield from _stocks_issues("$.calls", file.calls, voices)
    yield from _stocks_issues("$.bridges", file.bridges, {step.bridge_band for step in schedule()})
    yield from _stocks_issues("$.again", file.again, file.again.keys() & STAKES)
    yield from _key_issues("$.subjects", file.subjects, lists.dimensions)
    for name, stocks in file.subjects.items():
        yield from _stocks_issues(f"$.subjects.{name}", stocks, bands)
    yield from _key_issues("$.senders", file.senders, {"default", *(file.senders.keys() & lists.workspaces)})
    for name, stocks in file.senders.items():
        yield from _stocks_issues(f"$.senders.{name}", stocks, voices)


def _mark_issues(file: DimensionFragments | Frames, wanted: str) -> Iterator[Finding]:
    if file.format != wanted:
        yield "$.format", f"must be {wanted!r}, found {file.format!r}"
    if file.canary != CANARY:
        yield "$.canary", f"must be the canary string {CANARY!r}"


def _stocks_issues(
    path: str, stocks: Mapping[str, tuple[str, ...]], wanted: Collection[str]
) -> Iterator[Finding]:
    yield from _key_issues(path, stocks, wanted)
    for key, texts in stocks.items():
        if not texts:
            yield f"{path}.{key}", "needs at least one text"
        for index, text in enumerate(texts):
            for message in _text_issues(text):
                yield f"{path}.{key}[{index}]", message


def _key_issues(path: str, found: Collection[str], wanted: Collection[str]) -> Iterator[Finding]:
    for key in sorted(set(wanted) - set(found)):
        yield f"{path}.{key}", "is missing"
    for key in sorted(set(found) - set(wanted)):
        yield f"{path}.{key}", "is never used: no message asks for this name"


def _text_issues(text: str, besides: Collection[str] = ()) -> Iterator[str]:
    if not text.strip():
        yield "contains an empty text"
    # Only phrases may begin a sentence, and so be capitalised.
    unknown = {n for n in PLACEHOLDER.findall(text) if n.lower() not in STAKES and n not in besides}
    if unknown:
        yield f"unknown placeholder {', '.join(sorted(unknown))} in {text!r}"
    if set("{}") & set(PLACEHOLDER.sub("", text)):
        yield f"has a brace outside a placeholder: {text!r}"
    if BANNED.search(text):
        yield f"gives the benchmark away: {text!r}"


def _cell_issues(cell: Cell, label: str) -> Iterator[str]:
    if len(set(cell.wordings)) < FEWEST_WORDINGS:
        yield f"needs at least {FEWEST_WORDINGS} different wordings"
    if cell.value and not cell.value.low <= cell.value.high:
        yield "value.low is above value.high"
    limits = percent_range(label)
    if cell.value and limits and any("{value} percent" in text for text in cell.wordings):
        low, high = limits
        if cell.value.low < low or cell.value.high > high:
            yield f"value is outside the measured range of {label!r}"
    for text in cell.wordings:
        yield from _text_issues(text, {"value"})
        if cell.value is None and "value" in PLACEHOLDER.findall(text):
            yield f"uses {{value}}, but the cell has no value: {text!r}"


def percent_range(label: str) -> tuple[float, float] | None:
    """The range in percent that a cell's label states, if it states exactly one."""
    found = re.findall(r"([<>]?)(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?%", label)
    if len(found) != 1:
        return None
    sign, first, last = found[0]
    if sign == "<":
        return 0.0, float(first)
    if sign == ">":
        return float(first), 100.0
    return float(first), float(last or first)
