"""Inspect AI's messages, tools, replies and errors as ours, and the other way round."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Model,
    ModelOutput,
)
from inspect_ai.model._model import ModelGenerateError
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo
from pydantic_core import to_json
from tenacity import RetryError

from propensitybench.chat import BLOCKED, Message, Reply, StopReason, ToolCall, ToolSpec, Usage
from propensitybench.clients.failures import Failure, FailureKind, failure_of
from propensitybench.clients.usage import usage_of

_STOPS: Final = {
    "stop": StopReason.STOP,
    "tool_calls": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.CONTENT_FILTER,
    "unknown": StopReason.STOP,  # of an empty reply, see `sound_reply`
}


def as_inspect(message: Message, called: Mapping[str, str]) -> ChatMessage:
    """One of our messages as Inspect's.

    Args:
        message: of the conversation.
        called: the name of the tool in each call so far, by call id; some providers need it.
    """
    if message.role == "system":
        return ChatMessageSystem(content=message.content)
    if message.role == "user":
        return ChatMessageUser(content=message.content)
    if message.role == "tool":
        call = message.tool_call_id
        return ChatMessageTool(content=message.content, tool_call_id=call, function=called.get(call))
    calls = [
        InspectToolCall(id=call.id, function=call.name, arguments=_object(call.arguments))
        for call in message.tool_calls
    ]
    return ChatMessageAssistant(content=message.content, tool_calls=calls or None)


def relax_tools(model: Model) -> None:
    """Sends tools as our own client does, without OpenAI's strict mode.

    For OpenAI-compatible endpoints Inspect sets ``strict`` unless told otherwise. In strict mode OpenAI
    refuses our schemas, and an endpoint that honours it decodes arguments under a grammar, so that a model
    could not get them wrong.
    """
    if hasattr(model.api, "strict_tools"):
        model.api.strict_tools = False


def as_tool(tool: ToolSpec) -> ToolInfo:
    """A tool as Inspect describes it; its schema is sent as it stands, with nothing added."""
    parameters = {**tool.parameters, "additionalProperties": None}
    return ToolInfo.model_validate(
        {"name": tool.name, "description": tool.description, "parameters": parameters}
    )


def reply_of(output: ModelOutput) -> Reply:
    """The reply in a model's output, which has a choice."""
    usage = output.usage
    counted = Usage()
    if usage is not None:
        read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        counted = usage_of(
            usage.input_tokens + read + written, usage.output_tokens, read, usage.reasoning_tokens
        )
    message = output.choices[0].message
    stop = _STOPS[output.choices[0].stop_reason]
    calls = tuple(
        # Arguments that Inspect could not parse must not look like valid ones.
        ToolCall(call.id, call.function, call.parse_error or msgspec.json.encode(call.arguments).decode())
        for call in message.tool_calls or ()
    )
    return Reply(
        content=message.text,
        tool_calls=calls,
        stop=StopReason.TOOL_CALLS if calls and stop is not StopReason.LENGTH else stop,
        usage=counted,
        model=output.model,
    )


def sound_reply(output: ModelOutput) -> Reply:
    """The reply in a model's output; the text that comes with a refusal is dropped.

    Raises:
        Failure: the output is an error, or an empty reply of which nothing says that the model had ended it.
    """
    if not output.choices:
        raise Failure(FailureKind.UNREADABLE, output.error or "no choices")
    reply = reply_of(output)
    if reply.stop in BLOCKED:
        return msgspec.structs.replace(reply, content="", tool_calls=())
    if output.choices and output.choices[0].stop_reason == "model_length" and not reply.usage.output:
        # Inspect turns the provider's error about a context that is too long into a reply.
        raise Failure(FailureKind.REFUSED, output.error or output.completion)
    if output.error:
        raise Failure(FailureKind.SERVER, output.error)
    if output.choices[0].stop_reason == "unknown" and not reply.tool_calls and not reply.content.strip():
        raise Failure(FailureKind.UNREADABLE, "an empty reply with an unknown finish reason")
    return reply


def failure_in(model: Model, raised: Exception) -> Failure:
    """What an exception of a model means: by the provider's HTTP answer if there was one, else as Inspect
    classifies it.

    Only the provider's own words are looked at. Inspect's exception begins with the whole request, in which
    any word of a policy or a quota may stand.
    """
    error = _provider_error(raised)
    status, headers, body = _http_answer(error)
    if status is not None:
        return failure_of(status, headers, body, datetime.now(UTC))
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, TimeoutError):
        return Failure(FailureKind.TIMEOUT, text)
    if model.api.is_auth_failure(error):
        return Failure(FailureKind.AUTH, text)
    if bool(model.api.should_retry(error)):
        return Failure(FailureKind.SERVER, text)
    return Failure(FailureKind.REFUSED, text)


def _provider_error(raised: Exception) -> Exception:
    """The exception of the provider's package, which tenacity and Inspect wrap in their own."""
    error = raised
    while True:
        inner: BaseException | None = None
        if isinstance(error, RetryError):
            inner = error.last_attempt.exception()
        elif isinstance(error, ModelGenerateError):
            inner = error.__cause__
        if not isinstance(inner, Exception):
            return error
        error = inner


def _http_answer(error: Exception) -> tuple[int | None, Mapping[str, str], bytes]:
    """Status, headers and body of the answer that an exception reports, under the names in use for them.

    ``status_code``, ``response`` and ``body`` are those of openai, anthropic, groq and mistralai; ``code``
    and ``details`` of google-genai; botocore's ``response`` is a dictionary.
    """
    response: Any = getattr(error, "response", None) or getattr(error, "raw_response", None)
    if isinstance(response, dict):
        about = response.get("ResponseMetadata") or {}
        status, headers = about.get("HTTPStatusCode"), about.get("HTTPHeaders") or {}
        body: Any = {"error": {name.lower(): text for name, text in (response.get("Error") or {}).items()}}
    else:
        status = getattr(error, "status_code", None)
        status = getattr(error, "code", None) if status is None else status
        headers = getattr(response, "headers", None) or {}
        body = _content(response) or getattr(error, "body", None) or getattr(error, "details", None)
    if isinstance(status, bool) or not isinstance(status, int):
        return None, {}, b""
    if body and not isinstance(body, str | bytes):
        body = to_json(body, fallback=str)
    body = body or getattr(error, "provider_message", None) or getattr(error, "message", None) or str(error)
    return status, headers, body if isinstance(body, bytes) else str(body).encode()


def _content(response: Any) -> bytes:
    """The body of an HTTP answer, if it has been read."""
    try:
        content = response.content
    except Exception:  # noqa: BLE001 - each HTTP package has an exception of its own for a stream not read
        return b""
    return content if isinstance(content, bytes) else b""


def _object(text: str) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
