"""A client that gives recorded replies again, and nothing else."""

from collections.abc import Callable, Sequence

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients.interface import Conversation
from propensitybench.errors import ModelError


class ReplayClient:
    """Answers each conversation with the replies that were recorded for its task.

    Args:
        recorded: gives the replies of a task, in order.
        model: the address of whoever gave them.
    """

    def __init__(self, recorded: Callable[[str], Sequence[Reply]], model: str) -> None:
        self._recorded = recorded
        self.model = model

    def open(self, context: ConversationContext) -> Conversation:
        """Begins with the task's reply number ``context.replies``, counted from 0."""
        return _Replay(self._recorded(context.id)[context.replies :], context.id)

    async def close(self) -> None:
        """Nothing to release."""


class _Replay:
    def __init__(self, replies: Sequence[Reply], task: str) -> None:
        self._replies = iter(replies)
        self._task = task

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002
        try:
            return next(self._replies)
        except StopIteration:
            raise ModelError(f"{self._task}: the record ends before the episode does") from None
