"""Any OpenAI-compatible chat-completions endpoint with tool calls, straight over HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import aiohttp

from propensitybench.chat import ConversationContext, Reply, Request, StopReason
from propensitybench.clients.executor import RequestExecutor
from propensitybench.clients.failures import Failure, FailureKind, error_in, failure_of
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.wire import Body, parse

# No sound reply of a chat model comes near it; a stream that does not end must not fill the memory.
LARGEST_REPLY: Final = 16 * 2**20
# A shorter key is a dummy for a local server, like "x" or "test", and may be part of any sound reply.
SECRET_LENGTH: Final = 16


@dataclass(frozen=True)
class Endpoint:
    """Where a model is.

    Attributes:
        address: what the user calls it, e.g. ``openai/gpt-x``.
        name: what the endpoint calls it.
        base_url: without ``/chat/completions``.
        keys: API keys, which take turns; may be empty.
    """

    address: str
    name: str
    base_url: str
    keys: tuple[str, ...] = field(default=(), repr=False)


class OpenAIChatClient:
    """Asks one model at one endpoint.

    Args:
        endpoint: where it is.
        options: what decides its replies.
        transport: how requests are sent.
    """

    def __init__(
        self, endpoint: Endpoint, options: ModelOptions = ModelOptions(), transport: Transport = Transport()
    ) -> None:
        self.model = endpoint.address
        self.options = options
        self._endpoint = endpoint
        self._transport = transport
        self._url = endpoint.base_url.rstrip("/") + "/chat/completions"
        self._headers: Sequence[dict[str, str]] = [
            {"Content-Type": "application/json", "Authorization": f"Bearer {key}"} for key in endpoint.keys
        ] or [{"Content-Type": "application/json"}]
        self._executor = RequestExecutor(endpoint.address, endpoint.name, len(endpoint.keys), transport)
        self._session: aiohttp.ClientSession | None = None

    def open(self, context: ConversationContext) -> "_OpenAIConversation":  # noqa: ARG002
        """Begins a conversation."""
        return _OpenAIConversation(self, Body(self._endpoint.name, self.options))

    def stop_requests(self) -> None:
        """Sends nothing more; see `Stoppable`."""
        self._executor.stop_requests()

    async def close(self) -> None:
        """Closes the connections."""
        self._executor.forget()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, body: bytes, request: Request, tokens: int) -> Reply:
        """Sends a body until there is a reply; see `RequestExecutor.ask`."""
        session = self._session or self._connect()
        return await self._executor.ask(
            lambda key: self._try(session, body, request, self._headers[key]), tokens
        )

    async def _try(
        self, session: aiohttp.ClientSession, body: bytes, request: Request, headers: dict[str, str]
    ) -> Reply:
        try:
            async with session.post(self._url, data=body, headers=headers) as response:
                # An endpoint that repeats the key must not put it into messages or run files.
                raw = self._redacted(await _read(response))
                status, answered = response.status, response.headers
        except aiohttp.ConnectionTimeoutError as error:
            why = f"no connection within {self._transport.connect_timeout:g} s"
            raise Failure(FailureKind.TIMEOUT, why) from error
        except TimeoutError as error:
            raise Failure(FailureKind.TIMEOUT, f"no answer within {self._transport.timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Failure(FailureKind.NETWORK, str(error) or type(error).__name__) from error
        now = datetime.now(UTC)
        if status != 200:
            failure = failure_of(status, answered, raw, now)
        else:
            reply, refused = parse(raw, request.tools)
            if refused is None:
                return reply
            failure = error_in(refused, answered, now)
        if failure.kind is FailureKind.BLOCKED:
            return Reply(stop=StopReason.CONTENT_FILTER)
        raise failure

    def _redacted(self, raw: bytes) -> bytes:
        for key in self._endpoint.keys:
            if len(key) >= SECRET_LENGTH:
                raw = raw.replace(key.encode(), b"[key]")
        return raw

    def _connect(self) -> aiohttp.ClientSession:
        """A session of the event loop that is running."""
        way = self._transport
        timeout = aiohttp.ClientTimeout(
            total=way.timeout, sock_connect=way.connect_timeout, sock_read=way.timeout
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        )
        return self._session


class _OpenAIConversation:
    def __init__(self, client: OpenAIChatClient, body: Body) -> None:
        self._client = client
        self._body = body
        self._tokens = 0

    async def reply(self, request: Request) -> Reply:
        body = self._body.of(request)
        # The first turn is estimated from its length, a later one from what the turn before it cost.
        reply = await self._client.ask(body, request, self._tokens or len(body) // 4)
        self._tokens = reply.usage.input + reply.usage.output
        return reply


async def _read(response: aiohttp.ClientResponse) -> bytes:
    raw = await response.content.read(LARGEST_REPLY + 1)
    if response.content.at_eof():
        return raw
    parts = [raw]
    size = len(raw)
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > LARGEST_REPLY:
            response.close()
            raise Failure(FailureKind.UNREADABLE, f"a reply of more than {LARGEST_REPLY // 2**20} MB")
    return b"".join(parts)
