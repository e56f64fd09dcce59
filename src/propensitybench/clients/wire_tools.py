"""Tools as an endpoint accepts them: their names, descriptions and schemas."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from propensitybench.chat import Message, Reply, ToolSpec
from propensitybench.clients.dialect import ChatDialect
from propensitybench.digests import digest

# OpenAI, Groq, Mistral and DeepSeek document this form; Gemini wants a letter or underscore first.
_ACCEPTED: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NOT_ACCEPTED: Final = re.compile(r"[^a-zA-Z0-9_-]+")
# 48 of the name, a separator and 8 digits of its digest stay below 64.
_KEPT: Final = 48
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)")
# Gemini refuses an object without properties; the key is removed from the arguments of calls.
PLACEHOLDER_KEY: Final = "leave_out"
_PLACEHOLDER_SCHEMA: Final = {"type": "string", "description": "Leave this out.", "nullable": True}
_GEMINI_KEYWORDS: Final = frozenset(("type", "description", "enum", "required", "nullable"))


@lru_cache(maxsize=4096)
def wire_name(name: str) -> str:
    """A tool's name on the wire: the name itself, or a short form of it that depends on nothing else."""
    if _ACCEPTED.fullmatch(name):
        return name
    kept = _NOT_ACCEPTED.sub("_", name)[:_KEPT]
    return f"{kept if kept[:1].isalpha() else 'tool_' + kept}_{digest(name)[:8]}"


def on_wire(tool: ToolSpec) -> ToolSpec:
    """A tool under its name on the wire; a shortened name is given in full in the description.

    The system message may mention the tool by its full name.
    """
    name = wire_name(tool.name)
    if name == tool.name:
        return tool
    return ToolSpec(name, f"Full name: {tool.name}. {tool.description}", tool.parameters)


def with_wire_names(message: Message) -> Message:
    """A message whose tool calls have their names on the wire."""
    if all(wire_name(call.name) == call.name for call in message.tool_calls):
        return message
    made = tuple(msgspec.structs.replace(call, name=wire_name(call.name)) for call in message.tool_calls)
    return msgspec.structs.replace(message, tool_calls=made)


def with_full_names(reply: Reply, tools: Sequence[ToolSpec]) -> Reply:
    """A reply whose calls of these tools have the tools' own names."""
    full = {wire_name(tool.name): tool.name for tool in tools}
    if all(full.get(call.name, call.name) == call.name for call in reply.tool_calls):
        return reply
    calls = tuple(
        msgspec.structs.replace(call, name=full.get(call.name, call.name)) for call in reply.tool_calls
    )
    return msgspec.structs.replace(reply, tool_calls=calls)


def encode_tool(tool: ToolSpec, dialect: ChatDialect) -> dict[str, Any]:
    """A tool on offer, as an endpoint of that dialect accepts it.

    What is beyond the longest description becomes the description of the parameters.
    """
    tool = on_wire(tool)
    description, rest = split_description(tool.description, dialect.description_limit)
    function: dict[str, Any] = {"name": tool.name, "description": description}
    if tool.parameters.get("properties") or dialect.no_arguments == "empty object" or rest:
        schema = gemini_schema(tool.parameters) if dialect.schema == "gemini" else tool.parameters
        function["parameters"] = {**schema, "description": rest} if rest else schema
    return {"type": "function", "function": function}


def with_tools(dialect: ChatDialect, tools: Sequence[ToolSpec]) -> ChatDialect:
    """The dialect with the names of the tools that look different on the wire."""
    short = {tool.name: name for tool in tools if (name := wire_name(tool.name)) != tool.name}
    split = {
        tool.name
        for tool in tools
        if split_description(on_wire(tool).description, dialect.description_limit)[1]
    }
    return msgspec.structs.replace(
        dialect, short_names=dict(sorted(short.items())), split_descriptions=tuple(sorted(split))
    )


def split_description(text: str, limit: int) -> tuple[str, str]:
    """A description up to the last sentence, or else word, that ends within the limit, and the rest."""
    if not limit or len(text) <= limit:
        return text, ""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, limit + 1)]
    cut = max((end for end in ends if end <= limit), default=0) or text.rfind(" ", 1, limit + 1)
    cut = cut if cut > 0 else limit
    return text[:cut].rstrip(), text[cut:].lstrip()


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in Gemini's subset: known keywords, one type each, ``nullable``, no empty object.

    Source: https://ai.google.dev/api/caching#Schema
    """
    if "anyOf" in schema:
        return _gemini_choice(schema)
    if schema.get("type") == "null":
        return {"type": "string", "nullable": True}
    made = {key: value for key, value in schema.items() if key in _GEMINI_KEYWORDS}
    if made.get("type") == "array":
        made["items"] = gemini_schema(schema.get("items") or {"type": "string"})
    if made.get("type") == "object":
        properties = {key: gemini_schema(inner) for key, inner in schema.get("properties", {}).items()}
        made["properties"] = properties or {PLACEHOLDER_KEY: _PLACEHOLDER_SCHEMA}
        if not made.get("required"):
            made.pop("required", None)
    return made


def _gemini_choice(schema: Mapping[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
    made = [gemini_schema(choice) for choice in choices] or [{"type": "string"}]
    whole = made[0] if len(made) == 1 else {"anyOf": made}
    return {**whole, "nullable": True} if len(choices) < len(schema["anyOf"]) else whole


def drop_placeholder_keys(arguments: str) -> str:
    """The arguments of a call without the keys that stand for nothing; as they are if there are none."""
    if f'"{PLACEHOLDER_KEY}"' not in arguments:
        return arguments
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
    return msgspec.json.encode(_cleaned(found)).decode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleaned(inner) for key, inner in value.items() if key != PLACEHOLDER_KEY}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
