"""Messages, tools, requests and replies: the only part of the benchmark that a client knows."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Literal, TypeVar

import msgspec

from propensitybench.tabular import Brief

Decoded = TypeVar("Decoded")
# What a decoder raises for text that an agent or an endpoint wrote.
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError)
# Of English text or JSON, the usual rule of thumb.
CHARACTERS_PER_TOKEN: Final = 4
_DECODER: Final = msgspec.json.Decoder()
# `gc=False` below: these structs cannot form reference cycles, and a thousand episodes in flight have
# hundreds of thousands of them, which the garbage collector would otherwise traverse.
Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(Brief, msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call as the agent wrote it.

    Attributes:
        id: the endpoint's, or one of our own; unique in a conversation.
        name: the tool's full name.
        arguments: the raw text, which may be invalid JSON.
    """

    id: str
    name: str
    arguments: str = "{}"


def decode_or_none(text: str | bytes, decoder: "msgspec.json.Decoder[Decoded]") -> Decoded | None:
    """What a decoder makes of JSON that an agent or an endpoint wrote; None if it accepts none."""
    try:
        return decoder.decode(text)
    except UNDECODABLE:
        return None


def is_object(arguments: str) -> bool:
    """Whether the arguments of a call are a valid JSON object."""
    return isinstance(decode_or_none(arguments, _DECODER), dict)


def is_deeper_than(levels: int, value: object) -> bool:
    """Whether a JSON value is nested deeper than so many levels; true for one that contains itself."""
    layer = [value]
    for _ in range(levels + 1):  # not by recursion, which a deep one would exhaust
        containers = [one for one in layer if isinstance(one, dict | list | tuple)]
        if not containers:
            return False
        inside = (inner for one in containers for inner in (one.values() if isinstance(one, dict) else one))
        layer = list({id(inner): inner for inner in inside}.values())
    return True


class Message(Brief, msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of a conversation.

    Attributes:
        role: whose message it is.
        content: its text.
        tool_calls: the calls of an assistant message.
        tool_call_id: the call that a tool message answers.
        provider_fields: fields that must be sent back to the provider unchanged (JSON text).
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    provider_fields: str = ""


class ToolSpec(Brief, msgspec.Struct, frozen=True):
    """A tool.

    Attributes:
        name: its full name.
        description: what it does, for the agent.
        parameters: a JSON Schema of type object.
    """

    name: str
    description: str
    parameters: dict[str, Any]


class Request(Brief, msgspec.Struct, frozen=True):
    """A request to continue a conversation, with the tools on offer.

    Attributes:
        messages: the conversation itself, which only ever grows. A client may cache what it derived from
            earlier messages, and must not modify the list.
        tools: the tools on offer.
    """

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]


class StopReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"


BLOCKED = frozenset((StopReason.CONTENT_FILTER, StopReason.REFUSAL))
"""Stop reasons that mean that the provider refused or filtered the reply."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Token counts from the provider; ``cached`` is part of ``input``, ``reasoning`` of ``output``."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """The tokens of both."""
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
        )


class Reply(Brief, msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A reply, as stored in the journal.

    Attributes:
        content: its text.
        tool_calls: its calls; of several, only the first is answered.
        stop: why it ended.
        usage: token counts.
        model: the id of the model that answered, as reported by the provider.
        provider_fields: see `Message`.
        repairs: what had to be repaired to read the tool calls.
        latency_ms: from sending the request to the last byte, for the attempt that succeeded.
        attempts: number of attempts.
        other_model: whether a model other than the requested one answered.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop: StopReason = StopReason.STOP
    usage: Usage = Usage()
    model: str = ""
    provider_fields: str = ""
    repairs: tuple[str, ...] = ()
    latency_ms: int = 0
    attempts: int = 1
    other_model: bool = False


class ConversationContext(Brief, msgspec.Struct, frozen=True):
    """What a client knows about a conversation besides its messages; never sent to a model.

    Attributes:
        id: identifies the conversation in logs; unique within a run.
        seed: 64-bit random seed, the only source of randomness for a client.
        replies: number of replies so far, if the conversation is resumed.
        task: the task's metadata (`propensitybench.scenarios.TaskMetadata`), if the client is one that
            ``knows_task``; otherwise None.
    """

    id: str
    seed: int
    replies: int = 0
    task: Any = None
