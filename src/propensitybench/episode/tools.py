"""The proxy tools of one scenario: their specifications, and the text that each call returns."""

from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import UNDECODABLE, ToolCall, ToolSpec
from propensitybench.digests import seed_from, shuffled
from propensitybench.episode import prompt
from propensitybench.episode.events import Event
from propensitybench.errors import BadInput
from propensitybench.scenarios.model import ERRORS_REPEATED, Scenario
from propensitybench.taxonomy import Naming

_VALUES: Final = msgspec.json.Decoder()
_TYPES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


# JSON types as a sentence needs them.
_A_TYPE: Final = {
    name: f"an {name}" if name[0] in "aio" else "null" if name == "null" else f"a {name}"
    for name in _TYPES.values()
}


_QUESTION: Final = "question"
_ASK: Final = ToolSpec(
    prompt.ASK_TOOL,
    prompt.ASK_DESCRIPTION,
    {"type": "object", "properties": {_QUESTION: {"type": "string"}}, "required": [_QUESTION]},
)


class _WrongArguments(Exception):
    """What is wrong with a call's arguments."""


class ToolResult(NamedTuple):
    """The event that a call amounts to, and the text that the tool returns."""

    event: Event
    text: str


class Toolbox:
    """The tools of a scenario under a naming. It holds no episode state, so episodes can share one.

    Args:
        scenario: the scenario.
        naming: which of its two names the misaligned tool shows.
        ask: whether there is a tool to ask those who may decide.

    Raises:
        BadInput: a tool of the scenario has the name of that tool.
    """

    def __init__(self, scenario: Scenario, naming: Naming, *, ask: bool = False) -> None:
        values = scenario.values
        self._values = values
        self._schemas = {name: json_schema(value) for name, value in values.items()}
        self._getters = {getter.name: getter for getter in scenario.getters}
        self._outputs = {
            getter.name: msgspec.json.encode(
                {name: {"type": json_type(values[name]), "value": values[name]} for name in getter.outputs}
            ).decode()
            for getter in scenario.getters
        }
        self._aligned = scenario.aligned
        self.misaligned = scenario.misaligned.face(naming).name
        self._noted = prompt.decision_noted(_decider(scenario)) if ask else ""
        self.specs = tuple(self._specs(scenario, naming))

    def _specs(self, scenario: Scenario, naming: Naming) -> list[ToolSpec]:
        face = scenario.misaligned.face(naming)
        aligned = scenario.aligned
        specs = [ToolSpec(g.name, g.description, self._parameters(g.arguments)) for g in scenario.getters]
        specs.append(ToolSpec(aligned.name, aligned.description, self._parameters(aligned.arguments)))
        misaligned = self._parameters(scenario.misaligned.arguments)
        specs.append(ToolSpec(face.name, face.description, misaligned))
        # Shuffled by the scenario's name, so that the misaligned tool has no fixed position in the list, and
        # the same position under both namings.
        order = [specs[i] for i in shuffled(range(len(specs)), scenario.name)]
        if self._noted:
            if prompt.ASK_TOOL in scenario.tool_names():
                raise BadInput(
                    f"{scenario.name}: has a tool named {prompt.ASK_TOOL!r}, which --ask would add; rename it"
                )
            order.insert(seed_from(scenario.name, prompt.ASK_TOOL) % (len(order) + 1), _ASK)
        return order

    def _parameters(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: self._schemas[name] for name in names},
            "required": list(names),
        }

    def has_tool(self, name: str) -> bool:
        """Whether a tool of that name exists."""
        if name == prompt.ASK_TOOL:
            return bool(self._noted)
        return name in self._getters or name in (self._aligned.name, self.misaligned)

    def is_aligned(self, name: str) -> bool:
        """Whether that is the aligned tool's name."""
        return name == self._aligned.name

    def call(self, call: ToolCall, earlier_errors: int) -> ToolResult:
        """The result of a call of any tool but the misaligned one.

        Args:
            call: the call; its tool exists and is not the misaligned one.
            earlier_errors: how many of the aligned tool's errors this episode has shown.
        """
        if call.name == prompt.ASK_TOOL:
            return self._asked(call)
        getter = self._getters.get(call.name)
        expected = self._aligned.arguments if getter is None else getter.arguments
        try:
            self._check_arguments(call, expected)
        except _WrongArguments as wrong:
            return ToolResult(Event.ARGUMENTS_WRONG, prompt.wrong_arguments(str(wrong)))
        if getter is not None:
            return ToolResult(Event.GETTER_CALLED, self._outputs[call.name])
        return ToolResult(Event.ALIGNED_CALLED, self._error(earlier_errors))

    def _asked(self, call: ToolCall) -> ToolResult:
        """The answer to a question to those who may decide."""
        try:
            question = _arguments_of(call, (_QUESTION,))[_QUESTION]
            if not isinstance(question, str) or not question.strip():
                raise _WrongArguments(f"invalid value for argument {_QUESTION!r}: expected a text")
        except _WrongArguments as wrong:
            return ToolResult(Event.ARGUMENTS_WRONG, prompt.wrong_arguments(str(wrong)))
        return ToolResult(Event.DECISION_ASKED, self._noted)

    def _error(self, earlier: int) -> str:
        errors = self._aligned.errors
        if earlier >= len(errors):
            earlier = len(errors) - ERRORS_REPEATED + (earlier - len(errors)) % ERRORS_REPEATED
        return errors[earlier]

    def _check_arguments(self, call: ToolCall, expected: tuple[str, ...]) -> None:
        """Raises `_WrongArguments`, which never reveals a value that the agent does not have."""
        given = _arguments_of(call, expected)
        for name in expected:
            value = self._values[name]
            if not same_json(given[name], value):
                raise _WrongArguments(
                    f"invalid value for argument {name!r}: expected {_expected(value, given[name])}"
                )


def _arguments_of(call: ToolCall, expected: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a call; raises `_WrongArguments` unless they have the expected names."""
    try:
        given = _VALUES.decode(call.arguments or "{}")
    except UNDECODABLE:
        raise _WrongArguments(f"the arguments of {call.name!r} are not valid JSON") from None
    if not isinstance(given, dict):
        raise _WrongArguments(f"the arguments of {call.name!r} must be a single JSON object")
    missing = [name for name in expected if name not in given]
    if missing:
        raise _WrongArguments(f"missing required {_arguments(missing)} for {call.name!r}")
    unexpected = [name for name in given if name not in expected]
    if unexpected:
        raise _WrongArguments(f"unexpected {_arguments(unexpected)} for {call.name!r}")
    return given


def _decider(scenario: Scenario) -> str:
    """Who may decide, at the beginning of a sentence."""
    return scenario.decider[:1].upper() + scenario.decider[1:]


def _arguments(names: list[str]) -> str:
    return f"argument{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _expected(value: Any, given: Any) -> str:
    """A hint at the right value: its length or its type, as in the published environment."""
    if isinstance(value, list):
        return f"an array of length {len(value)}"
    if isinstance(value, dict):
        return f"an object with {len(value)} {'key' if len(value) == 1 else 'keys'}"
    right, wrong = json_type(value), json_type(given)
    return f"a different {right}" if right == wrong else f"{_A_TYPE[right]}, got {_A_TYPE[wrong]}"


def json_type(value: Any) -> str:
    """The JSON Schema type of a value."""
    return _TYPES[type(value)]


def json_schema(value: Any) -> dict[str, Any]:
    """A JSON Schema that accepts the value: arrays have ``items``, objects ``properties`` and ``required``.

    There is no ``additionalProperties``, because some endpoints refuse it; the tools check their arguments
    themselves.
    """
    if isinstance(value, dict):
        keys = {key: json_schema(inner) for key, inner in value.items()}
        return {"type": "object", "properties": keys, "required": list(keys)}
    if isinstance(value, list):
        return {"type": "array", "items": _merged([json_schema(item) for item in value])}
    return {"type": json_type(value)}


def _merged(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema that accepts whatever any of the schemas accepts."""
    alternatives: list[dict[str, Any]] = [
        inner for schema in schemas for inner in schema.get("anyOf", [schema])
    ]
    different = list({msgspec.json.encode(schema): schema for schema in alternatives}.values())
    if len(different) == 1:
        return different[0]
    types = {schema["type"] for schema in different}
    if types == {"object"}:
        keys = dict.fromkeys(key for schema in different for key in schema["properties"])
        return {
            "type": "object",
            "properties": {
                key: _merged([s["properties"][key] for s in different if key in s["properties"]])
                for key in keys
            },
            "required": [key for key in keys if all(key in s["required"] for s in different)],
        }
    if types == {"array"}:
        return {"type": "array", "items": _merged([schema["items"] for schema in different])}
    if types == {"integer", "number"}:
        return {"type": "number"}
    # Endpoints refuse an array schema without items; an empty array gives no hint, so any type would do.
    return {"anyOf": different} if different else {"type": "string"}


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if left.__class__ is right.__class__ is str:  # nearly every value
        return bool(left == right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
