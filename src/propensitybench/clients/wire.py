"""Encodes requests to OpenAI-compatible chat-completions endpoints."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from propensitybench.chat import Message, Request, ToolCall, ToolSpec, is_object
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_calls import ReplyContext
from propensitybench.clients.wire_tools import encode_tool, wire_name

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_NO_NAMES: Final[Mapping[str, str]] = {}


class Body:
    """The request body of one conversation.

    Encoded messages are kept, so a turn costs only the encoding of what is new.

    Attributes:
        context: for reading the reply to the last request.
    """

    def __init__(self, model: str, options: ModelOptions, dialect: ChatDialect = DEFAULT_DIALECT) -> None:
        self._policy = dialect
        self._head = b'{"model":' + _encode(model) + b',"messages":['
        settings = _encode({**dialect.extra, **options.body(dialect.limit_field)})[1:-1]
        self._tail = (b"," + settings if settings else b"") + b"}"
        self._messages = bytearray()
        self._count = 0
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_encoded = b"]"
        self._true_names: dict[str, str] = {}
        self._called: dict[str, str] = {}
        pattern = re.compile(dialect.call_id) if dialect.call_id else None
        self.context = ReplyContext(
            model, self._true_names, self._called, pattern, dialect.schema == "gemini"
        )

    def of(self, request: Request) -> bytes:
        """The body of the conversation's next request."""
        for message in request.messages[self._count :]:
            if self._messages:
                self._messages += b","
            for call in message.tool_calls:
                self._called[call.id] = call.name
            self._messages += encode_message(message, self._policy, self._called)
        self._count = len(request.messages)
        if request.tools is not self._tools:
            self._tools = request.tools
            self._true_names |= {
                short: tool.name for tool in request.tools if (short := wire_name(tool.name)) != tool.name
            }
            encoded = _encode([encode_tool(tool, self._policy) for tool in request.tools])
            # Endpoints refuse an empty list of tools.
            self._tools_encoded = b'],"tools":' + encoded if request.tools else b"]"
        body = b"".join((self._head, self._messages, self._tools_encoded, self._tail))
        self.context.messages, self.context.sent = self._count, len(body)
        return body


def encode_message(
    message: Message, dialect: ChatDialect = DEFAULT_DIALECT, called: Mapping[str, str] = _NO_NAMES
) -> bytes:
    """One message of the conversation.

    Args:
        message: to be encoded.
        dialect: of the endpoint.
        called: the tool of each call so far, by the call's id.
    """
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.role == "tool":
        body["tool_call_id"] = message.tool_call_id
        if dialect.tool_message_name:
            body["name"] = wire_name(called.get(message.tool_call_id, ""))
    if message.tool_calls:
        body["tool_calls"] = [_call(call) for call in message.tool_calls]
        if not message.content and dialect.no_content == "null":
            body["content"] = None
    if message.role == "assistant":
        if message.provider_fields:
            _add_provider_fields(body, message.provider_fields, dialect)
        for name in dialect.always:
            body.setdefault(name, "")
    return _encode(body)


def _add_provider_fields(body: dict[str, Any], provider_fields: str, dialect: ChatDialect) -> None:
    found = _decode(provider_fields)
    fields = found.get("message", {})
    body.update((name, fields[name]) for name in dialect.echo if name in fields)
    for call, extra in zip(body.get("tool_calls", ()), found.get("calls", ()), strict=False):
        call.update((name, extra[name]) for name in dialect.echo_in_calls if name in extra)


def _call(call: ToolCall) -> dict[str, Any]:
    # Chat templates parse the arguments of earlier calls and fail on any that is not an object. The journal
    # has what the model wrote.
    arguments = call.arguments if is_object(call.arguments) else "{}"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": wire_name(call.name), "arguments": arguments},
    }
