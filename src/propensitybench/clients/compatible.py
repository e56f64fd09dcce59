"""Models at OpenAI-compatible endpoints: which provider is where, and what is known of it."""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from propensitybench.clients.client import Client
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.kind import ClientKind
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.clients.proxies import Proxy, proxy_for
from propensitybench.errors import BadInput

logger = logging.getLogger(__name__)
ANY_KEY: Final = "PROPENSITYBENCH_API_KEY"


class Provider(NamedTuple):
    """A provider with an OpenAI-compatible endpoint.

    Attributes:
        base_url: without ``/chat/completions``.
        key: the environment variable with its key.
        needs_key: whether a key is required; a server on this machine needs none.
        dialect: name of its dialect.
    """

    base_url: str
    key: str
    needs_key: bool
    dialect: str


@cache
def providers() -> Mapping[str, Provider]:
    """The providers by name."""
    return {name: Provider(**entry) for name, entry in _data()["providers"].items()}


@cache
def dialects() -> Mapping[str, ChatDialect]:
    """The dialects by name."""
    found = _data()["dialects"]
    return {name: msgspec.convert({"name": name, **fields}, ChatDialect) for name, fields in found.items()}


def _data() -> dict[str, Any]:
    raw = resources.files(__package__).joinpath("data", "providers.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(raw)
    return loaded


class CompatibleKind(ClientKind):
    """Models of the known providers, and at any base URL."""

    @property
    def providers(self) -> Sequence[str]:  # type: ignore[override]
        """The known providers."""
        return tuple(providers())

    def serves(self, model: str, base_url: str | None) -> bool:
        """Every model at a base URL, and those of the known providers."""
        return base_url is not None or super().serves(model, base_url)

    def client(
        self,
        model: str,
        options: ModelOptions,
        transport: RequestLimits,
        environment: Mapping[str, str],
        base_urls: Sequence[str],
    ) -> Client:
        """A client that sends requests to the endpoint, or to each of the base URLs in turn."""
        urls = base_urls or (options.base_url,)
        first, *others = [endpoint_at(model, url, environment) for url in urls]
        # Importing aiohttp takes as long as scoring a run, and most commands send no requests.
        from propensitybench.clients.openai_chat import OpenAIChatClient

        return OpenAIChatClient(first, options, transport, self.dialect_of(model, urls[0]), others)

    def check(self, model: str, options: ModelOptions) -> None:  # noqa: ARG002
        """Checks the base URL."""
        if options.base_url is not None:
            check_base_url(options.base_url)

    def dialect_of(self, model: str, base_url: str | None) -> ChatDialect:
        """The provider's dialect, also at a base URL at a known provider's host."""
        known = providers()
        if base_url is None:
            name = model.partition("/")[0]
            return dialects()[known[name].dialect] if name in known else DEFAULT_DIALECT
        host = urlsplit(base_url).hostname
        names = [one.dialect for one in known.values() if one.needs_key and _host(one) == host]
        return dialects()[names[0] if names else DEFAULT_DIALECT.name]

    def is_free(self, model: str) -> bool:
        """Whether the provider is a server on this machine."""
        provider = providers().get(model.partition("/")[0])
        return provider is not None and not provider.needs_key

    def variables(self, model: str, base_url: str | None) -> Sequence[str]:
        """The variables of the key and of the provider's address."""
        if base_url is not None:
            return (ANY_KEY,)
        name = model.partition("/")[0]
        return (providers()[name].key, _url_variable(name))


def _host(provider: Provider) -> str | None:
    return urlsplit(provider.base_url).hostname


def _url_variable(name: str) -> str:
    return f"{name.upper().replace('-', '_')}_BASE_URL"


def endpoint_at(model: str, base_url: str | None, environment: Mapping[str, str]) -> Endpoint:
    """Where a model is reached, with the keys of the environment.

    Raises:
        BadInput: a key is missing or malformed, or an address cannot be used.
    """
    if base_url is not None:
        check_base_url(base_url)
        # Never a provider's key: a run file from somebody else may name any address.
        keys = _keys(environment, ANY_KEY)
        return Endpoint(model, model, base_url, keys, ANY_KEY, _proxy(base_url, keys))
    name, _, rest = model.partition("/")
    provider = providers()[name]
    url = environment.get(_url_variable(name)) or provider.base_url
    check_base_url(url)
    keys = _keys(environment, provider.key)
    if provider.needs_key and not keys:
        raise BadInput(f"--model {model}: needs a key; type: export {provider.key}=...")
    return Endpoint(model, rest, url, keys, provider.key, _proxy(url, keys))


def _proxy(base_url: str, keys: tuple[str, ...]) -> Proxy | None:
    proxy = proxy_for(base_url)
    parts = urlsplit(base_url)
    if proxy is not None and keys and parts.scheme == "http":
        logger.warning(
            "the proxy %s (%s) can read the key and the conversation, since %s is not encrypted; use an "
            "https address, or add %s to NO_PROXY",
            proxy.url,
            proxy.variable,
            base_url,
            parts.hostname,
        )
    return proxy


def check_base_url(url: str, where: str = "--base-url") -> None:
    """Raises `BadInput` unless the URL is an HTTP address without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # URL parsers disagree about these characters, and so about the host.
        sound = sound and url.isascii() and url.isprintable() and not set(url) & set(" \\")
    except ValueError:  # an unclosed bracket, a port that is not a number
        sound = False
    if not sound:
        shown = "" if "@" in url else f" {url}"  # it may hold a password
        raise BadInput(f"{where}{shown}: must be like http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            f"{where}: must hold no user, password, query or fragment, since it is kept in the run file; "
            f"put a key into {ANY_KEY}"
        )


def _keys(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    """The keys in a variable, separated by commas."""
    keys = tuple(key.strip() for key in environment.get(variable, "").split(",") if key.strip())
    if not all(key.isprintable() for key in keys):
        raise BadInput(f"{variable}: a key has a line break or another control character; export it again")
    return keys
