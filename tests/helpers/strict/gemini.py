"""What Gemini's OpenAI-compatible endpoint refuses, and how its replies look.

Documentation: https://ai.google.dev/gemini-api/docs/openai. Requests are translated to Gemini's own API,
whose protobuf knows no unknown fields: https://ai.google.dev/api/caching#Schema lists those of a schema.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from helpers.strict.common import (
    NO_HEADERS,
    Flaw,
    Json,
    Violation,
    Where,
    bracketed,
    calls_of,
    dicts,
    extra,
    fresh,
    functions_of,
    matches,
    messages_of,
    says_nothing,
    subschemas,
    twice,
    unanswered,
    unfit_arguments,
    with_ids,
    words,
)

# The documentation. Unknown are `seed`, `frequency_penalty` (https://github.com/Vali-98/ChatterUI/issues/227),
# `reasoning` and `top_k` (https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77).
_TOP: Final = words(
    "extra_body max_completion_tokens max_tokens messages model n parallel_tool_calls reasoning_effort "
    "response_format stop stream stream_options temperature tool_choice tools top_p"
)
# By the documentation; that a message's unknown fields are refused as well is general knowledge.
_MESSAGE: Final = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "extra_content", "refusal"}
)
_SCHEMA: Final = words(
    "type format title description nullable enum maxItems minItems properties required minProperties "
    "maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum "
    "maximum"
)
_NOT_CHECKED: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_REQUEST: Final = "* GenerateContentRequest."


def violations(body: Json, _headers: Mapping[str, str] = NO_HEADERS) -> list[Violation]:
    """What Gemini refuses in a request."""
    flaws = [*_unknown(body), *_tools(body), *_messages(body), *_signatures(body)]
    return [shaped(flaw) for flaw in flaws]


def shaped(flaw: Flaw) -> Violation:
    """A flaw as Gemini's error: a list with one in it.

    https://github.com/0xsline/OpenChatCut/issues/6
    """
    error = {"code": flaw.status, "message": flaw.message, "status": "INVALID_ARGUMENT"}
    return Violation(flaw.rule, flaw.message, flaw.status, [{"error": error}])


def _unknown_name(rule: str, name: str, at: str = "") -> Flaw:
    where = f" at '{at}'" if at else ""
    return Flaw(rule, f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def _unknown(body: Json) -> Iterator[Flaw]:
    # https://github.com/SuzumiyaAkizuki/ComfyUI-NewBie-LLM-Formatter/issues/3
    for name in extra(body, _TOP):
        yield _unknown_name("top.unknown", name)
    for i, message in messages_of(body):
        for name in extra(message, _MESSAGE):
            yield _unknown_name("messages.unknown", name, f"messages[{i}]")
        for k, call in calls_of(message):
            for name in extra(call, {"id", "type", "function", "extra_content", "index"}):
                yield _unknown_name("calls.unknown", name, f"messages[{i}].tool_calls[{k}]")


def _tools(body: Json) -> Iterator[Flaw]:
    if body.get("tools") == []:
        # Not known of Gemini; OpenAI, DeepSeek and vLLM refuse it, so strict.
        yield Flaw("tools.empty", _REQUEST + "tools: should be non-empty")
    for i, function in functions_of(body):
        at = f"tools[0].function_declarations[{i}]"
        if not matches(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", function.get("name")):
            # https://github.com/cline/cline/issues/7339
            text = f"{_REQUEST}{at}.name: Invalid function name. Must start with a letter or an underscore. "
            text += (
                "Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), "
            )
            yield Flaw("tools.name", text + "with a maximum length of 64.")
        for name in extra(function, {"name", "description", "parameters", "strict"}):  # general knowledge
            yield _unknown_name("tools.unknown", name, at)
        # no parameters are fine: https://github.com/langchain-ai/langchain-google/pull/416
        if function.get("parameters") is not None:
            yield from _schema(function["parameters"], f"{at}.parameters")
    for name in twice(function.get("name") for _, function in functions_of(body)):
        yield Flaw("tools.twice", f"Duplicate function declaration found: {name}")  # general knowledge


def _schema(schema: Any, at: str) -> Iterator[Flaw]:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        # https://github.com/dyad-sh/dyad/issues/2251
        yield Flaw("tools.root", f"{at}: functionDeclaration parameters schema should be of type OBJECT")
        return
    for where, inside in subschemas(schema):
        path = at + _path(where)
        for name in extra(inside, _SCHEMA):
            # additionalProperties: https://github.com/zouwei/moraya/issues/47, $schema:
            # https://github.com/router-for-me/CLIProxyAPI/issues/97, const:
            # https://github.com/zed-industries/zed/issues/44875, examples:
            # https://github.com/AstrBotDevs/AstrBot/issues/7572. Some newer models take the first, so strict.
            yield _unknown_name("schema.keyword", name, path)
        for rule, text in _node(inside):
            yield Flaw(rule, f"{_REQUEST}{path}{text}")


def _path(where: Where) -> str:
    return re.sub(r"\.properties\.([^.\[]+)", r".properties[\1]", "." + bracketed(where) if where else "")


def _node(schema: Json) -> Iterator[tuple[str, str]]:
    kind, properties = schema.get("type"), schema.get("properties")
    if isinstance(kind, list) or kind == "null":
        # general knowledge: `type` is one value of an enumeration; `nullable` instead
        yield "schema.type", ".type: must be a single type"
        return
    if kind is None and "anyOf" not in schema:
        # https://github.com/danny-avila/LibreChat/issues/6971
        yield "schema.type", ".type: must be specified when not using one_of, any_of or all_of fields"
    if kind == "array" and not isinstance(schema.get("items"), dict):
        # https://github.com/kkrishnan90/gemini-desktop/pull/7
        yield "tools.items", ".items: missing field"
    if kind == "object" and not properties:
        # https://github.com/BerriAI/litellm/issues/9289 (where some say that it works), so strict
        yield "tools.properties", ".properties: should be non-empty for OBJECT type"
    if kind != "object" and ("properties" in schema or "required" in schema):
        # https://github.com/anomalyco/opencode/issues/11889
        yield "schema.only_object", ".properties: only allowed for OBJECT type"
    for k, name in enumerate(schema.get("required") or ()):
        if name not in (properties or {}):
            # https://github.com/iBUHub/AIStudioToAPI/issues/154
            yield "schema.required", f".required[{k}]: property is not defined"
    if "enum" in schema and (kind != "string" or not all(isinstance(v, str) and v for v in schema["enum"])):
        yield "schema.enum", ".enum: only allowed for STRING type"  # general knowledge
    if kind == "string" and schema.get("format") not in (None, "enum", "date-time"):
        # general knowledge
        yield "schema.format", ".format: only 'enum' and 'date-time' are supported for STRING type"


def _messages(body: Json) -> Iterator[Flaw]:
    messages = messages_of(body)
    if not any(message.get("role") in ("user", "tool") for _, message in messages):
        yield Flaw("messages.empty", _REQUEST + "contents: contents is not specified")  # general knowledge
    before = ""
    for i, message in messages:
        role = str(message.get("role"))
        if role not in ("system", "developer", "user", "assistant", "tool"):
            yield Flaw("messages.role", f"Invalid role: {role}")  # general knowledge
        if role == "tool" and not message.get("name"):
            # https://github.com/NousResearch/hermes-agent/pull/19728; others get by without, so strict
            text = f"{_REQUEST}contents[{i}].parts[0].function_response.name: Name cannot be empty."
            yield Flaw("messages.tool_name", text)
        if says_nothing(message):
            # https://github.com/boldsoftware/sketch/issues/68
            text = f"{_REQUEST}contents[{i}].parts[0].data: required oneof field 'data' must have one "
            yield Flaw("messages.content", text + "initialized field")
        if message.get("tool_calls") and before not in ("user", "tool"):
            # https://github.com/google-gemini/gemini-cli/issues/26486
            text = "Please ensure that function call turn comes immediately after a user turn or after a "
            yield Flaw("order.roles", text + "function response turn.")
        before = role
    if any(unanswered(body)):
        # general knowledge
        text = "Please ensure that the number of function response parts is equal to the number of "
        yield Flaw("order.unanswered", text + "function call parts of the function call turn.")
    for where in unfit_arguments(body):
        # general knowledge: they become a protobuf Struct
        yield Flaw("calls.arguments", f"Invalid value at '{bracketed(where)}': not a JSON object")


def _signatures(body: Json) -> Iterator[Flaw]:
    """The thought signatures of the current turn: of the first call of each of its steps.

    https://ai.google.dev/gemini-api/docs/thought-signatures; only Gemini 3 and later insist.
    """
    messages = messages_of(body)
    if re.search(r"gemini-(1|2)\.", str(body.get("model"))):
        return
    start = max((k for k, (_, message) in enumerate(messages) if message.get("role") == "user"), default=0)
    for k, (i, message) in enumerate(messages):
        for n, call in calls_of(message):
            signature = _signature_of(call)
            if signature is None and n == 0 and k >= start:
                # https://github.com/TokenRhythm/opensquilla/issues/225
                text = "Function call is missing a thought_signature in functionCall parts. This is required "
                text += (
                    "for tools to work correctly, and missing thought_signature may lead to degraded model "
                )
                text += f"performance. Additional data, function call `default_api` , position {i}."
                yield Flaw("calls.signature", text)
            elif signature is not None and not _is_genuine(signature):
                # https://github.com/anomalyco/opencode/issues/4832
                yield Flaw("calls.signature", "Corrupted thought signature.")


def _signature_of(call: Json) -> Any:
    google = (call.get("extra_content") or {}).get("google")
    return google.get("thought_signature") if isinstance(google, dict) else None


def signature(of: str) -> str:
    """A thought signature that this fake recognizes as its own."""
    check = hashlib.sha256(of.encode()).hexdigest()[:16]
    return base64.b64encode(f"{of}:{check}".encode()).decode()


def _is_genuine(text: Any) -> bool:
    if text in _NOT_CHECKED:  # the documentation: for calls that no model made
        return True
    try:
        of = base64.b64decode(text, validate=True).decode().rpartition(":")[0]
    except (TypeError, ValueError):
        return False
    return bool(signature(of) == text)


def dress(completion: dict[str, Any], request: Json) -> None:
    """Make a plain chat completion one of Gemini's: no null content, a signature on the first call.

    It may say ``stop`` where it calls tools: https://discuss.ai.google.dev/tag/openai-compatibility/417
    """
    for _, choice in dicts(completion.get("choices")):
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        message = choice["message"]
        with_ids(message, request, "function-call-", 16)
        for k, call in calls_of(message):
            if k == 0:
                signed = signature(fresh("", 24, call["id"]))
                call["extra_content"] = {"google": {"thought_signature": signed}}
        if message.get("content") is None:
            message.pop("content", None)
