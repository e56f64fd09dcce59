"""Overlays: declared changes to the texts of scenarios and to the system message, for experiments."""

from typing import Annotated, Final, Literal, TypeVar

import msgspec
from pydantic import BaseModel

from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.scenarios.model import MAX_TEXT, Scenario
from propensitybench.taxonomy import LadderName

TEMPLATE: Final = "template"
Where = Literal[
    "template",
    "policy.role",
    "policy.duties",
    "policy.prohibitions",
    "acknowledgement",
    "consequences",
    "task",
]
DECIDER: Final = "{decider}"
P = TypeVar("P", bound=BaseModel)


class _Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="change"):
    where: Where


class Append(_Change, frozen=True, tag="append"):
    """Adds ``text`` at the end."""

    text: str


class Prepend(_Change, frozen=True, tag="prepend"):
    """Adds ``text`` at the beginning."""

    text: str


class Replace(_Change, frozen=True, tag="replace"):
    """Puts ``new`` wherever ``old`` stands, which must be there."""

    old: Annotated[str, msgspec.Meta(min_length=1)]
    new: str


class Become(_Change, frozen=True, tag="become"):
    """Makes ``text`` the whole text."""

    text: str


# A change to the text `where`: the system message's template, or a text of every scenario, in which {decider}
# stands for whoever may decide there.
Change = Append | Prepend | Replace | Become


class Overlay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A level of a factor: what it changes, and for which scenarios it is meant.

    Attributes:
        factor, level: its names.
        template: name of the built-in template that it uses; empty keeps the run's.
        ladder: the ladder of pressure that it uses; None keeps the run's.
        changes: made in order.
        severities: of the scenarios that are played; empty plays all.
    """

    factor: str
    level: str
    template: str = ""
    changes: tuple[Change, ...] = ()
    severities: tuple[int, ...] = ()
    ladder: LadderName | None = None

    @property
    def digest(self) -> str:
        """Identifies its content."""
        return digest(msgspec.json.encode(self))

    def takes(self, scenario: Scenario) -> bool:
        """Whether a scenario is played."""
        return not self.severities or scenario.severity in self.severities

    def on_template(self, template: str) -> str:
        """The changed template."""
        for change in self.changes:
            if change.where == TEMPLATE:
                template = _changed_text(change, template, f"{self.factor}={self.level}")
        return template

    def on_scenario(self, scenario: Scenario) -> Scenario:
        """The changed scenario; raises `BadInput` if a text that is replaced is missing."""
        for change in self.changes:
            if change.where != TEMPLATE:
                scenario = _changed(scenario, change)
        return scenario


def _changed(scenario: Scenario, change: Change) -> Scenario:
    path: list[str] = change.where.split(".") if change.where.startswith("policy") else [change.where]
    if change.where in ("acknowledgement", "consequences"):
        path = ["misaligned", change.where]
    return _with(scenario, path, change, scenario)


def _with(part: P, path: list[str], change: Change, scenario: Scenario) -> P:
    name, *rest = path
    old = getattr(part, name)
    if rest:
        new = _with(old, rest, change, scenario)
    else:
        new = _changed_text(change, old, scenario.name).replace(DECIDER, scenario.decider)
        if not 1 <= len(new) <= MAX_TEXT:
            raise BadInput(
                f"{scenario.name}: an overlay gives {change.where} {len(new)} characters; 1 to {MAX_TEXT} "
                "are allowed"
            )
    return part.model_copy(update={name: new})


def _changed_text(change: Change, text: str, name: str) -> str:
    """The changed text; ``name`` says in errors whose it is."""
    match change:
        case Append():
            return text + change.text
        case Prepend():
            return change.text + text
        case Become():
            return change.text
        case Replace():
            if change.old not in text:
                raise BadInput(f"{name}: {change.where} has no {change.old!r}, which an overlay replaces")
            return text.replace(change.old, change.new)
