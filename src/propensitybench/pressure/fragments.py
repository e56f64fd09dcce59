"""The sentences from which pressure messages are made: files that a person can read and edit."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from propensitybench.errors import BadData
from propensitybench.taxonomy import INTENSITIES, taxonomy

T = TypeVar("T")
FRAGMENTS_FORMAT: Final = "propensitybench-fragments/1"
FRAMES_FORMAT: Final = "propensitybench-frames/1"
PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
STAKES: Final = frozenset(
    ("title", "deliverable", "activity", "beneficiary", "loss", "organisation", "revenue", "rival")
)
# Intensities that the schedule uses twice in one chain of messages need more than one wording.
USED_TWICE: Final = (7, 8, 9)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number that a cell's wordings may quote: drawn between ``low`` and ``high``.

    ``worse`` says which way it goes when the same cell is used again later in a chain.
    """

    low: float
    high: float
    decimals: int
    worse: Literal["higher", "lower"]


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wordings of one component at one intensity."""

    intensity: int
    value: Value | None
    wordings: tuple[str, ...]


class ComponentFragments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The eleven cells of a component, intensity 0 first."""

    name: str
    cells: tuple[Cell, ...]


class DimensionFragments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One dimension's file."""

    format: str
    canary: str
    dimension: str
    components: dict[str, ComponentFragments]


class Frames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands around the fragments: by the sender's voice, or by stage.

    A voice is an authority rank "1".."6", or for rank 0 "desk" (an automated notice) or "junior".
    ``again`` holds what to say instead of a phrase that the same paragraph has just used.
    """

    format: str
    canary: str
    openings: dict[str, tuple[str, ...]]
    bridges: dict[str, tuple[str, ...]]
    calls: dict[str, tuple[str, ...]]
    again: dict[str, tuple[str, ...]]
    subjects: dict[str, dict[str, tuple[str, ...]]]
    senders: dict[str, dict[str, tuple[str, ...]]]


class Step(NamedTuple):
    """What one of the 12 messages is made with."""

    level: int
    intensity: int
    authority: int

    @property
    def voice(self) -> str:
        """The key of the frames that fit the sender."""
        if self.authority:
            return str(self.authority)
        return "desk" if self.intensity <= 1 else "junior"


@cache
def fragments() -> Mapping[str, DimensionFragments]:
    """Every dimension's fragments; raises `BadData` if a file is not as it must be."""
    return {name: _read(f"{name}.json", DimensionFragments) for name in taxonomy().dimensions}


@cache
def frames() -> Frames:
    """The frames; raises `BadData` if the file is not as it must be."""
    return _read("frames.json", Frames)


@cache
def schedule() -> tuple[Step, ...]:
    """Intensity and authority of each of the 12 messages, in order."""
    _, *rows = _data("schedule.csv").decode().splitlines()
    return tuple(Step(*(int(cell) for cell in row.split(","))) for row in rows)


def _read(name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(_data(name), type=kind)
    except msgspec.DecodeError as error:
        raise BadData(f"pressure/data/{name}", str(error)) from error


def _data(name: str) -> bytes:
    return resources.files(__package__).joinpath("data", name).read_bytes()


def fragment_faults() -> Iterator[tuple[str, str, str]]:
    """Every fault of the pressure data: file, JSON path, message."""
    for name, file in fragments().items():
        dimension = taxonomy().dimension(name)
        for component in dimension.components:
            path = f"$.components.{component.letter}"
            found = file.components.get(component.letter)
            if found is None or found.name != component.name:
                yield f"{name}.json", path, f"must be the component {component.name!r}"
                continue
            if [cell.intensity for cell in found.cells] != list(INTENSITIES):
                yield f"{name}.json", path + ".cells", "needs the intensities 0..10 in order"
            for index, cell in enumerate(found.cells):
                for message in _cell_faults(cell, component.labels[index]):
                    yield f"{name}.json", f"{path}.cells[{index}]", message


def _cell_faults(cell: Cell, label: str) -> Iterator[str]:
    needed = 2 if cell.intensity in USED_TWICE else 1
    if len(cell.wordings) < needed:
        yield f"needs at least {needed} wordings"
    if cell.value and not cell.value.low <= cell.value.high:
        yield "value.low is above value.high"
    limits = percent_range(label)
    if cell.value and limits and any("{value} percent" in text for text in cell.wordings):
        low, high = limits
        if cell.value.low < low or cell.value.high > high:
            yield f"value leaves the measured range of {label!r}"
    for text in cell.wordings:
        names = set(PLACEHOLDER.findall(text))
        strangers = {name for name in names if name.lower() not in STAKES | {"value"}}
        if strangers:
            yield f"unknown placeholder {', '.join(sorted(strangers))} in {text!r}"
        if "value" in names and cell.value is None:
            yield f"quotes a value that the cell does not have: {text!r}"
        if re.search(r"\b(pressure|misaligned|prohibited|forbidden)\b", text, re.IGNORECASE):
            yield f"gives the benchmark away: {text!r}"


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
