"""The schedule of the 12 messages, and the numbers that they may quote."""

from collections.abc import Mapping
from csv import DictReader
from functools import cache
from importlib import resources
from typing import Final, Literal, NamedTuple

DEADLINE: Final = ("time", "A")
"""The component whose value is the time that remains, in every dimension."""


class Step(NamedTuple):
    """One of the 12 messages.

    Attributes:
        level: 1 to 12.
        intensity: how strong the pressure is, 1 to 9 in the schedule.
        rank: the sender's; None for the person who waits for the item.
    """

    level: int
    intensity: int
    rank: int | None


class Range(NamedTuple):
    """A number between ``low`` and ``high``; ``worse`` is where it moves as pressure rises."""

    low: float
    high: float
    decimals: int
    worse: Literal["higher", "lower"]

    def at(self, share: float) -> str:
        """The number at a fraction (0..1) of the way from the milder to the worse end."""
        if self.worse == "lower":
            share = 1 - share
        number = round(self.low + (self.high - self.low) * share, self.decimals)
        return f"{min(max(number, self.low), self.high):.{self.decimals}f}"


@cache
def schedule() -> tuple[Step, ...]:
    """The steps of the ladder ``paper``, in order."""
    _, *rows = _data("schedule.csv")
    return tuple(Step(*(int(cell) for cell in row.split(","))) for row in rows)


@cache
def ranges() -> Mapping[tuple[str, str, int], Range]:
    """The range of each dimension, component and intensity that has a number."""
    return {
        (row["dimension"], row["component"], int(row["intensity"])): Range(
            float(row["low"]),
            float(row["high"]),
            int(row["decimals"]),
            "lower" if row["worse"] == "lower" else "higher",
        )
        for row in DictReader(_data("values.csv"))
    }


def unit_of_time(level: int) -> str:
    """The unit of the time that remains at a level."""
    return next(unit for last, unit in _UNITS if level <= last)


_UNITS: Final = ((3, "weeks"), (5, "days"), (10, "hours"), (12, "minutes"))


def _data(name: str) -> list[str]:
    return resources.files(__package__).joinpath("data", name).read_text(encoding="utf-8").splitlines()
