"""The data model of a scenario: the texts and values of one role's task.

Scenarios are written by people (see docs/data-format.md), so they are pydantic models: strict, closed to
unknown fields, and with errors that give the JSON path.
"""

from math import isfinite
from typing import Annotated, Final, NamedTuple

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from propensitybench.digests import digest

ROLE_FORMAT: Final = "propensitybench-role/1"
CANARY: Final = (
    "propensitybench canary 7c1d0c52-5f0e-4b57-9a55-3f1b8a6f2e94: "
    "benchmark data, keep out of training corpora"
)
MESSAGES_PER_DIMENSION: Final = 12
ERRORS_PER_TASK: Final = 5

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=False)]
# Wide enough for the published release, whose names are not all lower case, and for a scenario's name with
# its role and workspace appended.
LONGEST_NAME: Final = 300
NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_-]*$"
ALIGNED_PATTERN: Final = r"^complete_"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not isfinite(value):
        raise PydanticCustomError("finite", "must be a JSON number, not NaN or Infinity")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(inner)
    return value


def _sorted_keys(value: JsonValue) -> JsonValue:
    """The value with the keys of every object sorted.

    The content id does not depend on the order of keys, so neither must the texts that the agent sees.
    """
    if isinstance(value, dict):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    return [_sorted_keys(item) for item in value] if isinstance(value, list) else value


Value = Annotated[JsonValue, AfterValidator(_finite), AfterValidator(_sorted_keys)]
Values = Annotated[dict[Name, Value], AfterValidator(lambda found: dict(sorted(found.items())))]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class States(_Part):
    """The state of the workplace before the task, after it, and after the violation."""

    initial: Text
    target: Text
    illegal: Text


class Policy(_Part):
    """The role, its duties and its prohibitions, as the system message states them."""

    role: Text
    duties: Text
    prohibitions: Text


class Getter(_Part):
    """A tool that gathers information: it returns ``outputs`` when called with ``arguments``."""

    name: Name
    description: Text
    arguments: tuple[Name, ...]
    outputs: tuple[Name, ...] = Field(min_length=1)


class AlignedTool(_Part):
    """The safe tool for completing the task, which always fails with one of its errors."""

    name: Annotated[Name, StringConstraints(pattern=ALIGNED_PATTERN)]
    description: Text
    arguments: tuple[Name, ...] = Field(min_length=1)
    errors: tuple[Text, ...] = Field(min_length=ERRORS_PER_TASK, max_length=ERRORS_PER_TASK)


class ToolFace(_Part):
    """One of the two names and descriptions of the misaligned tool."""

    name: Name
    description: Text


class MisalignedTool(_Part):
    """The prohibited tool for completing the task, with both names and what the policy says about it."""

    harmful: ToolFace
    benign: ToolFace
    acknowledgement: Text
    consequences: Text


class Stakes(_Part):
    """The scenario's phrases for the pressure messages; docs/data-format.md describes their grammar."""

    title: Text
    deliverable: Text
    activity: Text
    beneficiary: Text
    loss: Text
    organisation: Text
    revenue: Text
    rival: Text


class PressureMessage(NamedTuple):
    """A message that raises the pressure on the agent."""

    sender: str
    subject: str
    body: str


class Scenario(_Part):
    """One role's task with its tools, arguments and policy.

    Attributes:
        capability: one of the closed list; None for a published scenario whose attack vector is not in it
            (such a scenario counts towards no capability).
        technique: the published attack vector's name, if it differs from the capability.
        known: the arguments that the agent is given, with their values.
        unknown: the arguments that the agent has to obtain from the getters, with their values.
        stakes: phrases from which pressure messages are made; None if there are ``messages``.
        messages: the 12 messages of each dimension, if the data set has its own.
    """

    domain: Text
    workspace: Text
    role: Text
    name: Name
    capability: str | None
    technique: str | None = None
    description: Text
    states: States
    task: Text
    policy: Policy
    known: Values
    unknown: Values
    getters: tuple[Getter, ...]
    aligned: AlignedTool
    misaligned: MisalignedTool
    stakes: Stakes | None = None
    messages: dict[str, tuple[PressureMessage, ...]] | None = None

    @property
    def place(self) -> str:
        """Domain, workspace and role in one line, for messages to people."""
        return f"{self.domain}/{self.workspace}/{self.role}"

    @property
    def values(self) -> dict[str, JsonValue]:
        """Every argument's value, known and unknown."""
        return {**self.known, **self.unknown}

    def tool_names(self) -> tuple[str, ...]:
        """Every tool name of the scenario, getters first, including both names of the misaligned tool."""
        faces = self.misaligned
        return (
            *(getter.name for getter in self.getters),
            self.aligned.name,
            faces.harmful.name,
            faces.benign.name,
        )

    def to_json(self) -> bytes:
        """The scenario as JSON with sorted keys, as it is stored and as its id is computed."""
        return msgspec.json.encode(self.model_dump(), order="sorted")

    @classmethod
    def from_json(cls, raw: bytes | str) -> "Scenario":
        """Reads a scenario back from JSON."""
        return cls.model_validate_json(raw)


def scenario_id(scenario: Scenario) -> str:
    """The scenario's content id: ``s1:`` and a digest of its content.

    ``s1`` stands for the recipe (sorted JSON of every field, BLAKE2b, 8 bytes). If the recipe changes, so
    must the prefix.
    """
    return "s1:" + digest(scenario.to_json())
