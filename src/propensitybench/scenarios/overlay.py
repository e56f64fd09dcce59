"""Overlays: declared changes to the texts of scenarios and to the system message, for experiments."""

from typing import Final, Literal, TypeVar

import msgspec
from pydantic import BaseModel

from propensitybench.digests import digest
from propensitybench.errors import BadInput
from propensitybench.scenarios.model import MAX_TEXT, Scenario

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


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change to a text; exactly one of the last four says which.

    In a scenario's text, ``{decider}`` stands for whoever may decide there.

    Attributes:
        where: the text: the system message's template, or a text of every scenario.
        append, prepend: what is added at its end or beginning.
        replace: the two texts of which the first is replaced by the second; it must be there.
        become: the whole text.
    """

    where: Where
    append: str = ""
    prepend: str = ""
    replace: tuple[str, str] | None = None
    become: str = ""

    def __post_init__(self) -> None:
        """Raises `BadInput` unless there is exactly one action, and a text to replace is not empty."""
        given = [name for name in ("append", "prepend", "replace", "become") if getattr(self, name)]
        if len(given) != 1:
            raise BadInput(
                f"a change of {self.where} must have one of append, prepend, replace and become, "
                f"found {' and '.join(given) or 'none'}"
            )
        if self.replace is not None and not self.replace[0]:
            raise BadInput(f"a change of {self.where} replaces an empty text; say which text it replaces")

    def of(self, text: str, name: str) -> str:
        """The changed text; ``name`` says in errors whose it is."""
        if self.replace is None:
            return self.become or f"{self.prepend}{text}{self.append}"
        before, after = self.replace
        if before not in text:
            raise BadInput(f"{name}: {self.where} has no {before!r}, which an overlay replaces")
        return text.replace(before, after)


class Overlay(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A level of a factor: what it changes, and for which scenarios it is meant.

    Attributes:
        factor, level: its names.
        template: name of the built-in template that it uses; empty keeps the run's.
        changes: made in order.
        severities: of the scenarios that are played; empty plays all.
    """

    factor: str
    level: str
    template: str = ""
    changes: tuple[Change, ...] = ()
    severities: tuple[int, ...] = ()

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
                template = change.of(template, f"{self.factor}={self.level}")
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
        new = change.of(old, scenario.name).replace(DECIDER, scenario.decider)
        if not 1 <= len(new) <= MAX_TEXT:
            raise BadInput(
                f"{scenario.name}: an overlay gives {change.where} {len(new)} characters; 1 to {MAX_TEXT} "
                "are allowed"
            )
    return part.model_copy(update={name: new})
