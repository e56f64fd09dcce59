"""What Groq's chat completions refuse, and how their replies look.

API reference: https://console.groq.com/docs/api-reference, and https://console.groq.com/docs/openai
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from helpers.strict.common import (
    NO_HEADERS,
    Flaw,
    Json,
    Violation,
    calls_of,
    dicts,
    dotted,
    extra,
    fresh,
    function_of,
    functions_of,
    is_object,
    matches,
    messages_of,
    mismatches,
    says_nothing,
    twice,
    unanswered,
    unfit_arguments,
    with_ids,
    words,
)

# API reference
_TOP: Final = words(
    "citation_options compound_custom disable_tool_validation documents exclude_domains frequency_penalty "
    "function_call functions include_domains include_reasoning max_completion_tokens max_tokens messages "
    "metadata model n parallel_tool_calls presence_penalty reasoning_effort reasoning_format "
    "response_format search_settings seed service_tier stop store stream stream_options temperature "
    "tool_choice tools top_p user"
)
# API reference. `name` is refused by https://console.groq.com/docs/openai, though an example of Groq's
# sends it in a tool message, so strict.
_MESSAGE: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content"}),
    "developer": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "reasoning", "tool_calls", "function_call"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
_EFFORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpt-oss": ("low", "medium", "high"),  # https://console.groq.com/docs/reasoning (general knowledge)
    "qwen3": ("none", "default"),  # https://github.com/earendil-works/pi/issues/1745
}


def violations(body: Json, _headers: Mapping[str, str] = NO_HEADERS) -> list[Violation]:
    """What Groq refuses in a request."""
    return [shaped(flaw) for flaw in (*_options(body), *_messages(body), *_order(body), *_tools(body))]


def shaped(flaw: Flaw) -> Violation:
    """A flaw as Groq's error."""
    error = {"message": flaw.message, "type": "invalid_request_error"}
    if flaw.code:
        error["code"] = flaw.code
    return Violation(flaw.rule, flaw.message, flaw.status, {"error": error})


def _options(body: Json) -> Iterator[Flaw]:
    for name in extra(body, _TOP):
        # logprobs, logit_bias, top_logprobs: https://console.groq.com/docs/openai; the wording:
        # https://github.com/musistudio/claude-code-router/pull/1204
        yield Flaw("top.unknown", f"property '{name}' is unsupported")
    if body.get("n") not in (None, 1):
        yield Flaw("options.n", "'n' : number must be at most 1")  # https://console.groq.com/docs/openai
    effort = body.get("reasoning_effort")
    if effort is not None:
        model = str(body.get("model"))
        known = next((efforts for part, efforts in _EFFORTS.items() if part in model), ())
        if not known:
            text = "`reasoning_effort` is not supported with this model"  # general knowledge
            yield Flaw("options.reasoning_effort", text)
        elif effort not in known:
            # https://github.com/earendil-works/pi/issues/1745
            yield Flaw(
                "options.reasoning_effort", f"`reasoning_effort` must be one of `{'` or `'.join(known)}`"
            )


def _unmet(i: int, role: str, text: str) -> str:
    # https://github.com/janhq/jan/issues/8136
    return f"'messages.{i}' : for 'role:{role}' the following must be satisfied[('messages.{i}{text})]"


def _messages(body: Json) -> Iterator[Flaw]:
    if not body.get("messages"):
        yield Flaw("messages.empty", "'messages' : minimum number of items is 1")  # general knowledge
    model = str(body.get("model"))
    for i, message in messages_of(body):
        role = str(message.get("role"))
        if role not in _MESSAGE:
            text = f"'messages.{i}' : discriminator property 'role' has invalid value"  # general knowledge
            yield Flaw("messages.role", text)
            continue
        for name in extra(message, _MESSAGE[role]):
            # also `provider_specific_fields`: https://github.com/BerriAI/litellm/issues/25595
            yield Flaw("messages.unknown", _unmet(i, role, f"' : property '{name}' is unsupported"))
        if "reasoning" in message and not any(part in model for part in _EFFORTS):
            # https://github.com/vercel/ai/pull/8057
            yield Flaw(
                "messages.reasoning", f"messages[{i}].reasoning: reasoning is not supported with this model"
            )
        if says_nothing(message) or (role != "assistant" and message.get("content") is None):
            yield Flaw("messages.content", _unmet(i, role, ".content' : property is missing"))  # general
        yield from _calls(i, message)


def _calls(i: int, message: Json) -> Iterator[Flaw]:
    role = str(message.get("role"))
    for k, call in calls_of(message):
        for name in extra(call, {"id", "type", "function"}):
            # as for messages; general knowledge
            text = f".tool_calls.{k}' : property '{name}' is unsupported"
            yield Flaw("calls.unknown", _unmet(i, role, text))
        if call.get("type") != "function" or not call.get("id"):
            text = f".tool_calls.{k}' : properties 'id' and 'type' are required"  # general knowledge
            yield Flaw("calls.missing", _unmet(i, role, text))


def _order(body: Json) -> Iterator[Flaw]:
    for found in unanswered(body):
        # Not known of Groq; its templates of OpenAI's and Llama's models need pairs, so strict.
        text = f"'messages.{found.at}' : tool calls and tool messages must match: {', '.join(found.ids)}"
        yield Flaw("order.unanswered", text)
    for where in unfit_arguments(body):
        # general knowledge
        yield Flaw("calls.arguments", f"'{dotted(where)}' : must be valid JSON")


def _tools(body: Json) -> Iterator[Flaw]:
    if body.get("tools") == []:
        yield Flaw("tools.empty", "'tools' : minimum number of items is 1")  # OpenAI and vLLM do, so strict
    for i, function in functions_of(body):
        if not matches(r"[a-zA-Z0-9_-]{1,64}", function.get("name")):
            # API reference: a-z, A-Z, 0-9, underscores and dashes, at most 64
            yield Flaw("tools.name", f"'tools.{i}.function.name' : value does not match pattern")
        for name in extra(function, {"name", "description", "parameters", "strict"}):
            yield Flaw("tools.unknown", f"'tools.{i}.function' : property '{name}' is unsupported")  # general
        schema = function.get("parameters", {"type": "object"})  # API reference: may be omitted
        if not isinstance(schema, dict) or schema.get("type") != "object":
            text = f"invalid JSON schema for tool {function.get('name')}, tools[{i}].function.parameters: "
            yield Flaw("tools.root", text + '`/type`: value must be "object"')  # general knowledge
    for name in twice(function.get("name") for _, function in functions_of(body)):
        yield Flaw("tools.twice", f"duplicate tool name '{name}'")  # Anthropic and DeepSeek do, so strict


def tool_use_failed(completion: Json, request: Json) -> Violation | None:
    """The error that Groq sends instead of a reply whose tool call does not fit the tools on offer.

    https://github.com/OpenHands/OpenHands/issues/10048; it is the model's flaw, not that of the request.
    ``disable_tool_validation`` (API reference) turns it off.
    """
    if request.get("disable_tool_validation"):
        return None
    schemas = {function.get("name"): function.get("parameters") for _, function in functions_of(request)}
    for _, choice in dicts(completion.get("choices")):
        for _, call in calls_of(choice.get("message") or {}):
            name, arguments = (function_of(call).get(key) for key in ("name", "arguments"))
            text = _unfit(schemas, name, arguments)
            if text:
                failed = {"name": name, "arguments": arguments}
                error = {"message": text, "type": "invalid_request_error", "code": "tool_use_failed"}
                error["failed_generation"] = json.dumps(failed)
                return Violation("reply.tool_use_failed", text, 400, {"error": error})
    return None


def _unfit(schemas: Mapping[Any, Any], name: Any, arguments: Any) -> str:
    if name not in schemas:
        # general knowledge
        return f"tool call validation failed: attempted to call tool '{name}' which was not in request.tools"
    if not is_object(arguments):
        return "Failed to parse tool call arguments as JSON"  # general knowledge
    wrong = mismatches(schemas[name], json.loads(arguments))
    text = f"tool call validation failed: parameters for tool {name} did not match schema: errors: "
    return f"{text}[{', '.join(wrong)}]" if wrong else ""


def dress(completion: dict[str, Any], request: Json) -> None:
    """Make a plain chat completion one of Groq's."""
    completion["x_groq"] = {"id": fresh("req_", 24, len(messages_of(request)))}
    completion.update(system_fingerprint="fp_strict", service_tier="on_demand", usage_breakdown=None)
    usage = completion.get("usage")
    if isinstance(usage, dict):
        usage.update(queue_time=0.01, prompt_time=0.01, completion_time=0.01, total_time=0.03)
    for _, choice in dicts(completion.get("choices")):
        message = choice["message"]
        message["reasoning"] = "Let me see."
        if message.get("content") is None:
            message.pop("content", None)
        with_ids(message, request, "fc_", 32)
