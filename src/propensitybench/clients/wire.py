"""Requests and replies as an OpenAI-compatible chat-completions endpoint writes them."""

from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Message, Reply, Request, StopReason, ToolCall, ToolSpec, Usage, is_object
from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.clients.options import ModelOptions

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
CALL_OPENS: Final = "<tool_call>"
CALL_CLOSES: Final = "</tool_call>"
# More calls in one text than this are a model that goes in circles.
LONGEST_LIST: Final = 32
# Fields of a reply's message that have a place of their own; all others are the provider's and go back
# to it as they came.
_OWN_FIELDS: Final = frozenset(
    ("role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call")
)
_OWN_CALL_FIELDS: Final = frozenset(("id", "type", "index", "function"))
_STOPS: Final = {
    "stop": StopReason.STOP,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.CONTENT_FILTER,
    "refusal": StopReason.REFUSAL,
    "safety": StopReason.CONTENT_FILTER,
    "max_tokens": StopReason.LENGTH,
}


class Body:
    """The request body of one conversation, which grows with it.

    What was encoded once is kept: a turn costs what is new, not what is old.
    """

    def __init__(self, model: str, options: ModelOptions) -> None:
        self._head = b'{"model":' + _encode(model) + b',"messages":['
        settings = _encode(options.body())[1:-1]
        self._tail = (b"," + settings if settings else b"") + b"}"
        self._messages = bytearray()
        self._count = 0
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_encoded = b"]"

    def of(self, request: Request) -> bytes:
        """The body of the conversation's next request."""
        for message in request.messages[self._count :]:
            if self._messages:
                self._messages += b","
            self._messages += encode_message(message)
        self._count = len(request.messages)
        if request.tools is not self._tools:
            self._tools = request.tools
            encoded = _encode([_tool(tool) for tool in request.tools])
            # Endpoints refuse an empty list of tools.
            self._tools_encoded = b'],"tools":' + encoded if request.tools else b"]"
        return b"".join((self._head, self._messages, self._tools_encoded, self._tail))


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def encode_message(message: Message) -> bytes:
    """One message of the conversation."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        body["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        body["tool_calls"] = [_call(call) for call in message.tool_calls]
        if not message.content:
            body["content"] = None
    if message.provider_fields:
        provider_fields = _decode(message.provider_fields)
        body.update(provider_fields.get("message", {}))
        for call, extra in zip(body.get("tool_calls", ()), provider_fields.get("calls", ()), strict=False):
            call.update(extra)
    return _encode(body)


def _call(call: ToolCall) -> dict[str, Any]:
    # Chat templates parse the arguments of earlier calls; one that is no object would break every turn
    # after it. The journal has what the model wrote.
    arguments = call.arguments if is_object(call.arguments) else "{}"
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"null")


class _Call(msgspec.Struct):
    function: _Function = msgspec.field(default_factory=_Function)
    id: str | None = None


class _Choice(msgspec.Struct):
    message: dict[str, msgspec.Raw] = {}
    finish_reason: str | None = None
    error: Any = None


class _Details(msgspec.Struct):
    cached_tokens: float | None = 0
    reasoning_tokens: float | None = 0


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = 0  # some servers write 12.0
    completion_tokens: float | None = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Answer(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None


class Parsed(NamedTuple):
    """A reply, or an error object that came in its place."""

    reply: Reply
    error: Any = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_CALLS: Final = msgspec.json.Decoder(list[_Call] | None)
_CALL_FIELDS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)


def parse(body: bytes, tools: tuple[ToolSpec, ...]) -> Parsed:
    """The reply in the body of a successful answer.

    Raises:
        Failure: of kind UNREADABLE, if it is no chat completion.
    """
    try:
        answer = _ANSWER.decode(body)
        first = answer.choices[0] if answer.choices else None
        error = (first.error if first else None) or answer.error
        if error is None and first is not None and first.finish_reason == "error":
            error = "the choice ended in an error"
        if error is not None:
            return Parsed(Reply(), error)
        if answer.choices is None or (first and not first.message and first.finish_reason is None):
            raise msgspec.ValidationError("no choices, or a choice without a message")
        return Parsed(_reply(answer, tools))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = " ".join(body[:120].decode("utf-8", "replace").split())
        raise Failure(
            FailureKind.UNREADABLE, f"the answer is no chat completion ({error}): {shown}"
        ) from error


def _reply(answer: _Answer, tools: tuple[ToolSpec, ...]) -> Reply:
    usage = _usage(answer.usage)
    if not answer.choices:
        return Reply(stop=StopReason.CONTENT_FILTER, usage=usage, model=answer.model or "")
    choice = answer.choices[0]
    content = _content(choice.message)
    calls, repairs = _tool_calls(choice.message.get("tool_calls"))
    if not calls and CALL_OPENS in content:
        calls, content = _calls_in_text(content, tools)
        repairs = ["call left in the text"] if calls else []
    stop = _STOPS.get(choice.finish_reason or "stop", StopReason.STOP)
    return Reply(
        content=content,
        tool_calls=tuple(calls),
        stop=StopReason.TOOL_CALLS if calls else stop,
        usage=usage,
        model=answer.model or "",
        provider_fields=_native(choice.message),
        repairs=tuple(repairs),
    )


def _content(message: dict[str, msgspec.Raw]) -> str:
    raw = message.get("content")
    value = _decode(raw) if raw is not None else None
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    if value is None and "refusal" in message:
        value = _decode(message["refusal"])  # the model's own words
    return value if isinstance(value, str) else ""


def _tool_calls(raw: msgspec.Raw | None) -> tuple[list[ToolCall], list[str]]:
    calls: list[ToolCall] = []
    repairs: list[str] = []
    for index, found in enumerate(_CALLS.decode(raw) or () if raw is not None else ()):
        arguments, repair = _arguments(found.function.arguments)
        if repair:
            repairs.append(repair)
        calls.append(ToolCall(found.id or f"call_{index}", found.function.name, arguments))
    return calls, repairs


def _arguments(raw: msgspec.Raw) -> tuple[str, str]:
    """The arguments' JSON text, and what had to be mended to have it."""
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


def _calls_in_text(content: str, tools: tuple[ToolSpec, ...]) -> tuple[list[ToolCall], str]:
    """Calls that the endpoint's parser left in the text, if they name tools that were on offer."""
    offered = {tool.name for tool in tools}
    before, *blocks = content.split(CALL_OPENS, LONGEST_LIST)
    calls, rest = [], [before]
    for index, block in enumerate(blocks):
        inside, closed, behind = block.partition(CALL_CLOSES)
        call = _call_in_text(inside, offered, f"call_{index}") if closed else None
        if call is None:
            return [], content
        calls.append(call)
        rest.append(behind)
    return calls, "".join(rest).strip()


def _call_in_text(text: str, offered: set[str], call_id: str) -> ToolCall | None:
    try:
        found = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    name = found.get("name") if isinstance(found, dict) else None
    if not isinstance(name, str) or name not in offered:
        return None
    arguments = found.get("arguments") or found.get("parameters") or {}
    return ToolCall(call_id, name, arguments if isinstance(arguments, str) else _encode(arguments).decode())


def _native(message: dict[str, msgspec.Raw]) -> str:
    """The provider's own fields of a message and of its calls, as JSON; empty if there are none."""
    extra = {
        k: v for k, v in message.items() if k not in _OWN_FIELDS and bytes(v) not in (b"null", b'""', b"[]")
    }
    found = _CALL_FIELDS.decode(message["tool_calls"]) if "tool_calls" in message else None
    calls = [{k: v for k, v in call.items() if k not in _OWN_CALL_FIELDS} for call in found or ()]
    if not extra and not any(calls):
        return ""
    provider_fields = _encode({"message": extra, "calls": calls} if any(calls) else {"message": extra})
    _decode(provider_fields)  # what could not be sent back must not be journaled
    return provider_fields.decode()


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input=int(usage.prompt_tokens or 0),
        output=int(usage.completion_tokens or 0),
        cached=int(prompt.cached_tokens or 0) if prompt else 0,
        reasoning=int(completion.reasoning_tokens or 0) if completion else 0,
    )
