"""What the providers' rules share: how to walk a request, and how a violation is written down."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

Json = Mapping[str, Any]
Where = tuple[str | int, ...]
NO_HEADERS: Final[Mapping[str, str]] = {}

_BRANCHES: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS: Final = ("properties", "$defs", "definitions", "patternProperties")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Violation(NamedTuple):
    """One thing for which a provider refuses a request.

    Attributes:
        rule: its name in this package, such as ``tools.items``.
        message: what the provider says.
        status, body: of the HTTP answer, in the provider's own shape.
    """

    rule: str
    message: str
    status: int
    body: Any


class Flaw(NamedTuple):
    """A violation before a provider gave it a shape.

    Attributes:
        where: path to the culprit in the request.
        code: the provider's code or type for it.
        given: what stood there.
    """

    rule: str
    message: str
    where: Where = ()
    code: str | None = None
    status: int = 400
    given: Any = None


def words(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())


def bracketed(where: Where) -> str:
    """A path as OpenAI writes it: ``messages[1].tool_calls[0].id``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def dotted(where: Where) -> str:
    """A path as Anthropic and Groq write it: ``messages.1.content.0``."""
    return ".".join(map(str, where))


def dicts(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a list, numbered; nothing if it is no list."""
    return (
        [(i, item) for i, item in enumerate(value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def messages_of(body: Json) -> list[tuple[int, dict[str, Any]]]:
    """The messages, numbered."""
    return dicts(body.get("messages"))


def calls_of(message: Json) -> list[tuple[int, dict[str, Any]]]:
    """The tool calls of a message, numbered."""
    return dicts(message.get("tool_calls"))


def functions_of(body: Json) -> list[tuple[int, dict[str, Any]]]:
    """The functions on offer, each with the number of its tool."""
    return [(i, f) for i, tool in dicts(body.get("tools")) if isinstance(f := tool.get("function"), dict)]


def function_of(call: Json) -> dict[str, Any]:
    """The function of a tool call; empty if it has none."""
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def extra(given: Json, allowed: Collection[str]) -> list[str]:
    """The fields that are not among those allowed."""
    return [name for name in given if name not in allowed]


def twice(names: Iterable[Any]) -> list[str]:
    """The names that come more than once."""
    return [name for name, times in Counter(n for n in names if isinstance(n, str)).items() if times > 1]


def is_object(arguments: Any) -> bool:
    """Whether it is the JSON of an object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        return False


def unfit_arguments(body: Json) -> Iterator[Where]:
    """Where the arguments of an earlier tool call are not the JSON of an object."""
    for i, message in messages_of(body):
        for k, call in calls_of(message):
            if not is_object(function_of(call).get("arguments")):
                yield ("messages", i, "tool_calls", k, "function", "arguments")


class Unanswered(NamedTuple):
    """Tool calls without an answer directly behind them, or (``stray``) an answer without its call."""

    at: int
    ids: tuple[str, ...]
    stray: bool


def unanswered(body: Json) -> Iterator[Unanswered]:
    """Where tool calls and tool messages do not match."""
    asked_at = -1
    awaited: list[str] = []
    for i, message in messages_of(body):
        if message.get("role") == "tool":
            answered = str(message.get("tool_call_id"))
            if answered in awaited:
                awaited.remove(answered)
            else:
                yield Unanswered(i, (answered,), stray=True)
            continue
        if awaited:
            yield Unanswered(asked_at, tuple(awaited), stray=False)
        asked_at, awaited = i, [str(call.get("id")) for _, call in calls_of(message)]
    if awaited:
        yield Unanswered(asked_at, tuple(awaited), stray=False)


def says_nothing(message: Json) -> bool:
    """Whether an assistant's message has neither content nor tool calls."""
    return message.get("role") == "assistant" and not message.get("content") and not message.get("tool_calls")


def subschemas(schema: Any, where: Where = ()) -> Iterator[tuple[Where, dict[str, Any]]]:
    """A schema and all those in it, each with its path."""
    if not isinstance(schema, dict):
        return
    yield where, schema
    for name in _MAPS:
        inside = schema.get(name)
        for key, value in inside.items() if isinstance(inside, dict) else ():
            yield from subschemas(value, (*where, name, key))
    for name in _BRANCHES:
        for k, value in dicts(schema.get(name)):
            yield from subschemas(value, (*where, name, k))
    for name in ("items", "additionalProperties", "not"):
        yield from subschemas(schema.get(name), (*where, name))


def types_of(schema: Json) -> list[str]:
    """The types that a schema names."""
    given = schema.get("type")
    return [given] if isinstance(given, str) else list(given) if isinstance(given, list) else []


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def mismatches(schema: Any, value: Any, at: str = "") -> list[str]:
    """In what a value does not fit a schema; knows what tools use, not all of JSON Schema."""
    if not isinstance(schema, dict):
        return []
    types = types_of(schema)
    if types and not any(_is_of(value, name) for name in types):
        return [f"`{at or '/'}`: expected {' or '.join(types)}, but got {_name(value)}"]
    wrong = []
    if "enum" in schema and value not in schema["enum"]:
        wrong.append(f"`{at or '/'}`: value must be one of {schema['enum']}")
    if "anyOf" in schema and all(mismatches(branch, value, at) for branch in schema["anyOf"]):
        wrong.append(f"`{at or '/'}`: does not fit any of the alternatives")
    if isinstance(value, dict):
        wrong += _object_mismatches(schema, value, at)
    if isinstance(value, list):
        for k, item in enumerate(value):
            wrong += mismatches(schema.get("items"), item, f"{at}/{k}")
    return wrong


def _object_mismatches(schema: Json, value: Json, at: str) -> list[str]:
    known: Json = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or () if name not in value]
    wrong = [f"missing properties: {', '.join(repr(name) for name in missing)}"] if missing else []
    if schema.get("additionalProperties") is False and (odd := extra(value, known)):
        wrong.append(f"additionalProperties {', '.join(repr(name) for name in odd)} not allowed")
    for name, given in value.items():
        wrong += mismatches(known.get(name), given, f"{at}/{name}")
    return wrong


def _name(value: Any) -> str:
    return next((name for name in _TYPES if _is_of(value, name)), "nothing")


def in_full(request: Json) -> dict[str, Any]:
    """A request with what may be left out of it, and with content as text, as behaviours expect it."""
    body: dict[str, Any] = json.loads(json.dumps(request))
    for _, function in functions_of(body):
        function.setdefault("description", "")
        schema = function.get("parameters") or {"type": "object"}
        function["parameters"] = {"properties": {}, "required": [], **schema}
    for _, message in messages_of(body):
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(str(chunk.get("text", "")) for _, chunk in dicts(content))
        message["content"] = content
    return body


def fresh(prefix: str, length: int, *of: Any) -> str:
    """An id of letters and digits that depends on what it is of and on nothing else."""
    return prefix + hashlib.sha256(json.dumps(of, default=str).encode()).hexdigest()[:length]


def with_ids(message: dict[str, Any], request: Json, prefix: str, length: int) -> None:
    """Give a reply's tool calls ids in a provider's own form, not used before in the conversation."""
    for k, call in calls_of(message):
        call["id"] = fresh(prefix, length, len(messages_of(request)), k, call.get("id"))


def matches(pattern: str, value: Any) -> bool:
    """Whether it is a string that fits as a whole."""
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None
