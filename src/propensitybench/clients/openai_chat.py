"""A client of OpenAI-compatible chat-completions endpoints with tool calls, over HTTP."""

import errno
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import aiohttp
from yarl import URL

from propensitybench.chat import (
    BLOCKED,
    CHARACTERS_PER_TOKEN,
    ConversationContext,
    Reply,
    Request,
    StopReason,
)
from propensitybench.clients.client import Client
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.executor import RequestExecutor
from propensitybench.clients.failures import Failure, FailureKind, error_in, failure_of
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.clients.redaction import Redactor
from propensitybench.clients.usage import ESTIMATED
from propensitybench.clients.wire import Body
from propensitybench.clients.wire_reply import parse, parse_failed_generation

logger = logging.getLogger(__name__)
# Of the body once it is unpacked. The longest replies, 128,000 tokens with the reasoning sent twice and every
# character escaped, take half of it; an endless body must not fill the memory.
MAX_REPLY_BYTES: Final = 4 * 2**20


class OpenAIChatClient(Client):
    """A client of one model, at one address or at several that serve the same model.

    Conversations are dealt to the addresses in turn and stay where they are, so that the server's prefix
    cache serves them. One whose request fails there goes to the next address.

    Args:
        endpoint: model, address, keys and proxy.
        options: sampling options.
        transport: limits, retries and timeouts, over all addresses together.
        dialect: how requests are written.
        others: the model's other addresses, with the same keys.
    """

    has_endpoint = True
    dialect: ChatDialect

    def __init__(
        self,
        endpoint: Endpoint,
        options: ModelOptions = ModelOptions(),
        transport: RequestLimits = RequestLimits(),
        dialect: ChatDialect = DEFAULT_DIALECT,
        others: Sequence[Endpoint] = (),
    ) -> None:
        self.model = endpoint.address
        self.options = options
        self.dialect = dialect
        self.redactor = Redactor(secret for one in (endpoint, *others) for secret in one.secrets)
        self.executor = RequestExecutor(len(endpoint.keys), transport, self.redactor)
        self._addresses = [_Address(one, transport) for one in (endpoint, *others)]
        self._timeout = aiohttp.ClientTimeout(total=transport.timeout, sock_connect=transport.connect_timeout)
        self._opened = 0
        self._has_warned = False
        self._session: aiohttp.ClientSession | None = None

    def open(self, context: ConversationContext) -> "ChatConversation":  # noqa: ARG002
        """Starts a conversation."""
        first = self._opened % len(self._addresses)
        self._opened += 1
        body = Body(self._addresses[0].endpoint.name, self.options, self.dialect)
        return ChatConversation(self, body, [*self._addresses[first:], *self._addresses[:first]])

    def stop_requests(self) -> None:
        """Sends no further requests."""
        self.executor.stop_requests()

    async def close(self) -> None:
        """Closes the connections."""
        self.executor.forget()
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections, which belong to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=self._timeout, cookie_jar=_NoCookies()
            )
        return self._session

    def note_estimates(self) -> None:
        """Says, once, that the endpoint does not count tokens."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s does not state usable token counts: budgets and costs use estimates", self.model
            )


class _Address:
    """An endpoint as it is used: its URL, and the headers with each key."""

    def __init__(self, endpoint: Endpoint, transport: RequestLimits) -> None:
        self.endpoint = endpoint
        self.url = URL(endpoint.base_url.rstrip("/") + "/chat/completions")
        proxy = endpoint.proxy
        self.proxy = proxy.url if proxy else None
        self.proxy_headers = proxy.headers if proxy else None
        common = {"Content-Type": "application/json"}
        if proxy and self.url.scheme != "https":
            common |= proxy.headers  # otherwise they are for the tunnel alone
        keyed = [{**common, "Authorization": f"Bearer {key}"} for key in endpoint.keys]
        self.headers: Sequence[Mapping[str, str]] = keyed or [common]
        self._transport = transport

    def without_response(self, error: Exception) -> Failure:
        """The failure that an exception of aiohttp stands for; quotes nothing that the endpoint sent."""
        kind, transport = FailureKind.NETWORK, self._transport
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            kind, text = FailureKind.TIMEOUT, f"no connection within {transport.connect_timeout:g} s"
        elif isinstance(error, TimeoutError):
            kind, text = FailureKind.TIMEOUT, f"no answer within {transport.timeout:g} s"
        elif isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"the proxy answered HTTP {error.status}"
        elif isinstance(error, aiohttp.ClientConnectorError):
            text = _no_connection(error)
        elif isinstance(error, OSError):
            text = str(error) or type(error).__name__
        elif isinstance(error, aiohttp.ClientConnectionError):
            text = "the endpoint closed the connection"
        else:
            text = f"not a complete and valid HTTP response ({type(error).__name__})"
        return Failure(kind, text + self.endpoint.through)


def _no_connection(error: aiohttp.ClientConnectorError) -> str:
    to, cause = f"{error.host}:{error.port}", error.os_error
    if cause.errno != errno.ECONNREFUSED:
        return f"cannot connect to {to} ({cause.strerror or cause})"
    is_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
    return f"nothing listens at {to}" + ("" if is_proxy else "; start the server or correct --base-url")


class ChatConversation:
    """One conversation, and the exchange of its next request.

    Args:
        client: that it belongs to.
        body: of its requests.
        addresses: where it may be, the first first.
    """

    def __init__(self, client: OpenAIChatClient, body: Body, addresses: Sequence[_Address]) -> None:
        self._client = client
        self._body = body
        self._addresses = addresses
        self._at = addresses[0]
        self._failed = 0
        self._request = Request((), ())
        self._encoded = b""
        self._tokens = 0

    async def reply(self, request: Request) -> Reply:
        """The reply to a request; see `Conversation`."""
        self._request, self._encoded, self._failed = request, self._body.of(request), 0
        # A turn is expected to cost as much as the one before it.
        tokens = self._tokens or len(self._encoded) // CHARACTERS_PER_TOKEN
        reply = await self._client.executor.ask(self, tokens)
        self._tokens = reply.usage.input + reply.usage.output
        if reply.repairs and ESTIMATED in reply.repairs and reply.stop not in BLOCKED:
            self._client.note_estimates()
        return reply

    @property
    def where(self) -> str:
        """The model, and where the conversation is if there are several addresses."""
        model = self._client.model
        return model if len(self._addresses) == 1 else f"{model} at {self._at.endpoint.base_url}"

    @property
    def depth(self) -> int:
        """Messages in the conversation."""
        return len(self._request.messages)

    def moves(self) -> bool:
        """Goes to the next address; False once all have failed in turn."""
        self._failed += 1
        self._at = self._addresses[(self._addresses.index(self._at) + 1) % len(self._addresses)]
        return self._failed % len(self._addresses) != 0

    async def attempt(self, key: int, number: int) -> Reply:
        """Sends the request once; see `Exchange`."""
        at = self._at
        started = time.monotonic()
        try:
            # A redirect would carry the conversation and the key to another address.
            async with self._client.session.post(
                at.url,
                data=self._encoded,
                headers=at.headers[key],
                allow_redirects=False,
                proxy=at.proxy,
                proxy_headers=at.proxy_headers,
            ) as response:
                raw = await _read(response)
        except (aiohttp.ClientError, OSError) as error:  # a timeout is an OSError
            raise at.without_response(error) from error
        context = self._body.context
        context.attempts = number
        context.latency_ms = round(1000 * (time.monotonic() - started))
        if response.status == 200:
            return self._read_reply(raw, response.headers)
        return self._read_error(response.status, raw, response.headers)

    def _read_reply(self, raw: bytes, headers: Mapping[str, str]) -> Reply:
        """The reply in a successful response; raises `Failure` if there is none."""
        try:
            reply, refused = parse(raw, self._request.tools, self._body.context)
        except Failure:  # quotes the body
            raw = self._client.redactor.error_body(raw)
            reply, refused = parse(raw, self._request.tools, self._body.context)
        if refused is None:
            return reply
        return self._blocked(error_in(refused, headers, datetime.now(UTC)))

    def _read_error(self, status: int, raw: bytes, headers: Mapping[str, str]) -> Reply:
        """The reply that an error holds; raises `Failure` if it holds none."""
        context = self._body.context
        if status == 400 and (written := parse_failed_generation(raw, context)) is not None:
            return written
        raw = self._client.redactor.error_body(raw)  # before a message is cut within a key
        return self._blocked(failure_of(status, headers, raw, datetime.now(UTC)))

    def _blocked(self, failure: Failure) -> Reply:
        """The reply that an error of a filter stands for; raises any other failure."""
        if failure.kind is FailureKind.BLOCKED:
            context = self._body.context
            return Reply(
                str(failure),
                stop=StopReason.CONTENT_FILTER,
                latency_ms=context.latency_ms,
                attempts=context.attempts,
            )
        if failure.kind is FailureKind.AUTH:
            raise Failure(failure.kind, f"{failure}{self._at.endpoint.key_advice}")
        raise failure


class _NoCookies(aiohttp.DummyCookieJar):
    """Ignores cookies without parsing them: aiohttp logs what it cannot parse."""

    def update_cookies_from_headers(self, headers: Sequence[str], response_url: URL) -> None:
        pass


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
