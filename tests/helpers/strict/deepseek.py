"""What DeepSeek's chat completions refuse, and how their replies look.

API reference: https://api-docs.deepseek.com/api/create-chat-completion. It refuses no unknown fields,
but leaves them unread; `ignored` tells which.

What becomes of `reasoning_content` changed twice:

* ``r1``: must not come back (https://api-docs.deepseek.com/guides/reasoning_model);
* ``v3.2``: must come back since the last user message, when tools are in use
  (https://github.com/abhigyanpatwari/GitNexus/issues/43);
* ``v4``: must come back with everything, when tools are in use
  (https://api-docs.deepseek.com/guides/thinking_mode).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

from helpers.strict.common import (
    NO_HEADERS,
    Flaw,
    Json,
    Violation,
    calls_of,
    dicts,
    extra,
    functions_of,
    matches,
    messages_of,
    twice,
    unanswered,
    unfit_arguments,
    with_ids,
    words,
)

Age = Literal["r1", "v3.2", "v4"]
_UNREAD: Final = "Failed to deserialize the JSON body into the target type: "
_ROLES: Final = ("system", "user", "assistant", "tool")
# API reference; `max_completion_tokens` is not read: https://github.com/earendil-works/pi/issues/8018
_TOP: Final = words(
    "frequency_penalty logprobs max_tokens messages model presence_penalty reasoning_effort response_format "
    "stop stream stream_options temperature thinking tool_choice tools top_logprobs top_p user_id"
)


def violations(body: Json, _headers: Mapping[str, str] = NO_HEADERS, age: Age = "v4") -> list[Violation]:
    """What DeepSeek refuses in a request."""
    flaws = [*_options(body), *_messages(body), *_order(body), *_tools(body), *_reasoning(body, age)]
    return [shaped(flaw) for flaw in flaws]


def of_age(age: Age) -> Callable[[Json, Mapping[str, str]], list[Violation]]:
    """The rules of a time."""
    return partial(violations, age=age)


def ignored(body: Json) -> list[str]:
    """The fields of a request that DeepSeek leaves unread."""
    return extra(body, _TOP)


def thinks(body: Json) -> bool:
    """Whether the model will think: by default it does (the guide), unless it is the old chat model."""
    thinking = body.get("thinking")
    if isinstance(thinking, dict):
        return thinking.get("type") != "disabled"
    return body.get("model") != "deepseek-chat"


def shaped(flaw: Flaw) -> Violation:
    """A flaw as DeepSeek's error: https://github.com/TurixAI/TuriX-CUA/issues/15"""
    error = {
        "message": flaw.message,
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_request_error",
    }
    return Violation(flaw.rule, flaw.message, flaw.status, {"error": error})


def _options(body: Json) -> Iterator[Flaw]:
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and not 0 <= temperature <= 2:
        # API reference
        text = "Invalid temperature value, the valid range of temperature is [0, 2]"
        yield Flaw("options.temperature", text)
    limit = body.get("max_tokens")
    if isinstance(limit, int) and limit < 1:
        yield Flaw(
            "options.max_tokens", "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]"
        )


def _messages(body: Json) -> Iterator[Flaw]:
    if not body.get("messages"):
        yield Flaw("messages.empty", "Empty input messages")  # general knowledge
    for i, message in messages_of(body):
        role = message.get("role")
        if role not in _ROLES:
            # general knowledge, of `developer`
            text = f"messages[{i}].role: unknown variant `{role}`, expected one of `system`, `user`, "
            yield Flaw("messages.role", f"{_UNREAD}{text}`assistant`, `tool`")
        if "content" not in message:
            # general knowledge; null is fine beside tool calls
            yield Flaw("messages.content", f"{_UNREAD}messages[{i}]: missing field `content`")
        elif message["content"] is None and not message.get("tool_calls"):
            text = "Invalid assistant message: content or tool_calls must be set"  # general knowledge
            yield Flaw("messages.content", text)
        for k, call in calls_of(message):
            for name in ("id", "type", "function"):
                if not call.get(name):
                    # general knowledge
                    text = f"messages[{i}].tool_calls[{k}]: missing field `{name}`"
                    yield Flaw("calls.missing", _UNREAD + text)


def _order(body: Json) -> Iterator[Flaw]:
    for found in unanswered(body):
        if found.stray:
            text = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            yield Flaw("order.stray", text)  # general knowledge
        else:
            # https://github.com/langgenius/dify/issues/32222
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            )
            text += "'tool_call_id'. (insufficient tool messages following tool_calls message)"
            yield Flaw("order.unanswered", text)
    for where in unfit_arguments(body):
        # general knowledge: the template of V3.2 and later reads them as JSON; strict
        yield Flaw(
            "calls.arguments", f"Invalid tool call arguments in {where[0]}[{where[1]}]: not a JSON object"
        )


def _tools(body: Json) -> Iterator[Flaw]:
    if body.get("tools") == []:
        # https://github.com/runebookai/tome/pull/87
        text = (
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array "
        )
        yield Flaw("tools.empty", text + "instead.")
    if len(functions_of(body)) > 128:
        yield Flaw("tools.many", "Too many tools: at most 128 functions are supported")  # API reference
    for i, function in functions_of(body):
        name, schema = function.get("name"), function.get("parameters")
        if not matches(r"[a-zA-Z0-9_-]{1,64}", name):
            # API reference; the wording is general knowledge
            text = (
                f"Invalid 'tools[{i}].function.name': string does not match pattern. Expected a string that "
            )
            yield Flaw("tools.name", text + "matches the pattern '^[a-zA-Z0-9_-]+$'.")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            # https://github.com/farion1231/cc-switch/issues/5490; by the API reference they may be omitted
            given = schema.get("type") if isinstance(schema, dict) else None
            shown = "null" if given is None else f'"{given}"'
            text = (
                f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
            )
            yield Flaw("tools.root", f"{text}got 'type: {shown}'.")
    for name in twice(function.get("name") for _, function in functions_of(body)):
        yield Flaw("tools.twice", f"Tool names must be unique: {name}")  # general knowledge


def _reasoning(body: Json, age: Age) -> Iterator[Flaw]:
    if age == "r1":
        yield from _of_r1(body)
    elif thinks(body):
        yield from _left_out(body, age)


def _of_r1(body: Json) -> Iterator[Flaw]:
    before = ""
    for i, message in messages_of(body):
        role = str(message.get("role"))
        if "reasoning_content" in message:
            text = f"The reasoning_content is an intermediate result for display purposes only: messages[{i}]"
            yield Flaw("messages.reasoning_content", text)  # the guide; the wording is ours
        if role == before and role in ("user", "assistant"):
            # general knowledge
            text = "deepseek-reasoner does not support successive user or assistant messages "
            yield Flaw("order.roles", f"{text}(messages[{i - 1}] and messages[{i}] in your input).")
        before = role


def _left_out(body: Json, age: Age) -> Iterator[Flaw]:
    messages = messages_of(body)
    if not body.get("tools") and not any(calls_of(message) for _, message in messages):
        return  # the guide: without tools it may be left out
    start = 0
    if age == "v3.2":
        start = max(
            (k for k, (_, message) in enumerate(messages) if message.get("role") == "user"), default=0
        )
    for i, message in messages[start:]:
        given = message.get("reasoning_content")
        # That an empty one does for a message without calls: https://github.com/continuedev/continue/issues/11285
        if message.get("role") != "assistant" or (given if calls_of(message) else isinstance(given, str)):
            continue
        # v4: https://github.com/mnfst/modelparams.dev/issues/29
        text = "The `reasoning_content` in the thinking mode must be passed back to the API."
        if age == "v3.2":
            # https://github.com/hotovo/aider-desk/issues/529
            text = (
                f"Missing `reasoning_content` field in the assistant message at message index {i}. For more "
            )
            text += (
                "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            )
        yield Flaw("messages.reasoning_content", text)


def dress(completion: dict[str, Any], request: Json) -> None:
    """Make a plain chat completion one of DeepSeek's."""
    completion["system_fingerprint"] = "fp_strict"
    usage = completion.get("usage")
    if isinstance(usage, dict):
        usage.update(prompt_cache_hit_tokens=0, prompt_cache_miss_tokens=usage.get("prompt_tokens", 0))
    for _, choice in dicts(completion.get("choices")):
        choice["logprobs"] = None
        message = choice["message"]
        message["content"] = message.get("content") or ""
        if thinks(request):
            message["reasoning_content"] = "Let me see."
        with_ids(message, request, "call_00_", 24)
        for k, call in calls_of(message):
            call["index"] = k
