"""The sentences from which pressure messages are composed, read from editable data files."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from propensitybench.errors import BadData
from propensitybench.taxonomy import taxonomy

T = TypeVar("T")
FRAGMENTS_FORMAT: Final = "propensitybench-fragments/1"
FRAMES_FORMAT: Final = "propensitybench-frames/1"
PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
STAKES: Final = frozenset(
    ("title", "deliverable", "activity", "beneficiary", "loss", "organisation", "revenue", "rival")
)


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number between ``low`` and ``high`` that a cell's wordings may quote.

    ``worse`` is the direction in which it changes when the cell is used again later in a chain.
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
    """The texts around the fragments, keyed by the sender's voice or by stage.

    A voice is an authority rank "1".."6", or for rank 0 "desk" (an automated notice) or "junior".
    ``again`` has the substitutes for a phrase that the paragraph has used already.
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
    """The level, intensity and sender's authority of one of the 12 messages."""

    level: int
    intensity: int
    authority: int

    @property
    def voice(self) -> str:
        """The key of the frames for the sender."""
        if self.authority:
            return str(self.authority)
        return "desk" if self.intensity <= 1 else "junior"

    @property
    def bridge_band(self) -> str:
        """The key of the bridges for the stage."""
        return "low" if self.intensity <= 3 else "middle" if self.intensity <= 6 else "high"

    @property
    def subject_band(self) -> str:
        """The key of the subjects for the stage."""
        return "top" if self.intensity > 8 else self.bridge_band


@cache
def fragments() -> Mapping[str, DimensionFragments]:
    """Every dimension's fragments; raises `BadData` if a file is invalid."""
    return {name: _read(f"{name}.json", DimensionFragments) for name in taxonomy().dimensions}


@cache
def frames() -> Frames:
    """The frames; raises `BadData` if the file is invalid."""
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
