"""Our conversations as Inspect AI messages, whatever a model wrote in them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from inspect_ai.event import ToolEvent
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

from propensitybench.chat import Message, Reply, StopReason, ToolCall, Usage, decode_or_none, is_deeper_than

# Inspect's readers and viewers recurse into arguments.
MAX_DEPTH: Final = 63
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])

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
    converted = []
    for index, message in enumerate(messages):
        names.update((call.id, call.name) for call in message.tool_calls)
        converted.append(_message(message, f"{identity}-{index}", names))
    return converted


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
    reasoning: list[ContentReasoning] = []
    if message.provider_fields:
        try:
            return ChatMessageAssistant.model_validate_json(message.provider_fields).model_copy(
                update={"id": identity}
            )
        except ValidationError:  # it did not come through Inspect
            reasoning = _reasoning(message.provider_fields)
    return ChatMessageAssistant(
        id=identity,
        content=[*reasoning, ContentText(text=message.content)] if reasoning else message.content,
        tool_calls=[call_of(call) for call in message.tool_calls] or None,
        source="generate",
    )


def _reasoning(provider_fields: str) -> list[ContentReasoning]:
    """The reasoning in the fields of an OpenAI-compatible endpoint, under any of its usual names."""
    fields = msgspec.json.decode(provider_fields).get("message", {})
    for name in ("reasoning_content", "reasoning"):
        if isinstance(fields.get(name), str):
            return [ContentReasoning(reasoning=fields[name])]
    details = fields.get("reasoning_details")
    parts = [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
    reasoning = []
    for part in parts:
        text = part.get("text") or part.get("summary")
        if isinstance(text, str):
            reasoning.append(ContentReasoning(reasoning=text))
        elif isinstance(part.get("data"), str):
            reasoning.append(ContentReasoning(reasoning=part["data"], redacted=True))
    return reasoning


def unusable_reply(reply: Reply, identity: str) -> ChatMessageAssistant:
    """A reply for which the conversation has a placeholder, as the model gave it."""
    return ChatMessageAssistant(
        id=identity,
        content=reply.content,
        tool_calls=[call_of(call) for call in reply.tool_calls] or None,
        source="generate",
    )


def tool_event(call: InspectCall, answer: ChatMessageTool, **fields: Any) -> ToolEvent:
    """The event of a tool call that was answered; ``fields`` are further fields of the event."""
    return ToolEvent(
        id=call.id,
        function=call.function,
        arguments=call.arguments,
        result=answer.text,
        message_id=answer.id,
        **fields,
    )


def call_of(call: ToolCall) -> InspectCall:
    """A tool call. Arguments that are not a JSON object go into ``parse_error`` as they were written."""
    arguments = decode_or_none(call.arguments or "{}", _OBJECT)
    if arguments is not None and not is_deeper_than(MAX_DEPTH, arguments):
        return InspectCall(id=call.id, function=call.name, arguments=arguments)
    return InspectCall(id=call.id, function=call.name, arguments={}, parse_error=call.arguments)


def output_of(reply: Reply, message: ChatMessageAssistant) -> ModelOutput:
    """The output of a model call whose reply is that message."""
    return ModelOutput(
        model=reply.model,
        choices=[ChatCompletionChoice(message=message, stop_reason=_STOPS[reply.stop])],
        usage=usage_of(reply.usage),
        time=reply.latency_ms / 1000,
    )


def usage_of(usage: Usage) -> ModelUsage:
    """Token counts; Inspect's input tokens exclude cached ones."""
    return ModelUsage(
        input_tokens=usage.input - usage.cached,
        output_tokens=usage.output,
        total_tokens=usage.input + usage.output,
        input_tokens_cache_read=usage.cached,
        reasoning_tokens=usage.reasoning,
    )
