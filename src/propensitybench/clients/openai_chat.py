"""A client of OpenAI-compatible chat-completions endpoints with tool calls, over HTTP."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import aiohttp
from yarl import URL

from propensitybench.chat import CHARACTERS_PER_TOKEN, ConversationContext, Reply, Request, StopReason
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.executor import PacedClient, RequestExecutor
from propensitybench.clients.failures import Failure, FailureKind, error_in, failure_of
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.redaction import Redactor
from propensitybench.clients.usage import with_estimates
from propensitybench.clients.wire import Body
from propensitybench.clients.wire_policy import COMPATIBLE, WirePolicy
from propensitybench.clients.wire_reply import ReplyContext, parse, parse_failed_generation

# Of the body once it is unpacked. The longest replies, 128,000 tokens with the reasoning sent twice and every
# character escaped, take half of it; an endless body must not fill the memory.
MAX_REPLY_BYTES: Final = 4 * 2**20


class OpenAIChatClient(PacedClient):
    """A client of one model at one endpoint.

    Args:
        endpoint: model, address, keys and proxy.
        options: sampling options.
        transport: limits, retries and timeouts.
        wire: how requests are written.

    Attributes:
        wire: applies to conversations that are opened from now on.
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
        proxy = endpoint.proxy
        common = {"Content-Type": "application/json"}
        if proxy and not self._url.lower().startswith("https:"):
            common |= proxy.headers  # otherwise they are for the tunnel alone
        self._headers: Sequence[dict[str, str]] = [
            {**common, "Authorization": f"Bearer {key}"} for key in endpoint.keys
        ] or [common]
        self._redactor = Redactor(endpoint.secrets)
        self._executor = RequestExecutor(
            endpoint.address, endpoint.name, len(endpoint.keys), transport, self._redactor
        )
        self._session: aiohttp.ClientSession | None = None

    def open(self, context: ConversationContext) -> "ChatConversation":  # noqa: ARG002
        """Starts a conversation."""
        return ChatConversation(self.ask, Body(self._endpoint.name, self.options, self.wire))

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
            request: the next request.
            tokens: expected cost; 0 estimates it from the length of the request.
        """
        encoded, context = body.of(request), body.context
        return await self._executor.ask(
            lambda lease: self.attempt(encoded, (request, context), lease.key),
            tokens or len(encoded) // CHARACTERS_PER_TOKEN,
            len(request.messages),
        )

    async def attempt(self, body: bytes, asked: tuple[Request, ReplyContext], key: int) -> Reply:
        """Sends a request once, without limits and without `Redactor.outcome`.

        Args:
            body: the encoded request.
            asked: the request, and the context for parsing its reply.
            key: the number of the API key to use.

        Raises:
            Failure: there is no reply.
        """
        session = self._session or self._connect()
        proxy = self._endpoint.proxy
        try:
            # A redirect would carry the conversation and the key to another address.
            async with session.post(
                self._url,
                data=body,
                headers=self._headers[key],
                allow_redirects=False,
                proxy=proxy.url if proxy else None,
                proxy_headers=proxy.headers if proxy else None,
            ) as response:
                raw = await _read(response)
                status, answered = response.status, response.headers
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            raise self._without_response(error) from error
        reply = self._reply(status, answered, raw, asked)
        return with_estimates(reply, len(body)) if status == 200 else reply

    def _without_response(self, error: Exception) -> Failure:
        """The failure that an exception of aiohttp stands for; quotes nothing that the endpoint sent."""
        kind, endpoint, transport = FailureKind.NETWORK, self._endpoint, self._transport
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            kind, text = FailureKind.TIMEOUT, f"no connection within {transport.connect_timeout:g} s"
        elif isinstance(error, TimeoutError):
            kind, text = FailureKind.TIMEOUT, f"no answer within {transport.timeout:g} s"
        elif isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"the proxy answered HTTP {error.status}"
        elif isinstance(error, OSError):
            text = str(error) or type(error).__name__
        elif isinstance(error, aiohttp.ClientConnectionError):
            text = "the endpoint closed the connection"
        else:
            text = f"not a complete and valid HTTP response ({type(error).__name__})"
        return Failure(kind, text + endpoint.through)

    def _reply(
        self, status: int, headers: Mapping[str, str], raw: bytes, asked: tuple[Request, ReplyContext]
    ) -> Reply:
        """The reply in an HTTP response; raises `Failure` if there is none."""
        request, context = asked
        if status == 200:
            try:
                reply, refused = parse(raw, request.tools, context)
            except Failure:  # quotes the body
                reply, refused = parse(self._redactor.error_body(raw), request.tools, context)
            if refused is None:
                return reply
            failure = error_in(refused, headers, datetime.now(UTC))
        else:
            if status == 400 and (written := parse_failed_generation(raw, context)) is not None:
                return written
            raw = self._redactor.error_body(raw)  # before a message is cut within a key
            failure = failure_of(status, headers, raw, datetime.now(UTC))
        if failure.kind is FailureKind.BLOCKED:
            return Reply(str(failure), stop=StopReason.CONTENT_FILTER)
        if failure.kind is FailureKind.AUTH:
            failure = Failure(failure.kind, f"{failure}{self._endpoint.key_advice}")
        raise failure

    def _connect(self) -> aiohttp.ClientSession:
        """A session of the running event loop."""
        transport = self._transport
        timeout = aiohttp.ClientTimeout(
            total=transport.timeout, sock_connect=transport.connect_timeout, sock_read=transport.timeout
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=timeout, cookie_jar=_NoCookies()
        )
        return self._session


class _NoCookies(aiohttp.DummyCookieJar):
    """Ignores cookies without parsing them: aiohttp logs what it cannot parse."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        pass


class ChatConversation:
    """One conversation.

    Args:
        ask: gives the reply to a request, as `OpenAIChatClient.ask`.
        body: of the conversation's requests.
    """

    def __init__(self, ask: Callable[[Body, Request, int], Awaitable[Reply]], body: Body) -> None:
        self._ask = ask
        self._body = body
        self._tokens = 0

    async def reply(self, request: Request) -> Reply:
        """The reply to a request; see `Conversation`."""
        # A turn is expected to cost as much as the one before it.
        reply = await self._ask(self._body, request, self._tokens)
        self._tokens = reply.usage.input + reply.usage.output
        return reply


async def _read(response: aiohttp.ClientResponse) -> bytes:
    # In pieces of aiohttp's own size: `read` with a number has it unpack and hold twice as many bytes.
    parts: list[bytes] = []
    size = 0
    while not response.content.at_eof():
        parts.append(await response.content.readany())
        size += len(parts[-1])
        if size > MAX_REPLY_BYTES:
            response.close()
            text = f"a reply of more than {MAX_REPLY_BYTES // 2**20} MB"
            raise Failure(FailureKind.UNREADABLE, text)
    return b"".join(parts)
