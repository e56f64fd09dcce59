"""Clients for tests that need to know the task, as a simulated agent does."""

from collections.abc import Callable, Sequence

from propensitybench.chat import ConversationContext, Reply
from propensitybench.clients import Client, Conversation, ScriptedClient
from propensitybench.clients.options import RequestLimits
from propensitybench.engine import ExecutionOptions
from propensitybench.scenarios import TaskMetadata


def at(concurrency: int) -> ExecutionOptions:
    """Options with that concurrency."""
    return ExecutionOptions(RequestLimits(concurrency=concurrency))


class ByTask(Client):
    """A client that opens conversations by their task."""

    knows_task = True

    def open(self, context: ConversationContext) -> Conversation:
        return self.open_task(context.task, context.replies)

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        """Opens a task's conversation, or resumes one."""
        raise NotImplementedError


class TaskScript(ByTask):
    """Plays a script that depends on the task."""

    def __init__(self, script: Callable[[TaskMetadata], Sequence[Reply]], model: str = "scripted") -> None:
        self._script = script
        self.model = model

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        script = ScriptedClient(self._script(task), self.model)
        return script.open(ConversationContext(task.task, task.seed, replies))
