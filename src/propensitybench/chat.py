"""The words shared by the episode and whatever answers: a client knows these, not the benchmark."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

_DECODER: Final = msgspec.json.Decoder()
# `gc=False` below: these hold texts, numbers and each other, and can form no cycle. A thousand episodes
# in flight have hundreds of thousands of them, which the collector need not walk.
Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call as the agent wrote it: ``arguments`` is the raw JSON text, sound or not."""

    id: str
    name: str
    arguments: str = "{}"


def is_object(arguments: str) -> bool:
    """Whether the arguments of a call are the JSON text of an object."""
    try:
        return isinstance(_DECODER.decode(arguments), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One message of a conversation.

    Attributes:
        tool_calls: of an assistant message, the calls it made.
        tool_call_id: of a tool message, the call it answers.
        provider_fields: parts of a provider's own that have to go back to it as they came (JSON text).
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    provider_fields: str = ""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool on offer; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Request(msgspec.Struct, frozen=True):
    """What an agent is asked: to continue a conversation, with these tools at hand.

    ``messages`` is the conversation itself, which only ever grows: a client may keep what it
    made of its beginning, and must not change it.
    """

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]


class StopReason(StrEnum):
    """Why the agent's reply ended."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"


BLOCKED = frozenset((StopReason.CONTENT_FILTER, StopReason.REFUSAL))
"""The stop reasons with which a provider says that it would not answer."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one reply, as the provider counted them; ``cached`` and ``reasoning`` are parts."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0


class Reply(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What came back, as it is kept in the journal.

    Attributes:
        model: the id of the model that answered, as the provider gave it.
        provider_fields: parts of a provider's own (JSON text); see `Message`.
        repairs: what had to be mended to read the tool calls.
        latency_ms: from sending to the last byte, of the try that was answered.
        attempts: how many it took.
        other_model: whether another model answered than the one asked for.
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


class ConversationContext(msgspec.Struct, frozen=True):
    """What a client knows of a conversation besides its messages; never shown to a model.

    Attributes:
        id: names the conversation in logs; unique within a run.
        seed: 64 bits; the only source of chance for whatever answers.
        replies: how many replies the conversation already has, if it is resumed.
    """

    id: str
    seed: int
    replies: int = 0
