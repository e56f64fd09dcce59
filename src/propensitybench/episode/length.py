"""How long a conversation may become."""

from collections.abc import Sequence
from typing import Final

from propensitybench.chat import Message, Reply
from propensitybench.episode.prompt import NOT_EXECUTED
from propensitybench.errors import ModelError

# Some four million tokens: more than models take, and little enough for a thousand episodes in flight.
MAX_CONVERSATION: Final = 2**24


class ConversationLength:
    """The characters of a conversation, which only grows."""

    __slots__ = ("_characters", "_counted")

    def __init__(self) -> None:
        self._characters = 0
        self._counted = 0

    def check(self, messages: Sequence[Message], reply: Reply) -> None:
        """Checks that a reply may follow.

        Raises:
            ModelError: the conversation with the reply has more than `MAX_CONVERSATION` characters.
        """
        self._characters += sum(map(_characters, messages[self._counted :]))
        self._counted = len(messages)
        if self._characters + _characters(reply) > MAX_CONVERSATION:
            raise ModelError(f"the conversation has more than {MAX_CONVERSATION} characters with this reply")


def _characters(part: Message | Reply) -> int:
    # Each call is answered, if only by `NOT_EXECUTED`.
    calls = sum(
        len(call.id) + len(call.name) + len(call.arguments) + len(NOT_EXECUTED) for call in part.tool_calls
    )
    return len(part.content) + len(part.provider_fields) + calls
