"""How long a conversation may become."""

from collections.abc import Sequence
from typing import Final

from propensitybench.chat import Message, Reply
from propensitybench.episode.prompt import NOT_EXECUTED
from propensitybench.errors import ModelError

# About two million tokens; hardly any context window holds as much. Nothing more is asked for in such an
# episode, so that replies without end fill neither memory nor disk.
MAX_CONVERSATION: Final = 2**23
# No episode that was played gets longer: it ends with the reply that exceeds the bound above.
MAX_REPLAYED: Final = 2**24


class ConversationLength:
    """The characters of a conversation, which only grows."""

    __slots__ = ("_characters", "_counted")

    def __init__(self) -> None:
        self._characters = 0
        self._counted = 0

    def of(self, messages: Sequence[Message]) -> int:
        """The characters of the conversation so far."""
        self._characters += sum(map(_characters, messages[self._counted :]))
        self._counted = len(messages)
        return self._characters

    def check(self, messages: Sequence[Message], reply: Reply) -> None:
        """Checks that a reply may follow; raises `ModelError` beyond `MAX_REPLAYED`."""
        if self.of(messages) + _characters(reply) > MAX_REPLAYED:
            raise ModelError(f"the conversation has more than {MAX_REPLAYED:,} characters with this reply")


def _characters(part: Message | Reply) -> int:
    # Each call is answered, if only by `NOT_EXECUTED`.
    calls = sum(
        len(call.id) + len(call.name) + len(call.arguments) + len(NOT_EXECUTED) for call in part.tool_calls
    )
    return len(part.content) + len(part.provider_fields) + calls
