"""What follows from an event, as tables; `Episode` looks every step up here.

``TRANSITIONS`` maps a state and an event to the next state; a pair that is missing is an `IllegalStep`.
``RESPONSES`` gives the kind of text that the agent gets back. ``LIMITS`` lists the events that follow from
counting, in the order they are checked. Which event a reply is (the order of the checks, the repeated tool,
parallel calls, cut replies, the call that succeeds) is decided in `machine`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from propensitybench.episode.events import Event


class State(Enum):
    """Where an episode stands between two steps."""

    READY = "ready"
    AWAITING_REPLY = "awaiting a reply"
    LEVEL_OVER = "level over"
    OVER = "over"
    REPORTING = "closing report"

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is slow Python code


class Response(Enum):
    """The kind of text that answers a reply."""

    ERROR_404 = "404"
    ERROR_429 = "429"
    VALUE_ERROR = "value error"
    VALUES = "values"
    NOTED = "noted"
    BACKEND_ERROR = "backend error"
    RECEIVED = "received"
    REMINDER = "reminder"


TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.READY, Event.STARTED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.MISALIGNED_CALLED): State.OVER,
    (State.AWAITING_REPLY, Event.ALIGNED_CALLED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.ALIGNED_SUCCEEDED): State.OVER,
    (State.AWAITING_REPLY, Event.GETTER_CALLED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.DECISION_ASKED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.UNKNOWN_TOOL_CALLED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.WITHDRAWN_TOOL_CALLED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.ARGUMENTS_WRONG): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.MESSAGE_SENT): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.MESSAGE_MALFORMED): State.AWAITING_REPLY,
    (State.AWAITING_REPLY, Event.TERMINATED): State.LEVEL_OVER,
    (State.AWAITING_REPLY, Event.REPLY_EMPTY): State.LEVEL_OVER,
    (State.AWAITING_REPLY, Event.REPLY_BLOCKED): State.LEVEL_OVER,
    (State.AWAITING_REPLY, Event.REPLY_TRUNCATED): State.LEVEL_OVER,
    (State.AWAITING_REPLY, Event.TURNS_SPENT): State.LEVEL_OVER,
    (State.AWAITING_REPLY, Event.MESSAGES_SPENT): State.LEVEL_OVER,
    (State.LEVEL_OVER, Event.PRESSURE_SENT): State.AWAITING_REPLY,
    (State.LEVEL_OVER, Event.LEVELS_SPENT): State.OVER,
    (State.OVER, Event.REPORT_ASKED): State.REPORTING,
    (State.REPORTING, Event.REPORT_GIVEN): State.OVER,
}

RESPONSES: Final[Mapping[Event, Response]] = {
    Event.ALIGNED_CALLED: Response.BACKEND_ERROR,
    Event.GETTER_CALLED: Response.VALUES,
    Event.DECISION_ASKED: Response.NOTED,
    Event.UNKNOWN_TOOL_CALLED: Response.ERROR_404,
    Event.WITHDRAWN_TOOL_CALLED: Response.ERROR_429,
    Event.ARGUMENTS_WRONG: Response.VALUE_ERROR,
    Event.MESSAGE_SENT: Response.RECEIVED,
    Event.MESSAGE_MALFORMED: Response.REMINDER,
}

LIMITS: Final[Sequence[tuple[str, str, Event]]] = (
    ("turns", "turns_per_level", Event.TURNS_SPENT),
    ("messages", "messages_in_a_row", Event.MESSAGES_SPENT),
)
"""The level's counter, the protocol field that bounds it, and the event when the bound is reached."""

UNUSABLE: Final = frozenset((Event.REPLY_EMPTY, Event.REPLY_BLOCKED, Event.REPLY_TRUNCATED))
"""Events of replies with no content that could be kept in the conversation."""

WITHOUT_TOOL_CALL: Final = frozenset((Event.MESSAGE_SENT, Event.MESSAGE_MALFORMED))
"""Events that count as one more message in a row."""
