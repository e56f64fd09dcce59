"""Reads tool calls, where endpoints put them and where they should not."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from propensitybench.chat import ToolCall, ToolSpec, is_object
from propensitybench.clients.wire_tools import drop_placeholder_keys

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
CALL_OPENS: Final = "<tool_call>"
CALL_CLOSES: Final = "</tool_call>"
# A model with more calls in one text is repeating itself.
MAX_CALLS_IN_TEXT: Final = 32
# OpenAI allows 128 tools.
MAX_CALLS: Final = 256
# Ids that can be made for calls that have none.
_IDS: Final = 100_000
_OWN_CALL_FIELDS: Final = frozenset(("id", "type", "index", "function"))
_NO_CALLS: Final = (b"null", b"[]")
# How Llama's models write a call.
_TAGGED: Final = re.compile(r"<function=([^>{\s]+)[>\s]*(\{.*\})\s*(?:</function>)?", re.DOTALL)


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
            arguments = drop_placeholder_keys(arguments)
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


_PLAIN_CALLS: Final = msgspec.json.Decoder(list[_PlainCall] | None)
_CALLS: Final = msgspec.json.Decoder(list[_Call] | None)
_CALL_FIELDS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)


def raw_calls(message: dict[str, msgspec.Raw]) -> msgspec.Raw | None:
    """The calls of a message, also in the form that OpenAI used before there could be several."""
    made = message.get("tool_calls")
    legacy = message.get("function_call")
    if legacy is None or bytes(legacy) == b"null" or (made is not None and bytes(made) not in _NO_CALLS):
        return made
    return msgspec.Raw(b'[{"function":' + bytes(legacy) + b"}]")


def read_calls(
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
    if len(found) > MAX_CALLS:
        raise msgspec.ValidationError(f"{len(found)} tool calls; at most {MAX_CALLS} are read")
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


def calls_in_text(
    content: str, tools: tuple[ToolSpec, ...], context: ReplyContext
) -> tuple[list[ToolCall], str]:
    """Calls that the endpoint's parser left in the text, if all of them name offered tools."""
    offered = {tool.name for tool in tools}
    before, *blocks = content.split(CALL_OPENS, MAX_CALLS_IN_TEXT)
    calls, rest = [], [before]
    for index, block in enumerate(blocks):
        inside, closed, behind = block.partition(CALL_CLOSES)
        call = call_in_text(inside, context, index) if closed else None
        if call is None or call.name not in offered:
            return [], content
        calls.append(call)
        rest.append(behind)
    return calls, "".join(rest).strip()


def call_in_text(text: str, context: ReplyContext, index: int) -> ToolCall | None:
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


def call_in_tag(text: str, context: ReplyContext) -> ToolCall | None:
    """The call in a text that Llama's models write; None if it is something else."""
    match = _TAGGED.fullmatch(text.strip())
    return None if match is None else context.call(None, match[1], match[2], 0)[0]
