"""Every reply becomes exactly one event."""

import re
from enum import Enum
from typing import Final, Literal, TypeVar

import msgspec

from propensitybench.chat import BLOCKED, Message, Reply, StopReason, decode_or_none


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


Found = TypeVar("Found")


class AgentMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A well-formed message of the agent."""

    thoughts: str
    message: str
    interaction_status: Literal["continue", "terminate"]


_AGENT_MESSAGE: Final = msgspec.json.Decoder(AgentMessage)
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_FLAT: Final = rf"[\s\d,:\[\].eE+-]++|true|false|null|{_STRING}"
# What looks like a JSON object that holds at most flat ones. Quantifiers are possessive, and a backslash
# stands only in strings, so the search is linear: of all the braces from which it could begin, at most four
# reach any one place, inside a string or not, inside an inner object or not.
_OBJECT: Final = re.compile(rf"\{{\s*+{_STRING}\s*+:(?:{_FLAT}|\{{(?:{_FLAT})*+\}})*+\}}", re.DOTALL)


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


def is_agent_message(message: Message) -> bool:
    """Whether a message of the conversation is one with a text that the agent has sent."""
    if message.role != "assistant" or message.tool_calls:
        return False
    sent = find_message(message.content)
    return sent is not None and bool(sent.message.strip())


def find_message(content: str) -> AgentMessage | None:
    """The message in a text; of several, the last."""
    return last_object(content, _AGENT_MESSAGE)


def last_object(content: str, decoder: msgspec.json.Decoder[Found]) -> Found | None:
    """The last JSON object in a text that a decoder accepts, but none that stands in another one."""
    found = (decode_or_none(candidate, decoder) for candidate in reversed(_OBJECT.findall(content)))
    return next((one for one in found if one is not None), None)
