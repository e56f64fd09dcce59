"""A client that says what it was told to say: for tests, examples and trying things out."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from propensitybench.chat import ConversationContext, Reply, Request, StopReason, ToolCall
from propensitybench.clients.client import Client, Conversation
from propensitybench.errors import ModelError

Script = Sequence[Reply]


def calls(tool: str, **arguments: Any) -> Reply:
    """A reply that calls a tool."""
    raw = msgspec.json.encode(arguments).decode()
    return Reply(tool_calls=(ToolCall("call", tool, raw),), stop=StopReason.TOOL_CALLS)


def says(message: str, *, done: bool = False, thoughts: str = "") -> Reply:
    """A reply with a well-formed message; ``done`` makes it terminate."""
    status = "terminate" if done else "continue"
    body = {"thoughts": thoughts, "message": message, "interaction_status": status}
    return Reply(content=msgspec.json.encode(body).decode())


class ScriptedClient(Client):
    """Plays a script in every conversation, and its last reply again when it is through.

    Args:
        script: the replies, or a function that gives them for a conversation's context.
        model: the address to go by.
    """

    def __init__(
        self, script: Script | Callable[[ConversationContext], Script], model: str = "scripted"
    ) -> None:
        self._script = script
        self.model = model

    def open(self, context: ConversationContext) -> Conversation:
        """Begins the script at its reply number ``context.replies``, counted from 0."""
        script = self._script(context) if callable(self._script) else self._script
        return _Scripted(script, context.replies)


class _Scripted:
    def __init__(self, script: Script, given: int) -> None:
        self._script = script
        self._next = given

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002
        if not self._script:
            raise ModelError("the script is empty")
        reply = self._script[min(self._next, len(self._script) - 1)]
        self._next += 1
        return reply
