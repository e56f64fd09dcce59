"""Parses replies of OpenAI-compatible chat-completions endpoints."""

from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Reply, StopReason, ToolSpec, Usage
from propensitybench.clients.endpoint import same_model
from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.clients.finish_reasons import meaning_of
from propensitybench.clients.usage import ESTIMATED, usage_of, with_estimates
from propensitybench.clients.wire_calls import (
    CALL_OPENS,
    NO_CONTEXT,
    ReplyContext,
    call_in_tag,
    call_in_text,
    calls_in_text,
    raw_calls,
    read_calls,
)

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
# Fields of a message that `Reply` represents; all others are kept as the provider's own.
_OWN_FIELDS: Final = frozenset(
    ("role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call")
)
# Reasons that leave a reply as the model ended it.
_WHOLE: Final = (StopReason.STOP, StopReason.TOOL_CALLS)
MAX_REASON_SHOWN: Final = 80


class _Choice(msgspec.Struct):
    message: dict[str, msgspec.Raw] = {}
    finish_reason: str | None = None
    native_finish_reason: Any = None
    error: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")  # decoded apart: a wrong count must not cost the reply
    error: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: Any = None
    completion_tokens_details: Any = None


class _FailedError(msgspec.Struct):
    code: Any = None
    message: str = ""
    failed_generation: str | None = None


class _Failed(msgspec.Struct):
    error: _FailedError | None = None


class Parsed(NamedTuple):
    """A reply, or an error object in its place."""

    reply: Reply
    error: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_USAGE: Final = msgspec.json.Decoder(_Usage)
_FAILED: Final = msgspec.json.Decoder(_Failed)


def parse(body: bytes, tools: tuple[ToolSpec, ...], context: ReplyContext = NO_CONTEXT) -> Parsed:
    """The reply in the body of a successful response.

    Raises:
        Failure: of kind UNREADABLE if it is not a chat completion; or what its finish reason stands for.
    """
    try:
        answer = _ANSWER.decode(body)
        first = answer.choices[0] if answer.choices else None
        error = (first.error if first else None) or answer.error
        if error is not None:
            return Parsed(Reply(), error)
        if first is None or (not first.message and first.finish_reason is None):
            raise msgspec.ValidationError("no choices, or a choice without a message")
        return Parsed(_reply(answer, first, tools, context))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = " ".join(body[:120].decode("utf-8", "replace").split())
        raise Failure(
            FailureKind.UNREADABLE, f"the answer is not a chat completion ({error}): {shown}"
        ) from error


def _reply(answer: _Answer, choice: _Choice, tools: tuple[ToolSpec, ...], context: ReplyContext) -> Reply:
    content = _content(choice.message)
    calls, fields, repairs = read_calls(raw_calls(choice.message), context)
    if not calls and CALL_OPENS in content:
        calls, content = calls_in_text(content, tools, context)
        repairs = ["call left in the text"] if calls else []
    stop = _stop(choice, is_empty=not calls and not content.strip())
    provider_fields = _native(choice.message, fields)
    usage = _usage(answer.usage)
    if context.sent:
        received = (
            len(content) + len(provider_fields) + sum(len(call.name) + len(call.arguments) for call in calls)
        )
        usage, is_estimated = with_estimates(usage, context.sent, received)
        repairs += [ESTIMATED] if is_estimated else []
    served = answer.model or ""
    return Reply(
        content=content,
        tool_calls=tuple(calls),
        stop=StopReason.TOOL_CALLS if calls and stop is StopReason.STOP else stop,
        usage=usage,
        model=served,
        provider_fields=provider_fields,
        repairs=tuple(dict.fromkeys(repairs)) if repairs else (),
        latency_ms=context.latency_ms,
        attempts=context.attempts,
        other_model=served != context.asked and not same_model(context.asked, served),
    )


def _stop(choice: _Choice, *, is_empty: bool) -> StopReason:
    """How a reply ended; raises `Failure` if the endpoint failed, or if an empty one may not be whole."""
    reason = choice.finish_reason or ""
    meaning = meaning_of(reason)
    upstream = choice.native_finish_reason
    if meaning in _WHOLE and isinstance(upstream, str):
        # OpenRouter's name for the upstream provider's own reason, which its `stop` may hide.
        theirs = meaning_of(upstream)
        if theirs is not None and theirs not in _WHOLE:
            meaning, reason = theirs, upstream
    if isinstance(meaning, FailureKind):
        raise Failure(meaning, f"the endpoint ended the reply with {_shown(reason)}")
    if is_empty and (meaning is None or meaning is StopReason.TOOL_CALLS):
        raise Failure(FailureKind.UNREADABLE, f"an empty reply with the finish reason {_shown(reason)}")
    return meaning or StopReason.STOP


def _shown(reason: str) -> str:
    return repr(reason[:MAX_REASON_SHOWN]) if reason else "missing"


def _content(message: dict[str, msgspec.Raw]) -> str:
    raw = message.get("content")
    value = _decode(raw) if raw is not None else None
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) and value else _refusal(message)


def _refusal(message: dict[str, msgspec.Raw]) -> str:
    """The text of a refusal, which OpenAI puts beside the content and LiteLLM moves."""
    refusal = _decode(message["refusal"]) if "refusal" in message else None
    if not refusal and "provider_specific_fields" in message:
        moved = _decode(message["provider_specific_fields"])
        refusal = moved.get("refusal") if isinstance(moved, dict) else None
    return refusal if isinstance(refusal, str) else ""


def parse_failed_generation(body: bytes, context: ReplyContext = NO_CONTEXT) -> Reply | None:
    """The reply in Groq's error for a tool call that does not match the tools; None for other errors.

    What the model wrote is its reply and is treated like any other.
    Source: https://console.groq.com/docs/tool-use
    """
    if b"tool_use_failed" not in body:
        return None
    text = _failed_generation(body)
    if not text:
        return None
    call = call_in_text(text, context, 0) or call_in_tag(text, context)
    stop = StopReason.STOP if call is None else StopReason.TOOL_CALLS
    return Reply(
        content=text if call is None else "",
        tool_calls=() if call is None else (call,),
        stop=stop,
        repairs=("reply taken from the endpoint's error",),
        latency_ms=context.latency_ms,
        attempts=context.attempts,
    )


def _failed_generation(body: bytes) -> str:
    """What the model wrote, from the error or from an error that a gateway quotes in its message."""
    try:
        error = _FAILED.decode(body).error
        if error is not None and not error.failed_generation and "{" in error.message:
            inner = error.message[error.message.index("{") : error.message.rindex("}") + 1]
            error = _FAILED.decode(inner).error
    except (ValueError, RecursionError):  # msgspec's errors are of the first kind
        return ""
    return error.failed_generation or "" if error and error.code == "tool_use_failed" else ""


def _native(message: dict[str, msgspec.Raw], calls: list[dict[str, msgspec.Raw]]) -> str:
    """The provider's own fields of a message and of its calls, as JSON; empty if there are none."""
    extra = {
        k: v for k, v in message.items() if k not in _OWN_FIELDS and bytes(v) not in (b"null", b'""', b"[]")
    }
    content = message.get("content")
    if content is not None and bytes(content).startswith(b"[") and _has_other_chunks(_decode(content)):
        extra["content"] = content
    if not extra and not calls:
        return ""
    provider_fields = _encode({"message": extra, "calls": calls} if calls else {"message": extra})
    _decode(provider_fields)  # must not be journaled if it cannot be sent back
    return provider_fields.decode()


def _has_other_chunks(content: list[Any]) -> bool:
    """Whether a list of chunks has any that are not text, such as Mistral's thinking."""
    return any(isinstance(part, dict) and part.get("type") != "text" for part in content)


def _usage(raw: msgspec.Raw) -> Usage:
    try:
        stated = _USAGE.decode(raw)
    except (msgspec.DecodeError, RecursionError):  # not an object, or a number out of range
        return Usage()
    return usage_of(
        stated.prompt_tokens,
        stated.completion_tokens,
        _detail(stated.prompt_tokens_details, "cached_tokens"),
        _detail(stated.completion_tokens_details, "reasoning_tokens"),
    )


def _detail(details: Any, name: str) -> Any:
    return details.get(name) if isinstance(details, dict) else None
