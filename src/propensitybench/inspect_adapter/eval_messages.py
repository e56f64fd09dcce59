"""A conversation of ours as Inspect AI's messages, whatever a model has written into it."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.model import StopReason as InspectStop
from inspect_ai.tool import ToolCall as InspectCall
from pydantic import ValidationError

from propensitybench.chat import Message, Reply, StopReason, ToolCall, Usage

# Inspect's readers and viewers walk arguments by recursion.
DEEPEST: Final = 64

_STOPS: Final[dict[StopReason, InspectStop]] = {
    StopReason.STOP: "stop",
    StopReason.TOOL_CALLS: "tool_calls",
    StopReason.LENGTH: "max_tokens",
    StopReason.CONTENT_FILTER: "content_filter",
    StopReason.REFUSAL: "content_filter",
}


def messages_of(messages: Sequence[Message], identity: str) -> list[ChatMessage]:
    """The messages of an episode, with ids that begin with ``identity``."""
    names: dict[str, str] = {}
    found = []
    for place, message in enumerate(messages):
        names.update((call.id, call.name) for call in message.tool_calls)
        found.append(_message(message, f"{identity}-{place}", names))
    return found


def _message(message: Message, identity: str, names: dict[str, str]) -> ChatMessage:
    match message.role:
        case "system":
            return ChatMessageSystem(id=identity, content=message.content)
        case "user":
            return ChatMessageUser(id=identity, content=message.content)
        case "tool":
            call = message.tool_call_id
            return ChatMessageTool(
                id=identity, content=message.content, tool_call_id=call, function=names.get(call)
            )
    return _assistant(message, identity)


def _assistant(message: Message, identity: str) -> ChatMessageAssistant:
    thoughts: list[ContentReasoning] = []
    if message.provider_fields:
        try:
            return ChatMessageAssistant.model_validate_json(message.provider_fields).model_copy(
                update={"id": identity}
            )
        except ValidationError:  # it came through another client than Inspect's
            thoughts = _reasoning(message.provider_fields)
    return ChatMessageAssistant(
        id=identity,
        content=[*thoughts, ContentText(text=message.content)] if thoughts else message.content,
        tool_calls=[call_of(call) for call in message.tool_calls] or None,
        source="generate",
    )


def _reasoning(provider_fields: str) -> list[ContentReasoning]:
    """The reasoning in what an OpenAI-compatible endpoint sent, by the names in use for it."""
    sent = msgspec.json.decode(provider_fields).get("message", {})
    for name in ("reasoning_content", "reasoning"):
        if isinstance(sent.get(name), str):
            return [ContentReasoning(reasoning=sent[name])]
    details = sent.get("reasoning_details")
    parts = [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
    found = []
    for part in parts:
        text = part.get("text") or part.get("summary")
        if isinstance(text, str):
            found.append(ContentReasoning(reasoning=text))
        elif isinstance(part.get("data"), str):
            found.append(ContentReasoning(reasoning=part["data"], redacted=True))
    return found


def silence(identity: str) -> ChatMessageAssistant:
    """The message of a reply in which nothing was said; it is in no conversation."""
    return ChatMessageAssistant(id=identity, content="", source="generate")


def call_of(call: ToolCall) -> InspectCall:
    """A tool call; arguments that are no JSON object stand, as they were written, in its parse error."""
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        found = None
    if isinstance(found, dict) and _is_shallow(found, DEEPEST):
        return InspectCall(id=call.id, function=call.name, arguments=found)
    return InspectCall(id=call.id, function=call.name, arguments={}, parse_error=call.arguments)


def _is_shallow(value: Any, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)


def output_of(reply: Reply, message: ChatMessageAssistant) -> ModelOutput:
    """What a model call gave, with the message that it is in the conversation."""
    return ModelOutput(
        model=reply.model,
        choices=[ChatCompletionChoice(message=message, stop_reason=_STOPS[reply.stop])],
        usage=usage_of(reply.usage),
        time=reply.latency_ms / 1000,
    )


def usage_of(usage: Usage) -> ModelUsage:
    """Tokens; Inspect does not count cached ones among the input."""
    return ModelUsage(
        input_tokens=usage.input - usage.cached,
        output_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        input_tokens_cache_read=usage.cached,
        reasoning_tokens=usage.reasoning,
    )
