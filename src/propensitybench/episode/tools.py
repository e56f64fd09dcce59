"""The proxy tools of one scenario: what they look like, and what a call of one amounts to."""

from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import ToolCall, ToolSpec
from propensitybench.digests import shuffled
from propensitybench.episode import prompt
from propensitybench.episode.events import Event
from propensitybench.scenarios.model import Scenario
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


class ToolResult(NamedTuple):
    """A call, judged: its event, and the text that answers it."""

    event: Event
    answer: str


class Toolbox:
    """The tools of a scenario under a naming. Holds no state of an episode: one serves many.

    Args:
        scenario: whose tools these are.
        naming: which face the misaligned tool shows.
    """

    def __init__(self, scenario: Scenario, naming: Naming) -> None:
        values = scenario.values
        self._values = values
        self._getters = {getter.name: getter for getter in scenario.getters}
        self._answers = {
            getter.name: msgspec.json.encode(
                {name: {"type": json_type(values[name]), "value": values[name]} for name in getter.outputs}
            ).decode()
            for getter in scenario.getters
        }
        self._aligned = scenario.aligned
        self.misaligned = prompt.face(scenario, naming).name
        self.specs = tuple(self._specs(scenario, naming))

    def _specs(self, scenario: Scenario, naming: Naming) -> list[ToolSpec]:
        faces = prompt.face(scenario, naming)
        aligned = scenario.aligned
        specs = [ToolSpec(g.name, g.description, self._parameters(g.arguments)) for g in scenario.getters]
        specs.append(ToolSpec(aligned.name, aligned.description, self._parameters(aligned.arguments)))
        specs.append(ToolSpec(faces.name, faces.description, self._parameters(())))
        # In the order of a digest, so that the misaligned tool has no place of its own in the list,
        # the same one under both namings.
        return [specs[i] for i in shuffled(range(len(specs)), scenario.name)]

    def _parameters(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: json_schema(self._values[name]) for name in names},
            "required": list(names),
        }

    def knows(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return name in self._getters or name in (self._aligned.name, self.misaligned)

    def is_aligned(self, name: str) -> bool:
        """Whether that is the aligned tool's name."""
        return name == self._aligned.name

    def call(self, call: ToolCall, seed: int, earlier_errors: int) -> ToolResult:
        """What a call of a getter or of the aligned tool amounts to.

        Args:
            call: the call; its tool exists and is not the misaligned one.
            seed: the task's seed, which orders the aligned tool's errors.
            earlier_errors: how many of those errors this episode has shown.
        """
        getter = self._getters.get(call.name)
        expected = self._aligned.arguments if getter is None else getter.arguments
        complaint = self._complaint(call, expected)
        if complaint:
            return ToolResult(Event.ARGUMENTS_WRONG, prompt.wrong_arguments(complaint))
        if getter is not None:
            return ToolResult(Event.GETTER_CALLED, self._answers[call.name])
        errors = self._aligned.errors
        order = shuffled(range(len(errors)), seed, "errors")
        error = errors[order[earlier_errors % len(errors)]]
        return ToolResult(Event.ALIGNED_CALLED, prompt.backend_error(error))

    def _complaint(self, call: ToolCall, expected: tuple[str, ...]) -> str:
        """What is wrong with a call's arguments; never tells a value that the agent does not have."""
        try:
            given = _VALUES.decode(call.arguments or "{}")
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return f"the arguments of {call.name!r} are not valid JSON"
        if not isinstance(given, dict):
            return f"the arguments of {call.name!r} must be one JSON object"
        missing = [name for name in expected if name not in given]
        if missing:
            return f"{call.name!r} is missing the argument {', '.join(map(repr, missing))}"
        surplus = [name for name in given if name not in expected]
        if surplus:
            return f"{call.name!r} takes no argument {', '.join(map(repr, surplus))}"
        for name in expected:
            if not same_json(given[name], self._values[name]):
                return f"the value of the argument {name!r} is wrong; expected {self._hint(name)}"
        return ""

    def _hint(self, name: str) -> str:
        value = self._values[name]
        if isinstance(value, list):
            return f"an array of length {len(value)}"
        if isinstance(value, dict):
            return f"an object with {len(value)} keys"
        return f"another {json_type(value)}"


def json_type(value: Any) -> str:
    """The JSON Schema name of a value's type."""
    return _TYPES[type(value)]


def json_schema(value: Any) -> dict[str, Any]:
    """The JSON Schema of values like this one: every array with its items, every object with its keys.

    It allows further keys: endpoints differ in whether they take ``additionalProperties``, and the tools
    check their arguments themselves.
    """
    if isinstance(value, dict):
        keys = {key: json_schema(inner) for key, inner in value.items()}
        return {"type": "object", "properties": keys, "required": list(keys)}
    if isinstance(value, list):
        return {"type": "array", "items": _merged([json_schema(item) for item in value])}
    return {"type": json_type(value)}


def _merged(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for the items of an array."""
    different = list({msgspec.json.encode(schema): schema for schema in schemas}.values())
    types = {schema["type"] for schema in different if "type" in schema}
    if len(different) == 1:
        return different[0]
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
    # An array without items says nothing of them; text is what every endpoint accepts.
    return {"anyOf": different} if different else {"type": "string"}


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
