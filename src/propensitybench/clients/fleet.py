"""A client of one model that several endpoints serve."""

import asyncio
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from propensitybench.chat import CHARACTERS_PER_TOKEN, ConversationContext, Reply, Request
from propensitybench.clients.endpoint import Endpoint, in_short
from propensitybench.clients.executor import PacedClient, RequestExecutor
from propensitybench.clients.fleet_queue import FleetQueue
from propensitybench.clients.limits import Rates, Seat
from propensitybench.clients.openai_chat import ChatConversation, OpenAIChatClient
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.redaction import Redactor
from propensitybench.clients.replicas import FIRST_PAUSE_S, Replicas
from propensitybench.clients.wire import Body
from propensitybench.clients.wire_policy import COMPATIBLE
from propensitybench.errors import BadInput

LOOK_EVERY_S: Final = 5.0


class FleetClient(PacedClient):
    """A client of one model at several endpoints, its replicas, which may come and go while it is in use.

    A conversation stays at its replica as long as that answers, so that the server's prefix cache serves it.
    The concurrency and the rates of the transport are those of all replicas together.

    Args:
        endpoint: gives the endpoint at an address, always with the same model and the same keys; raises
            `BadInput` for an address that cannot be used.
        urls: the addresses, one or more.
        options: sampling options.
        transport: limits, retries and timeouts.
        look: reads the addresses again, called in a thread while the client is in use. If it raises
            `BadInput`, the replicas stay as they are. None if they do not change.

    Attributes:
        wire: applies to conversations that are opened from now on, at all replicas.
        look_every: seconds between two looks.
        first_pause: seconds before a dead replica is asked again for the first time; as of the first request.

    Raises:
        BadInput: an address cannot be used.
    """

    def __init__(
        self,
        endpoint: Callable[[str], Endpoint],
        urls: Sequence[str],
        options: ModelOptions = ModelOptions(),
        transport: Transport = Transport(),
        look: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        first = endpoint(urls[0])
        self.model = first.address
        self.options = options
        self.wire = COMPATIBLE
        self.look_every = LOOK_EVERY_S
        self.first_pause = FIRST_PAUSE_S
        self._name = first.name
        self._endpoint = endpoint
        self._transport = transport
        self._look = look
        self._watching: asyncio.Task[None] | None = None
        self._clients: dict[str, OpenAIChatClient] = {}
        self._executor: _FleetExecutor = _FleetExecutor(first, transport, lambda: self.first_pause)
        self._enlist(urls)

    def open(self, context: ConversationContext) -> ChatConversation:  # noqa: ARG002
        """Starts a conversation."""
        return ChatConversation(partial(self._ask, Seat()), Body(self._name, self.options, self.wire))

    async def close(self) -> None:
        """Closes the connections."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        self._executor.forget()
        for client in self._clients.values():
            await client.close()

    async def _ask(self, seat: Seat, body: Body, request: Request, tokens: int) -> Reply:
        if self._look is not None and self._watching is None:
            self._watching = asyncio.create_task(self._watch(self._look))
        encoded, context = body.of(request), body.context
        return await self._executor.ask(
            lambda lease: self._clients[seat.url].attempt(encoded, (request, context), lease.key),
            tokens or len(encoded) // CHARACTERS_PER_TOKEN,
            len(request.messages),
            seat,
        )

    async def _watch(self, look: Callable[[], Sequence[str]]) -> None:
        """Reads the addresses again and again."""
        has_failed = False
        while True:
            await asyncio.sleep(self.look_every)
            try:
                self._enlist(await asyncio.to_thread(look))
                has_failed = False
            except BadInput as error:
                if not has_failed:
                    warnings.warn(f"{error}; the replicas stay as they were", stacklevel=2)
                has_failed = True

    def _enlist(self, urls: Sequence[str]) -> None:
        for url in urls:
            if url not in self._clients:
                endpoint = self._endpoint(url)
                self._executor.redact(endpoint.secrets)
                self._clients[url] = OpenAIChatClient(endpoint, self.options, self._transport)
        self._executor.enlist(urls)


class _FleetExecutor(RequestExecutor):
    """Sends requests to replicas, each with limits of its own."""

    def __init__(self, first: Endpoint, transport: Transport, first_pause: Callable[[], float]) -> None:
        super().__init__(first.address, first.name, len(first.keys), transport, Redactor())
        self._first_pause = first_pause
        self._secrets: set[str] = set()
        self._urls: Sequence[str] = ()
        self._queue: FleetQueue | None = None

    @property
    def where(self) -> str:
        """The model and its replicas."""
        return f"{super().where} at {in_short(self._urls)}"

    def enlist(self, urls: Sequence[str]) -> None:
        """These are the replicas from now on."""
        if urls == self._urls:
            return
        self._urls = urls
        if self._queue is not None:
            self._queue.enlist(urls)

    def redact(self, secrets: Sequence[str]) -> None:
        """Looks for these too in what the replicas send."""
        self._secrets.update(secrets)
        self._redactor = Redactor(self._secrets)

    def _new_queue(self, rates: Sequence[Rates]) -> FleetQueue:
        most = self._transport.concurrency
        queue = FleetQueue(Replicas(rates, most, self._first_pause()), most)
        queue.enlist(self._urls)
        return queue
