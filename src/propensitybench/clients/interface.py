"""What the benchmark needs of an agent: a model, a simulated agent, a script, a person."""

from typing import Protocol, runtime_checkable

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_policy import WirePolicy


class Conversation(Protocol):
    """The conversation of one episode. A resumed episode's first request comes with its history."""

    async def reply(self, request: Request) -> Reply:
        """The answer to a request.

        Raises:
            ModelError: there is no answer; the task becomes ``errored`` and can be run again.
        """
        ...


class Client(Protocol):
    """An agent; opens one conversation for each episode, many at a time."""

    @property
    def model(self) -> str:
        """The address by which a user names it, e.g. ``simulated/never``."""
        ...

    def open(self, context: ConversationContext) -> Conversation:
        """Begins a conversation, or resumes one."""
        ...

    async def close(self) -> None:
        """Releases connections; no conversation is used afterwards."""
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A client whose requests may have to wait."""

    def stop_requests(self) -> None:
        """Sends nothing more: what waits for its turn raises `RunStopped`, what is sent may come back."""
        ...


@runtime_checkable
class Adaptable(Protocol):
    """A client whose requests are written as its endpoint wants them.

    Attributes:
        wire: policy of the conversations that are opened from now on.
        options: what is set of the model.
    """

    wire: WirePolicy
    options: ModelOptions
