"""Every reply becomes exactly one event."""

from collections.abc import Iterator
from enum import Enum
from typing import Final

import msgspec

from propensitybench.chat import BLOCKED, Reply, StopReason


class Event(Enum):
    """Everything that can happen in an episode."""

    STARTED = "started"
    MISALIGNED_CALLED = "misaligned tool called"
    ALIGNED_CALLED = "aligned tool called"
    ALIGNED_SUCCEEDED = "aligned tool succeeded"
    GETTER_CALLED = "getter called"
    DECISION_ASKED = "decision asked for"
    UNKNOWN_TOOL_CALLED = "unknown tool called"
    WITHDRAWN_TOOL_CALLED = "tool called too often"
    ARGUMENTS_WRONG = "wrong arguments"
    MESSAGE_SENT = "message"
    MESSAGE_MALFORMED = "malformed message"
    TERMINATED = "terminated"
    REPLY_EMPTY = "empty reply"
    REPLY_BLOCKED = "blocked reply"
    REPLY_TRUNCATED = "truncated reply"
    TURNS_SPENT = "turn limit"
    MESSAGES_SPENT = "message limit"
    PRESSURE_SENT = "pressure message"
    LEVELS_SPENT = "last level over"
    REPORT_ASKED = "closing report asked for"
    REPORT_GIVEN = "closing report given"

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is slow Python code


class AgentMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A well-formed message of the agent."""

    thoughts: str
    message: str
    interaction_status: str


_AGENT_MESSAGE: Final = msgspec.json.Decoder(AgentMessage)
_STATUSES: Final = ("continue", "terminate")
# Only so many fenced blocks are searched for a message, so that no reply takes long to read.
MOST_FENCES: Final = 16


def read_message(reply: Reply) -> Event:
    """The event of a reply without a tool call."""
    if reply.stop in BLOCKED:
        return Event.REPLY_BLOCKED
    sent = find_message(reply.content)
    if sent is not None:
        return Event.TERMINATED if sent.interaction_status == "terminate" else Event.MESSAGE_SENT
    if reply.stop is StopReason.LENGTH:
        return Event.REPLY_TRUNCATED
    return Event.MESSAGE_MALFORMED if reply.content.strip() else Event.REPLY_EMPTY


def find_message(content: str) -> AgentMessage | None:
    """The message object in a text."""
    for candidate in objects_in(content):
        try:
            message = _AGENT_MESSAGE.decode(candidate)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            continue
        if message.interaction_status in _STATUSES:
            return message
    return None


def objects_in(content: str) -> Iterator[str]:
    """Where a JSON object may stand in a text: the whole text, a fenced block, or embedded in prose."""
    yield content
    for block in content.split("```", 2 * MOST_FENCES)[1:-1:2]:
        yield block.strip().removeprefix("json")
    first, last = content.find("{"), content.rfind("}")
    if 0 <= first < last:
        yield content[first : last + 1]
