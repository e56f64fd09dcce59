"""The interface of agents: models, simulated agents, scripts, people."""

from typing import Protocol

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.options import ModelOptions


class Conversation(Protocol):
    """The conversation of one episode. A resumed episode's first request comes with its history."""

    async def reply(self, request: Request) -> Reply:
        """The reply to a request.

        Raises:
            ModelError: there is no reply; the task becomes ``errored`` and can be retried.
        """
        ...


class Client:
    """An agent. It answers in many conversations at a time, one per episode.

    A subclass overrides `reply`, or `open` if its conversations remember something.

    Attributes:
        model: the address in the run file, e.g. ``mine/first``; may be left out in `propensitybench.run`.
        knows_task: whether the context of a conversation has the task's metadata, as simulated agents need.
        has_endpoint: whether it sends requests over connections, which a preflight can check.
        dialect: how requests are written, for conversations that are opened from now on; None if there is
            only one form.
        options: the sampling options.
    """

    model: str
    knows_task: bool = False
    has_endpoint: bool = False
    dialect: ChatDialect | None = None
    options: ModelOptions = ModelOptions()

    async def reply(self, request: Request, context: ConversationContext) -> Reply:
        """The reply to a request of a conversation; see `Conversation.reply`."""
        raise NotImplementedError(f"{type(self).__name__} overrides neither reply nor open")

    def open(self, context: ConversationContext) -> Conversation:
        """Starts a conversation, or resumes one."""
        return _Forgetful(self, context)

    def stop_requests(self) -> None:
        """Sends no further requests: queued ones raise `RunStopped`, those in flight may complete."""

    async def close(self) -> None:
        """Closes the connections; no conversation is used afterwards."""


class _Forgetful:
    """A conversation of a client that needs no more than the request."""

    def __init__(self, client: Client, context: ConversationContext) -> None:
        self._client = client
        self._context = context

    async def reply(self, request: Request) -> Reply:
        return await self._client.reply(request, self._context)
