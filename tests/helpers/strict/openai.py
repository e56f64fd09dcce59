"""What OpenAI's chat completions refuse, and how their replies look.

API reference: https://platform.openai.com/docs/api-reference/chat/create
"""

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
    function_of,
    functions_of,
    matches,
    messages_of,
    subschemas,
    twice,
    types_of,
    unanswered,
    with_ids,
    words,
)

# The request body of the API reference.
_TOP: Final = words(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens "
    "messages metadata modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key "
    "prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store "
    "stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options"
)
# API reference; `annotations` too, because OpenAI's own examples append the reply's message as it is, and
# `name` of a tool message, which its older cookbooks send.
_MESSAGE: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "refusal", "audio", "annotations", "tool_calls", "function_call"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_ROOT_ONLY_OBJECT: Final = ("oneOf", "anyOf", "allOf", "enum", "not")


def violations(body: Json, _headers: Mapping[str, str] = NO_HEADERS) -> list[Violation]:
    """What OpenAI refuses in a request."""
    flaws = [*_options(body), *_messages(body), *order_flaws(body), *tool_flaws(body)]
    return [shaped(flaw) for flaw in flaws]


def shaped(flaw: Flaw) -> Violation:
    """A flaw as OpenAI's error."""
    error = {
        "message": flaw.message,
        "type": "invalid_request_error",
        "param": bracketed(flaw.where) or None,
        "code": flaw.code,
    }
    return Violation(flaw.rule, flaw.message, flaw.status, {"error": error})


def reasons(model: str) -> bool:
    """Whether a model is one of the reasoning ones, which take fewer options."""
    return re.match(r"(openai/)?(o\d|gpt-5)", model) is not None


def _options(body: Json) -> Iterator[Flaw]:
    # https://github.com/teabranch/open-responses-server/issues/41
    for name in extra(body, _TOP):
        yield Flaw("top.unknown", f"Unknown parameter: '{name}'.", (name,), "unknown_parameter")
    if not body.get("messages"):
        # general knowledge, with the wording of the same flaw in `tools`
        yield _empty_array("messages.empty", ("messages",))
    if "max_tokens" in body and "max_completion_tokens" in body:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        yield Flaw("options.both_limits", text, ("max_tokens",), "invalid_parameter_combination")  # general
    if reasons(str(body.get("model"))):
        yield from _options_of_reasoning(body)
    elif body.get("reasoning_effort") is not None:
        # https://github.com/davidmigloz/langchain_dart/issues/712
        yield Flaw("options.reasoning_effort", "Unrecognized request argument supplied: reasoning_effort")


def _options_of_reasoning(body: Json) -> Iterator[Flaw]:
    if body.get("max_tokens") is not None:
        # https://github.com/devnullvoid/dms-ai-assistant/issues/12 (gpt-5),
        # https://github.com/teilomillet/gollm/issues/33 (o1)
        text = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        text += "Use 'max_completion_tokens' instead."
        yield Flaw("options.max_tokens", text, ("max_tokens",), "unsupported_parameter")
    # Newer ones that do not reason by default take a temperature
    # (https://github.com/langchain-ai/langchain/pull/35424); strict, as of gpt-5 and the o-series.
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1):
            text = f"Unsupported value: '{name}' does not support {body[name]} with this model. "
            text += "Only the default (1) value is supported."
            yield Flaw(f"options.{name}", text, (name,), "unsupported_value")
    yield from _effort_with_tools(body)
    # https://platform.openai.com/docs/guides/reasoning (general knowledge)
    for name in ("presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias", "stop"):
        if body.get(name):
            text = f"Unsupported parameter: '{name}' is not supported with this model."
            yield Flaw(f"options.{name}", text, (name,), "unsupported_parameter")


def _effort_with_tools(body: Json) -> Iterator[Flaw]:
    """Tools and reasoning do not go together in the newest models' chat completions.

    gpt-5.4, if an effort is set: https://github.com/openai/openai-openapi/issues/541
    gpt-5.5, gpt-5.6, even if none is set: https://github.com/jeffdafoe/llm-memory-api/pull/178,
    https://github.com/BerriAI/litellm/pull/34569
    """
    model, effort = str(body.get("model")), body.get("reasoning_effort")
    found = re.match(r"(?:openai/)?gpt-5\.(\d+)", model)
    minor = int(found[1]) if found else 0
    if body.get("tools") and effort != "none" and (minor >= 5 or (minor == 4 and effort is not None)):
        text = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
        text += "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        yield Flaw("options.effort_with_tools", text, ("reasoning_effort",))


def _empty_array(rule: str, where: Where) -> Flaw:
    text = f"Invalid '{bracketed(where)}': empty array. "
    text += "Expected an array with minimum length 1, but got an empty array instead."
    return Flaw(rule, text, where, "empty_array")


def _too_long(rule: str, where: Where, value: str, most: int) -> Flaw:
    text = f"Invalid '{bracketed(where)}': string too long. Expected a string with maximum length {most}, "
    text += f"but got a string with length {len(value)} instead."
    return Flaw(rule, text, where, "string_above_max_length")


def _messages(body: Json) -> Iterator[Flaw]:
    for i, message in messages_of(body):
        role = str(message.get("role"))
        if role not in _MESSAGE:
            text = f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', "
            text += "'function', 'tool', and 'developer'."
            yield Flaw("messages.role", text, ("messages", i, "role"), "invalid_value")  # general knowledge
            continue
        # The API reference has no such field; whether all models refuse it is not certain, so strict.
        for name in extra(message, _MESSAGE[role]):
            where: Where = ("messages", i, name)
            yield Flaw(
                "messages.unknown", f"Unknown parameter: '{bracketed(where)}'.", where, "unknown_parameter"
            )
        if message.get("content") is None and not message.get("tool_calls"):
            text = "Invalid value for 'content': expected a string, got null."  # general knowledge
            yield Flaw("messages.content", text, ("messages", i, "content"))
        yield from _calls(i, message)


def _calls(i: int, message: Json) -> Iterator[Flaw]:
    if message.get("tool_calls") == []:
        # https://github.com/openai/openai-node/pull/1341
        yield _empty_array("calls.empty", ("messages", i, "tool_calls"))
    for k, call in calls_of(message):
        at: Where = ("messages", i, "tool_calls", k)
        for name in extra(call, {"id", "type", "function"}):
            # As for messages: not in the API reference, so strict.
            text = f"Unknown parameter: '{bracketed((*at, name))}'."
            yield Flaw("calls.unknown", text, (*at, name), "unknown_parameter")
        for name in ("id", "type", "function"):
            if not call.get(name):
                # https://github.com/openai/openai-cookbook/issues/1248 (the same, of a tool)
                text = f"Missing required parameter: '{bracketed((*at, name))}'."
                yield Flaw("calls.missing", text, (*at, name), "missing_required_parameter")
        if len(str(call.get("id"))) > 40:
            # https://github.com/vercel/ai/issues/5171
            yield _too_long("calls.id", (*at, "id"), str(call["id"]), 40)
        if not isinstance(function_of(call).get("arguments"), str):
            where: Where = (*at, "function", "arguments")
            text = f"Invalid type for '{bracketed(where)}': expected a string."  # general knowledge
            yield Flaw("calls.arguments", text, where, "invalid_type")


def order_flaws(body: Json) -> Iterator[Flaw]:
    """Tool calls without answers, and answers without calls.

    General knowledge; DeepSeek sends the same sentence: https://github.com/langgenius/dify/issues/32222
    """
    for found in unanswered(body):
        if found.stray:
            text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
            yield Flaw("order.stray", text + "with 'tool_calls'.", ("messages", found.at, "role"))
        else:
            text = "An assistant message with 'tool_calls' must be followed by tool messages responding to "
            text += "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            yield Flaw("order.unanswered", text + ", ".join(found.ids), ("messages", found.at + 1, "role"))


def tool_flaws(body: Json) -> Iterator[Flaw]:
    """What is wrong with the tools on offer."""
    tools = body.get("tools")
    if tools == []:
        # https://github.com/continuedev/continue/issues/3403
        yield _empty_array("tools.empty", ("tools",))
    if isinstance(tools, list) and len(tools) > 128:
        # https://github.com/0x4m4/hexstrike-ai/issues/29
        text = "Invalid 'tools': array too long. Expected an array with maximum length 128, "
        text += f"but got an array with length {len(tools)} instead."
        yield Flaw("tools.many", text, ("tools",), "array_above_max_length")
    for i, tool in dicts(tools):
        for name in ("type", "function"):
            if name not in tool:
                # https://github.com/openai/openai-cookbook/issues/1248
                text = f"Missing required parameter: 'tools[{i}].{name}'."
                yield Flaw("tools.missing", text, ("tools", i, name), "missing_required_parameter")
    for i, function in functions_of(body):
        yield from _function(("tools", i, "function"), function)
    for name in twice(function.get("name") for _, function in functions_of(body)):
        # general knowledge; Anthropic and DeepSeek want it too
        yield Flaw("tools.twice", f"Tool names must be unique: '{name}'.", ("tools",), "invalid_value")


def _function(at: Where, function: Json) -> Iterator[Flaw]:
    name = function.get("name")
    if isinstance(name, str) and len(name) > 64:
        yield _too_long("tools.name", (*at, "name"), name, 64)
    elif not matches(r"[a-zA-Z0-9_-]+", name):
        # API reference: a-z, A-Z, 0-9, underscores and dashes, at most 64
        text = f"Invalid '{bracketed((*at, 'name'))}': string does not match pattern. "
        text += "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        yield Flaw("tools.name", text, (*at, "name"), "invalid_value")
    for odd in extra(function, {"name", "description", "parameters", "strict"}):
        text = f"Unknown parameter: '{bracketed((*at, odd))}'."  # general knowledge
        yield Flaw("tools.unknown", text, (*at, odd), "unknown_parameter")
    if len(function.get("description") or "") > 1024:
        # https://github.com/getsentry/sentry-mcp/issues/106; lifted in some models
        # (https://github.com/run-llama/llama_index/pull/18784), so strict
        yield _too_long("tools.description", (*at, "description"), function["description"], 1024)
    if "parameters" in function:  # the API reference lets it be omitted: no arguments
        for rule, text in schema_flaws(function["parameters"]):
            text = f"Invalid schema for function '{name}': {text}"
            yield Flaw(rule, text, (*at, "parameters"), "invalid_function_parameters")


def schema_flaws(schema: Any) -> Iterator[tuple[str, str]]:
    """What OpenAI refuses in the parameters of a function: rule and text."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        given = schema.get("type") if isinstance(schema, dict) else schema
        # https://github.com/farion1231/cc-switch/issues/5490 (the sentence, sent by DeepSeek)
        shown = "null" if given is None else f'"{given}"'
        yield "tools.root", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: {shown}'."
        return
    if any(name in schema for name in _ROOT_ONLY_OBJECT):
        # general knowledge
        text = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top "
        yield "tools.root", text + "level."
    for where, inside in subschemas(schema):
        types = types_of(inside)
        if "array" in types and "items" not in inside:
            # https://github.com/ogx-ai/ogx/issues/3004; in a list of types:
            # https://github.com/campfirein/byterover-cli/issues/42
            yield "tools.items", f"In context={where}, array schema missing items."
        if "object" in types and not where and "properties" not in inside:
            # general knowledge
            yield "tools.properties", "In context=(), object schema missing properties."


def dress(completion: dict[str, Any], request: Json) -> None:
    """Make a plain chat completion one of OpenAI's."""
    completion.update(service_tier="default", system_fingerprint=None, created=1_760_000_000)
    for _, choice in dicts(completion.get("choices")):
        choice["logprobs"] = None
        message = choice["message"]
        message.update(refusal=None, annotations=[])
        message.setdefault("content", None)
        with_ids(message, request, "call_", 24)
