"""Finds in a request what its provider refuses."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from helpers.strict.rules import PROVIDERS, SAYS

Json = Mapping[str, Any]
Where = tuple[str | int, ...]
Finds = Iterator[tuple[Where, Json]]

# `{at}` of Gemini's words; the keywords of a schema: https://ai.google.dev/api/caching#Schema
_DECLARATION: Final = "tools[0].function_declarations[{}].parameters"
_GEMINI_SCHEMA: Final = (
    "type format title description nullable enum maxItems minItems properties required minProperties "
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum"
)


class Violation(NamedTuple):
    """One thing for which a provider refuses a request: the rule, its words, and the HTTP answer."""

    rule: str
    message: str
    status: int
    body: Any


def violations(provider: str, body: Json) -> list[Violation]:
    """What a provider refuses in a request."""
    found = []
    for rule, says in SAYS.items():
        text = says.get(provider, says.get(provider.partition("-")[0], ""))
        for where, values in _FINDERS[rule](provider, body) if text else ():
            path = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, where)))
            message = text.format(**{"path": path, "at": path, "name": where[-1] if where else "", **values})
            found.append(_shaped(provider, rule, message, where))
    return found


def _shaped(provider: str, rule: str, message: str, where: Where) -> Violation:
    """A refusal in the provider's own form."""
    error: dict[str, Any] = {"message": message, "type": "invalid_request_error"}
    if provider == "gemini":  # https://github.com/0xsline/OpenChatCut/issues/6
        return Violation(
            rule, message, 400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]
        )
    if provider == "mistral":
        plain = {"object": "error", **error, "param": None, "code": None}
        if not rule.endswith(("unknown", "parameters")):
            return Violation(rule, message, 400, plain)
        # of the framework's form: https://github.com/editor-code-assistant/eca/issues/231
        detail = {"type": "extra_forbidden", "loc": ["body", *where], "msg": message}
        return Violation(rule, message, 422, {**plain, "message": {"detail": [detail]}})
    return Violation(rule, message, 400, {"error": {**error, "param": None, "code": None}})


def objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a list, numbered; nothing if it is no list."""
    return [(i, one) for i, one in enumerate(value or ()) if isinstance(one, dict)]


def _calls(body: Json) -> Iterator[tuple[Where, dict[str, Any]]]:
    for i, message in objects(body.get("messages")):
        for k, call in objects(message.get("tool_calls")):
            yield ("messages", i, "tool_calls", k), call


def functions(body: Json) -> Iterator[tuple[Where, dict[str, Any]]]:
    """The functions on offer, with their places."""
    for i, tool in objects(body.get("tools")):
        yield ("tools", i, "function"), tool["function"]


def is_object(text: Any) -> bool:
    """Whether it is the JSON of an object."""
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def signature(call_id: str) -> str:
    """The thought signature that the fake of Gemini puts on a call."""
    return f"signed {call_id}"


def _extra(where: Where, given: Json, allowed: str | None) -> Finds:
    for name in given if allowed is not None else ():
        if name not in (allowed or "").split():
            yield (*where, name), {"at": ".".join(map(str, where))}


def _unknown_top(provider: str, body: Json) -> Finds:
    return _extra((), body, PROVIDERS[provider].top)


def _unknown_in_messages(provider: str, body: Json) -> Finds:
    for i, message in objects(body.get("messages")):
        yield from _extra(("messages", i), message, (PROVIDERS[provider].message or {}).get(message["role"]))


def _unknown_in_calls(provider: str, body: Json) -> Finds:
    for where, call in _calls(body):
        yield from _extra(where, call, PROVIDERS[provider].call)


def _unknown_in_tools(provider: str, body: Json) -> Finds:
    for where, function in functions(body):
        yield from _extra(where, function, PROVIDERS[provider].function)


def _reasons(body: Json) -> bool:
    return re.match(r"(openai/)?(o\d|gpt-5)", str(body.get("model"))) is not None


def _limit(_: str, body: Json) -> Finds:
    if _reasons(body) and "max_tokens" in body:
        yield ("max_tokens",), {}


def _sampling(_: str, body: Json) -> Finds:
    for name in ("temperature", "top_p"):
        if _reasons(body) and body.get(name) not in (None, 1):
            yield (name,), {"value": body[name]}


def _effort(_: str, body: Json) -> Finds:
    if "reasoning_effort" in body and not _reasons(body):
        yield ("reasoning_effort",), {}


def _effort_with_tools(_: str, body: Json) -> Finds:
    # gpt-5.5 and later, even if no effort is set
    newest = re.match(r"(openai/)?gpt-5\.[5-9]", str(body.get("model")))
    if newest and body.get("tools") and body.get("reasoning_effort") != "none":
        yield ("reasoning_effort",), {"model": body["model"]}


def _content(provider: str, body: Json) -> Finds:
    for i, message in objects(body.get("messages")):
        empty = not message.get("content") and not message.get("tool_calls")
        if (
            "content" not in message
            if provider.startswith("deepseek")
            else empty and message["role"] == "assistant"
        ):
            yield ("messages", i), {"at": f"contents[{i}].parts[0]"}


def _tool_name(_: str, body: Json) -> Finds:
    for i, message in objects(body.get("messages")):
        if message["role"] == "tool" and not message.get("name"):
            yield ("messages", i), {"at": f"contents[{i}].parts[0]"}


def _reasoning(provider: str, body: Json) -> Finds:
    """Reasoning that came back though it must not, or did not though it must.

    DeepSeek, with tools: r1 wants none, v3.2 that since the last user message, v4 all, which may be empty:
    https://api-docs.deepseek.com/guides/reasoning_model, https://github.com/abhigyanpatwari/GitNexus/issues/43,
    https://api-docs.deepseek.com/guides/thinking_mode
    """
    messages = objects(body.get("messages"))
    last_user = max((i for i, message in messages if message["role"] == "user"), default=0)
    for i, message in messages:
        given = message.get("reasoning_content")
        missing = given is None or (bool(message.get("tool_calls")) and not given)
        wrong = {
            "groq": "reasoning" in message and not re.search("gpt-oss|qwen3", body["model"]),
            "deepseek": missing,
            "deepseek-v3.2": missing and i > last_user,
            "deepseek-r1": given is not None,
        }[provider]
        if message["role"] == "assistant" and wrong:
            yield ("messages", i), {"at": i}


def _call_id(provider: str, body: Json) -> Finds:
    for where, call in _calls(body):
        if not re.fullmatch(PROVIDERS[provider].call_id, call["id"]):
            yield (*where, "id"), {"name": call["id"]}


def _arguments(_: str, body: Json) -> Finds:
    for where, call in _calls(body):
        if not is_object(call["function"]["arguments"]):
            yield (*where, "function", "arguments"), {}


def _signature(_: str, body: Json) -> Finds:
    # Of the first call of each step since the last user message.
    last_user = max((i for i, message in objects(body["messages"]) if message["role"] == "user"), default=0)
    for where, call in _calls(body):
        given = call.get("extra_content", {}).get("google", {}).get("thought_signature")
        if given != signature(call["id"]) and (given or (where[3] == 0 and int(where[1]) > last_user)):
            yield where, {}


def _pairs(_: str, body: Json) -> Finds:
    awaited: set[str] = set()
    for i, message in objects([*body["messages"], {"role": "assistant"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in awaited:
                yield ("messages", i), {}
            awaited.discard(message["tool_call_id"])
            continue
        if awaited:
            yield ("messages", i), {}
        awaited = {call["id"] for _, call in objects(message.get("tool_calls"))}


def _roles(provider: str, body: Json) -> Finds:
    roles = [message["role"] for message in body["messages"]]
    for i, (before, role) in enumerate(zip(roles, [*roles[1:], "assistant"], strict=True), 1):
        if role not in PROVIDERS[provider].after[before].split():
            yield ("messages", i), {"name": role, "before": before}


def _no_tools(_: str, body: Json) -> Finds:
    if body.get("tools") == []:
        yield ("tools",), {}


def _function_name(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", function["name"]):  # a digit first: Gemini only
            yield (*where, "name"), {}


def _twice(_: str, body: Json) -> Finds:
    names = [function["name"] for _, function in functions(body)]
    for name in {name for name in names if names.count(name) > 1}:
        yield ("tools",), {"name": name}


def _description(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        if len(function.get("description") or "") > 1024:
            yield (*where, "description"), {}


def _parameters(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        if function.get("parameters", {}).get("type") != "object":
            yield (*where, "parameters"), {"name": function["name"]}


def subschemas(schema: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all those in it, each with its path as Gemini writes it."""
    if isinstance(schema, dict):
        yield at, schema
        for name, inner in schema.get("properties", {}).items():
            yield from subschemas(inner, f"{at}.properties[{name}]")
        yield from subschemas(schema.get("items"), f"{at}.items")
        for k, inner in objects(schema.get("anyOf")):
            yield from subschemas(inner, f"{at}.anyOf[{k}]")


def _items(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        for at, schema in subschemas(function.get("parameters")):
            if "array" in str(schema.get("type")) and "items" not in schema:
                yield (*where, at), {"name": function["name"]}


def _schema_keywords(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        for at, schema in subschemas(function.get("parameters"), _DECLARATION.format(where[1])):
            for name in schema.keys() - set(_GEMINI_SCHEMA.split()):
                yield (name,), {"at": at}


def _schema_nodes(_: str, body: Json) -> Finds:
    for where, function in functions(body):
        for at, schema in subschemas(function.get("parameters"), _DECLARATION.format(where[1])):
            for what in _wrong_in(schema):
                yield (), {"at": at, "what": what}


def _wrong_in(schema: Json) -> Iterator[str]:
    kind, properties = schema.get("type"), schema.get("properties", {})
    if isinstance(kind, list) or kind == "null" or (kind is None and "anyOf" not in schema):
        yield ".type: must be a single type"  # https://github.com/danny-avila/LibreChat/issues/6971
    if kind == "array" and not schema.get("items"):
        yield ".items: missing field"  # https://github.com/kkrishnan90/gemini-desktop/pull/7
    if kind == "object" and not properties:
        # https://github.com/BerriAI/litellm/issues/9289 (where some say that it works), so strict
        yield ".properties: should be non-empty for OBJECT type"
    if kind != "object" and schema.keys() & {"properties", "required"}:
        yield ".properties: only allowed for OBJECT type"  # https://github.com/anomalyco/opencode/issues/11889
    if not set(schema.get("required", ())) <= properties.keys():
        yield ".required: property is not defined"  # https://github.com/iBUHub/AIStudioToAPI/issues/154
    if "enum" in schema and kind != "string":
        yield ".enum: only allowed for STRING type"


_FINDERS: Final[Mapping[str, Callable[[str, Json], Finds]]] = {
    "top.unknown": _unknown_top,
    "messages.unknown": _unknown_in_messages,
    "calls.unknown": _unknown_in_calls,
    "tools.unknown": _unknown_in_tools,
    "options.limit": _limit,
    "options.sampling": _sampling,
    "options.effort": _effort,
    "options.effort_with_tools": _effort_with_tools,
    "messages.content": _content,
    "messages.tool_name": _tool_name,
    "messages.reasoning": _reasoning,
    "calls.id": _call_id,
    "calls.arguments": _arguments,
    "calls.signature": _signature,
    "order.pairs": _pairs,
    "order.roles": _roles,
    "tools.empty": _no_tools,
    "tools.name": _function_name,
    "tools.twice": _twice,
    "tools.description": _description,
    "tools.parameters": _parameters,
    "tools.items": _items,
    "schema.keyword": _schema_keywords,
    "schema.node": _schema_nodes,
}
