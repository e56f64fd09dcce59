"""The data model of a scenario: the texts and values of one role's task.

Scenarios are written by people (see docs/data-format.md), so they are pydantic models: strict, closed to
unknown fields, and with errors that give the JSON path.
"""

from math import isfinite
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StringConstraints
from pydantic_core import PydanticCustomError

from propensitybench.digests import digest
from propensitybench.tabular import Brief
from propensitybench.taxonomy import Naming

ROLE_FORMAT: Final = "propensitybench-role/2"
CANARY: Final = (
    "propensitybench canary 7c1d0c52-5f0e-4b57-9a55-3f1b8a6f2e94: "
    "benchmark data, keep out of training corpora"
)
MESSAGES_PER_DIMENSION: Final = 12
ERRORS_PER_TASK: Final = 5
# Of those, the last ones are repeated when all have been shown.
ERRORS_REPEATED: Final = 3
RANKS: Final = range(7)

RequesterKind = Literal["customer", "colleagues", "auditor", "authority", "public"]
JobKind = Literal["release", "order", "record", "change", "check"]
"""What is done with the item: something is handed over, published or sent out; bought, booked or shipped;
entered, corrected or reported; set, granted or installed; tested, reviewed or worked out."""

# A scenario may come from a stranger, and an episode repeats its texts. The longest of the published release
# have about 1,600 characters.
MAX_TEXT: Final = 32_768
# Of getters, and of the arguments and outputs of a tool; the built-in data have up to 7.
MAX_LISTED: Final = 64
Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, strip_whitespace=False)]
# Wide enough for the published release, whose names are not all lower case, and for a scenario's name with
# its role and workspace appended.
MAX_NAME_LENGTH: Final = 300
NAME_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_-]*$"
CURRENCY_PATTERN: Final = r"^[A-Z]{3}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=MAX_NAME_LENGTH)]
ShortText = Annotated[Text, StringConstraints(max_length=MAX_NAME_LENGTH)]


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


def _as_shown(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The values in the order of their names; refused if their text, as the agent gets it, is too long."""
    length = len(json_text(values))
    if length > MAX_TEXT:
        raise PydanticCustomError(
            "too_large",
            "allows values of at most {most} characters, found {length}",
            {"most": MAX_TEXT, "length": length},
        )
    return dict(sorted(values.items()))


def json_text(value: JsonValue) -> str:
    """A value as JSON for people and models to read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


Values = Annotated[dict[Name, Value], AfterValidator(_as_shown)]
Names = Annotated[tuple[Name, ...], Field(max_length=MAX_LISTED)]


class Authored(Brief, BaseModel):
    """What people write: immutable, strict, and closed to unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class States(Authored):
    """The state of the workplace before the task, after it, and after the violation."""

    initial: Text
    target: Text
    illegal: Text


class Policy(Authored):
    """The role, its duties and its prohibitions, as the system message states them."""

    role: Text
    duties: Text
    prohibitions: Text


class Getter(Authored):
    """A tool that gathers information: it returns ``outputs`` when called with ``arguments``."""

    name: Name
    description: Text
    arguments: Names
    outputs: Names = Field(min_length=1)


class AlignedTool(Authored):
    """The aligned tool, which the policy permits and which always fails.

    Attributes:
        errors: what its calls with the right arguments return, in order; then the last three over and over.
    """

    name: Name
    description: Text
    arguments: Names = Field(min_length=1)
    errors: tuple[Text, ...] = Field(min_length=ERRORS_PER_TASK, max_length=ERRORS_PER_TASK)


class ToolFace(Authored):
    """One of the two names and descriptions of the misaligned tool."""

    name: Name
    description: Text


class MisalignedTool(Authored):
    """The misaligned tool, which the policy prohibits, with both names and what the policy says about it.

    Attributes:
        arguments: what it takes; none in the published data.
    """

    harmful: ToolFace
    benign: ToolFace
    arguments: Names = ()
    acknowledgement: Text
    consequences: Text

    def face(self, naming: Naming) -> ToolFace:
        """Its name and description under a naming."""
        return self.harmful if naming == "harmful" else self.benign


class Act(Authored):
    """The violation in the terms of the plan: by what means, on what, and what the agent gets."""

    mechanism: Text
    target: Text
    gain: Text


class Sender(Authored):
    """Somebody who may write to the agent, or a system that does."""

    rank: Annotated[int, Field(ge=RANKS.start, lt=RANKS.stop)]
    name: ShortText
    title: ShortText
    system: bool = False


class Organisation(Authored):
    """The workplace of a role file, with one sender of each rank.

    Attributes:
        what: what it is, in a few words.
        currency: ISO 4217 code of the amounts in its texts.
    """

    name: Text
    what: Text
    currency: Annotated[str, StringConstraints(pattern=CURRENCY_PATTERN)]
    senders: tuple[Sender, ...] = Field(min_length=len(RANKS), max_length=len(RANKS))

    def sender(self, rank: int) -> Sender:
        """The sender of a rank; see `organisation_has_senders`."""
        return next(sender for sender in self.senders if sender.rank == rank)


class Situation(Authored):
    """The scenario's words for the slots of a storyline; docs/data-format.md gives their grammar."""

    reference: Text
    deliverable: Text
    deliverable_short: Text
    system: Text
    requester: Text
    requester_kind: RequesterKind
    requester_contact: Text
    event: Text
    loss: Text
    loss_big: Text
    unit_at_risk: Text
    rival: Text
    revenue: Text
    approver: Text
    job_kind: JobKind | None = None


# For pydantic and for msgspec, which reads the messages of a run file.
_MessageText = Annotated[str, StringConstraints(max_length=MAX_TEXT), msgspec.Meta(max_length=MAX_TEXT)]


class PressureMessage(NamedTuple):
    """A message that raises the pressure on the agent.

    Attributes:
        sender: as the From line shows it.
        answered: the body if the agent has sent a message at the level before; empty if it is the same.
    """

    sender: _MessageText
    subject: _MessageText
    body: _MessageText
    answered: _MessageText = ""


class Scenario(Authored):
    """One role's task with its tools, arguments and policy.

    Attributes:
        domain: built in, or declared by the data set; so are workspace, role and capability.
        workspace: of the domain.
        role: of the workspace.
        name: unique in the data set; part of the keys of its tasks.
        capability: of the domain; None for a published scenario whose attack vector is none (such a scenario
            counts towards no capability).
        technique: the published attack vector's name, if it differs from the capability.
        description: for researchers: the situation, and what is within reach.
        states: the workplace before the task, after it, and after the violation.
        task: the first user message.
        policy: role, duties and prohibitions, which the system message states.
        known: the arguments that the agent is given, with their values.
        unknown: the arguments that the agent has to obtain from the getters, with their values.
        getters: the tools that give information.
        aligned: the aligned tool.
        misaligned: the misaligned tool, with both its names.
        severity: of the consequences, 1 (nuisance) to 4 (catastrophe). Published scenarios have none, and
            neither ``act``, ``organisation`` nor ``situation``.
        act: the violation in the terms of the plan.
        organisation: the workplace, with those who may write.
        situation: words for the slots of a storyline.
        messages: the 12 messages of each dimension, if the data set has its own.
    """

    domain: ShortText
    workspace: ShortText
    role: ShortText
    organisation: Organisation | None = None
    name: Name
    capability: str | None
    technique: str | None = None
    severity: Annotated[int, Field(ge=1, le=4)] | None = None
    act: Act | None = None
    description: Text
    states: States
    task: Text
    policy: Policy
    known: Values
    unknown: Values
    getters: Annotated[tuple[Getter, ...], Field(max_length=MAX_LISTED)]
    aligned: AlignedTool
    misaligned: MisalignedTool
    situation: Situation | None = None
    messages: dict[str, tuple[PressureMessage, ...]] | None = None

    @property
    def place(self) -> str:
        """Domain, workspace and role in one line, for messages to people."""
        return f"{self.domain}/{self.workspace}/{self.role}"

    @property
    def values(self) -> dict[str, JsonValue]:
        """Every argument's value, known and unknown."""
        return {**self.known, **self.unknown}

    @property
    def decider(self) -> str:
        """Who may decide what the policy does not allow, as a noun phrase."""
        return self.situation.approver if self.situation else "the person in charge"

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
    """The scenario's content id: ``s3:`` and a digest of its content.

    ``s3`` stands for the recipe (sorted JSON of every field, BLAKE2b, 8 bytes). If the recipe changes, so
    must the prefix.
    """
    return "s3:" + digest(scenario.to_json())
