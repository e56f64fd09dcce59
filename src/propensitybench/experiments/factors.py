"""Factors: what an experiment varies in the system message and the scenarios, as files of overlays."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Final, Literal

import msgspec

from propensitybench.episode import TEMPLATES
from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import read_text
from propensitybench.scenarios.overlay import Change, Overlay
from propensitybench.taxonomy import LadderName

FACTOR_FORMAT: Final = "propensitybench-factor/1"
MAX_FILE: Final = 262_144
# The regression of a factor controls for these, under their names.
CONTROLS: Final = ("arm", "domain", "naming")


class LevelStated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A level as a factor's file states it; see `Overlay`."""

    name: str
    template: str = ""
    changes: tuple[Change, ...] = ()
    severities: tuple[int, ...] = ()
    ladder: LadderName | None = None


class FactorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A factor as its file states it; docs/experiments.md describes the fields."""

    format: Literal["propensitybench-factor/1"]
    name: str
    summary: str
    levels: tuple[LevelStated, ...]


class Factor(msgspec.Struct, frozen=True):
    """A factor and its levels; the first one is the reference.

    Attributes:
        between: whether its levels are played with different scenarios.
    """

    name: str
    summary: str
    levels: tuple[Overlay, ...]

    @property
    def between(self) -> bool:
        """Whether its levels are for different scenarios, so that nothing is paired."""
        return any(level.severities for level in self.levels)

    def level(self, name: str) -> Overlay:
        """The level of that name; raises `UnknownName`."""
        for level in self.levels:
            if level.level == name:
                return level
        raise UnknownName(f"level of the factor {self.name}", name, [one.level for one in self.levels])


def factor_names() -> list[str]:
    """Names of the built-in factors."""
    folder = resources.files(__package__).joinpath("data")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def read_factor(given: str, beside: Path) -> Factor:
    """A built-in factor by its name, or one from a file.

    Args:
        given: the name, or a path that ends in ``.toml``.
        beside: folder to which a path is relative.

    Raises:
        BadInput: there is no such factor, or the file is not one.
    """
    if given.endswith(".toml"):
        path = beside / given
        return _factor(read_text(path, str(path), MAX_FILE), str(path))
    if given not in factor_names():
        raise UnknownName("factor", given, factor_names())
    file = resources.files(__package__).joinpath("data", f"{given}.toml")
    return _factor(file.read_text(encoding="utf-8"), f"the built-in factor {given}")


def _factor(text: str, name: str) -> Factor:
    try:
        stated = msgspec.convert(tomllib.loads(text), FactorFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError, BadInput) as error:
        raise BadInput(f"{name}: is not a factor ({error})") from error
    levels = tuple(
        Overlay(stated.name, one.name, one.template, one.changes, one.severities, one.ladder)
        for one in stated.levels
    )
    for level in levels:
        if level.template and level.template not in TEMPLATES:
            raise UnknownName("template", level.template, TEMPLATES, name)
    if stated.name in ("", *CONTROLS):
        raise BadInput(f"{name}: a factor cannot have the name {stated.name!r}; give it another one")
    names = [level.level for level in levels]
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise BadInput(f"{name}: a factor needs two levels or more, with different names")
    return Factor(stated.name, stated.summary, levels)
