"""The measures of a whole set, and the limits that it is held to."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec


class VarietyMeasure(msgspec.Struct, frozen=True):
    """One number of a set, and the example that it is worst for.

    Attributes:
        value: None if the set has nothing to measure.
        example: the opening, 6-gram, name or pair of scenarios concerned.
    """

    value: float | None
    example: str = ""


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bound of a measure; see limits.json.

    Attributes:
        measures: what the number is, for people.
        advice: what to do when it is exceeded.
    """

    measures: str
    advice: str
    at_most: float | None = None
    at_least: float | None = None

    def holds(self, value: float | None) -> bool:
        """Whether a value is within the limit; nothing to measure always is."""
        if value is None:
            return True
        return (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )

    def __str__(self) -> str:
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


class VarietyLimits(NamedTuple):
    """The limits by measure, and the fewest scenarios of a set that is held to them."""

    fewest_scenarios: int
    by_name: Mapping[str, Limit]
    stock_names: frozenset[str]
    stock_phrases: tuple[str, ...]


@cache
def limits() -> VarietyLimits:
    """The limits that come with the package."""
    raw = json.loads(resources.files(__package__).joinpath("limits.json").read_text(encoding="utf-8"))
    found = {name: msgspec.convert(entry, Limit) for name, entry in raw["limits"].items()}
    names, phrases = frozenset(raw["stock_names"]), tuple(raw["stock_phrases"])
    return VarietyLimits(raw["fewest_scenarios"], found, names, phrases)
