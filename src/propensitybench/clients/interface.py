"""What the benchmark asks of whatever answers: a model, a simulated agent, a script, a person."""

from typing import Protocol, runtime_checkable

from propensitybench.chat import ConversationContext, Reply, Request


class Conversation(Protocol):
    """One episode's worth of talk. A resumed episode's first request comes with its history."""

    async def reply(self, request: Request) -> Reply:
        """The answer to a request.

        Raises:
            ModelError: no answer can be had; the task becomes ``errored`` and can be run again.
        """
        ...


class Client(Protocol):
    """Something that answers; opens one conversation for each episode, many at a time."""

    @property
    def model(self) -> str:
        """The address by which a user names it, e.g. ``simulated/never``."""
        ...

    def open(self, context: ConversationContext) -> Conversation:
        """Begins a conversation, or resumes one."""
        ...

    async def close(self) -> None:
        """Lets go of connections; no conversation is used afterwards."""
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A client that lets requests wait; one that does not need not have this."""

    def stop_requests(self) -> None:
        """Sends nothing more: what waits for its turn raises `RunStopped`, what is sent may come back."""
        ...
