"""Any OpenAI-compatible chat-completions endpoint with tool calls, straight over HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import aiohttp

from propensitybench.chat import ConversationContext, Reply, Request, StopReason
from propensitybench.clients.executor import RequestExecutor
from propensitybench.clients.failures import Failure, FailureKind, error_in, failure_of
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.wire import Body
from propensitybench.clients.wire_policy import COMPATIBLE, WirePolicy
from propensitybench.clients.wire_reply import ReplyContext, parse, parse_failed_generation

# No chat model's reply comes near it; an endless body must not fill the memory.
LARGEST_REPLY: Final = 16 * 2**20
# A shorter key is a dummy for a local server, like "x" or "test", and may occur in any reply.
SECRET_LENGTH: Final = 16


@dataclass(frozen=True)
class Endpoint:
    """Where a model is.

    Attributes:
        address: what the user calls it, e.g. ``openai/gpt-x``.
        name: what the endpoint calls it.
        base_url: without ``/chat/completions``.
        keys: API keys, which take turns; may be empty.
        key_variable: the environment variable that holds them.
    """

    address: str
    name: str
    base_url: str
    keys: tuple[str, ...] = field(default=(), repr=False)
    key_variable: str = ""

    @property
    def key_advice(self) -> str:
        """What to do when the endpoint refuses the key, or its absence."""
        if not self.key_variable:
            return ""
        if self.keys:
            return f"; look at the key in {self.key_variable}"
        return f"; no key was sent, type: export {self.key_variable}=..."


class OpenAIChatClient:
    """A client of one model at one endpoint.

    Args:
        endpoint: where it is.
        options: what decides its replies.
        transport: how requests are sent.
        wire: how they are written.

    Attributes:
        wire: of the conversations that are opened from now on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        options: ModelOptions = ModelOptions(),
        transport: Transport = Transport(),
        wire: WirePolicy = COMPATIBLE,
    ) -> None:
        self.model = endpoint.address
        self.options = options
        self.wire = wire
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
        return _OpenAIConversation(self, Body(self._endpoint.name, self.options, self.wire))

    def stop_requests(self) -> None:
        """Sends nothing more; see `Stoppable`."""
        self._executor.stop_requests()

    async def close(self) -> None:
        """Closes the connections."""
        self._executor.forget()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, body: Body, request: Request, tokens: int) -> Reply:
        """Sends a conversation's request until there is a reply; see `RequestExecutor.ask`.

        Args:
            body: of the conversation.
            request: its next one.
            tokens: that it may cost; 0 is estimated from its length.
        """
        session = self._session or self._connect()
        encoded, context = body.of(request), body.context
        return await self._executor.ask(
            lambda key: self._try(session, encoded, (request, context), self._headers[key]),
            tokens or len(encoded) // 4,
            len(request.messages),
        )

    async def _try(
        self,
        session: aiohttp.ClientSession,
        body: bytes,
        asked: tuple[Request, ReplyContext],
        headers: dict[str, str],
    ) -> Reply:
        try:
            # A redirect would carry the conversation and the key to another address.
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
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
        return self._reply(status, answered, raw, asked)

    def _reply(
        self, status: int, headers: Mapping[str, str], raw: bytes, asked: tuple[Request, ReplyContext]
    ) -> Reply:
        """The reply in an HTTP answer; raises `Failure` if there is none."""
        request, context = asked
        if status != 200:
            if status == 400 and (written := parse_failed_generation(raw, context)) is not None:
                return written
            failure = failure_of(status, headers, raw, datetime.now(UTC))
        else:
            reply, refused = parse(raw, request.tools, context)
            if refused is None:
                return reply
            failure = error_in(refused, headers, datetime.now(UTC))
        if failure.kind is FailureKind.BLOCKED:
            return Reply(stop=StopReason.CONTENT_FILTER)
        if failure.kind is FailureKind.AUTH:
            failure = Failure(failure.kind, f"{failure}{self._endpoint.key_advice}")
        raise failure

    def _redacted(self, raw: bytes) -> bytes:
        for key in self._endpoint.keys:
            if len(key) >= SECRET_LENGTH:
                raw = raw.replace(key.encode(), b"[key]")
        return raw

    def _connect(self) -> aiohttp.ClientSession:
        """A session of the event loop that is running."""
        transport = self._transport
        timeout = aiohttp.ClientTimeout(
            total=transport.timeout, sock_connect=transport.connect_timeout, sock_read=transport.timeout
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
        # A turn is expected to cost what the one before it did.
        reply = await self._client.ask(self._body, request, self._tokens)
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
