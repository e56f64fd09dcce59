"""The interface of agents: models, simulated agents, scripts, people."""

from typing import Protocol, runtime_checkable

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_policy import WirePolicy


class Conversation(Protocol):
    """The conversation of one episode. A resumed episode's first request comes with its history."""

    async def reply(self, request: Request) -> Reply:
        """The reply to a request.

        Raises:
            ModelError: there is no reply; the task becomes ``errored`` and can be retried.
        """
        ...


class Client(Protocol):
    """An agent; opens one conversation per episode, many at a time."""

    @property
    def model(self) -> str:
        """The model's address, e.g. ``simulated/never``."""
        ...

    def open(self, context: ConversationContext) -> Conversation:
        """Starts a conversation, or resumes one."""
        ...

    async def close(self) -> None:
        """Closes the connections; no conversation is used afterwards."""
        ...


@runtime_checkable
class Stoppable(Protocol):
    """A client that sends requests over connections and may queue them."""

    def stop_requests(self) -> None:
        """Sends no further requests: queued ones raise `RunStopped`, those in flight may complete."""
        ...


@runtime_checkable
class Adaptable(Protocol):
    """A client whose requests can be written in several forms.

    Attributes:
        wire: applies to conversations that are opened from now on.
        options: the sampling options.
    """

    wire: WirePolicy
    options: ModelOptions


@runtime_checkable
class Paced(Protocol):
    """A client whose pace can be set while it is in use, on the event loop on which it is used."""

    @property
    def throttled(self) -> int:
        """Rate limits (HTTP 429) and signs of overload (503, 529) that it has met so far."""
        ...

    def set_rates(self, rpm: float | None, tpm: float | None) -> None:
        """Sends at other rates from now on; a change gives no burst of its own.

        Args:
            rpm: requests per minute, for each key; None is without limit.
            tpm: tokens per minute, for each key; None is without limit.

        Raises:
            ValueError: a rate is not above 0.
        """
        ...

    def hold(self, seconds: float) -> None:
        """Sends nothing for so long, with any key. Requests in flight are not affected."""
        ...
