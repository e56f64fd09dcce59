"""Parses replies of OpenAI-compatible chat-completions endpoints."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Reply, StopReason, ToolCall, ToolSpec, Usage, is_object
from propensitybench.clients.failures import Failure, FailureKind, as_object
from propensitybench.clients.finish_reasons import meaning_of
from propensitybench.clients.usage import ESTIMATED, usage_of, with_estimates
from propensitybench.clients.wire_tools import without_nothing

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
CALL_OPENS: Final = "<tool_call>"
CALL_CLOSES: Final = "</tool_call>"
# A model with more calls in one text is repeating itself.
LONGEST_LIST: Final = 32
# OpenAI allows 128 tools.
MOST_CALLS: Final = 256
# Ids that can be made for calls that have none.
_IDS: Final = 100_000
# Fields of a message that `Reply` represents; all others are kept as the provider's own.
_OWN_FIELDS: Final = frozenset(
    ("role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call")
)
_OWN_CALL_FIELDS: Final = frozenset(("id", "type", "index", "function"))
_NO_CALLS: Final = (b"null", b"[]")
# Reasons that leave a reply as the model ended it.
_WHOLE: Final = (StopReason.STOP, StopReason.TOOL_CALLS)
MAX_REASON_SHOWN: Final = 80


class ReplyContext(msgspec.Struct):
    """What reading the next reply of a conversation requires besides its text.

    Attributes:
        asked: the model's name at the endpoint; empty accepts any.
        names: full name of each tool whose name on the wire is shortened.
        ids: of the tool calls so far.
        call_id: pattern for ids; None accepts any.
        nothing: whether empty objects were given a placeholder key.
        messages: length of the conversation so far.
        sent: characters of the request, of which tokens are estimated; 0 estimates nothing.
        latency_ms, attempts: see `Reply`.
    """

    asked: str = ""
    names: Mapping[str, str] = {}
    ids: Collection[str] = ()
    call_id: re.Pattern[str] | None = None
    nothing: bool = False
    messages: int = 0
    sent: int = 0
    latency_ms: int = 0
    attempts: int = 1

    def call(self, given: str | None, name: str, arguments: str, index: int) -> tuple[ToolCall, str]:
        """A tool call with its full name and a valid id, and what had to be repaired.

        An id that is missing, was used before or does not match is replaced by nine letters and digits,
        which every provider accepts; some refuse an id that comes twice.
        """
        call_id, repair = given or "", ""
        if not call_id or call_id in self.ids or (self.call_id and not self.call_id.fullmatch(call_id)):
            repair = "id of a call replaced" if call_id else ""
            first = 100 * self.messages + index
            free = (f"call{number % _IDS:05d}" for number in range(first, first + _IDS))
            call_id = next((made for made in free if made not in self.ids), f"c{first:08d}")
        if self.nothing:
            arguments = without_nothing(arguments)
        return ToolCall(call_id, self.names.get(name, name), arguments), repair


NO_CONTEXT: Final = ReplyContext()


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class _Call(msgspec.Struct):
    function: _Function = msgspec.field(default_factory=_Function)
    id: str | None = None


class _PlainCall(_Call, forbid_unknown_fields=True):
    """A call without fields of the provider's own."""

    type: Any = None
    index: Any = None


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
_PLAIN_CALLS: Final = msgspec.json.Decoder(list[_PlainCall] | None)
_CALLS: Final = msgspec.json.Decoder(list[_Call] | None)
_CALL_FIELDS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)
_USAGE: Final = msgspec.json.Decoder(_Usage)
_FAILED: Final = msgspec.json.Decoder(_Failed)
# How Llama's models write a call.
_TAGGED: Final = re.compile(r"<function=([^>{\s]+)[>\s]*(\{.*\})\s*(?:</function>)?", re.DOTALL)


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
    calls, fields, repairs = _tool_calls(_calls_in(choice.message), context)
    if not calls and CALL_OPENS in content:
        calls, content = _calls_in_text(content, tools, context)
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


def same_model(asked: str, served: str) -> bool:
    """Whether a served id names the requested model: equal, or with a date or path added."""
    if not asked or not served:
        return True
    asked, served = asked.lower(), served.lower()
    if served.endswith("/" + asked) or asked.endswith("/" + served):
        return True
    dated = re.compile(re.escape(asked.rpartition("/")[2]) + r"([-@:_](\d[\d.-]*|latest))?")
    return dated.fullmatch(served.rpartition("/")[2]) is not None


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


def _calls_in(message: dict[str, msgspec.Raw]) -> msgspec.Raw | None:
    """The calls of a message, also in the form that OpenAI used before there could be several."""
    made = message.get("tool_calls")
    legacy = message.get("function_call")
    if legacy is None or bytes(legacy) == b"null" or (made is not None and bytes(made) not in _NO_CALLS):
        return made
    return msgspec.Raw(b'[{"function":' + bytes(legacy) + b"}]")


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


def _tool_calls(
    raw: msgspec.Raw | None, context: ReplyContext
) -> tuple[list[ToolCall], list[dict[str, msgspec.Raw]], list[str]]:
    """The calls, the provider's own fields of each if there are any, and what had to be repaired."""
    calls: list[ToolCall] = []
    repairs: list[str] = []
    if raw is None:
        return calls, [], repairs
    found: Sequence[_Call]
    try:
        found, fields = _PLAIN_CALLS.decode(raw) or [], []
    except msgspec.ValidationError:
        found, fields = _CALLS.decode(raw) or [], _own_fields(raw)
    if len(found) > MOST_CALLS:
        raise msgspec.ValidationError(f"{len(found)} tool calls; at most {MOST_CALLS} are read")
    seen: set[str] = set()
    for index, one in enumerate(found):
        arguments, repair = _arguments(one.function.arguments)
        given = None if one.id in seen else one.id
        call, replaced = context.call(given, one.function.name, arguments, index)
        if given != one.id:
            replaced = "id of a call replaced"
        seen.add(call.id)
        repairs += [text for text in (repair, replaced) if text]
        calls.append(call)
    return calls, fields, repairs


def _own_fields(raw: msgspec.Raw) -> list[dict[str, msgspec.Raw]]:
    """The provider's own fields of each call; empty if no call has any."""
    calls = [
        {k: v for k, v in call.items() if k not in _OWN_CALL_FIELDS}
        for call in _CALL_FIELDS.decode(raw) or ()
    ]
    return calls if any(calls) else []


def _arguments(raw: msgspec.Raw) -> tuple[str, str]:
    """The arguments as JSON text, and what had to be repaired."""
    value = _decode(raw)
    if value is None:
        return "{}", ""
    if not isinstance(value, str):
        return bytes(raw).decode(), "arguments not written as a text"
    text = value.strip()
    if not text:
        return "{}", ""
    if not is_object(text):
        shorter = text.rstrip("\"' \n`")
        if shorter != text and is_object(shorter):
            return shorter, "quotes behind the arguments"
    return value, ""


def _calls_in_text(
    content: str, tools: tuple[ToolSpec, ...], context: ReplyContext
) -> tuple[list[ToolCall], str]:
    """Calls that the endpoint's parser left in the text, if all of them name offered tools."""
    offered = {tool.name for tool in tools}
    before, *blocks = content.split(CALL_OPENS, LONGEST_LIST)
    calls, rest = [], [before]
    for index, block in enumerate(blocks):
        inside, closed, behind = block.partition(CALL_CLOSES)
        call = _call_in_text(inside, context, index) if closed else None
        if call is None or call.name not in offered:
            return [], content
        calls.append(call)
        rest.append(behind)
    return calls, "".join(rest).strip()


def _call_in_text(text: str, context: ReplyContext, index: int) -> ToolCall | None:
    """The call in a JSON object with a name and arguments; None if the text is something else."""
    try:
        found = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    name = found.get("name") if isinstance(found, dict) else None
    if not isinstance(name, str):
        return None
    given = found.get("arguments") or found.get("parameters") or {}
    arguments = given if isinstance(given, str) else _encode(given).decode()
    return context.call(None, name, arguments, index)[0]


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
    call = _call_in_text(text, context, 0) or _call_in_tag(text, context)
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


def _call_in_tag(text: str, context: ReplyContext) -> ToolCall | None:
    match = _TAGGED.fullmatch(text.strip())
    return None if match is None else context.call(None, match[1], match[2], 0)[0]


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
        as_object(stated.prompt_tokens_details).get("cached_tokens"),
        as_object(stated.completion_tokens_details).get("reasoning_tokens"),
    )
