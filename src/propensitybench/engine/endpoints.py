"""The endpoints at which a run goes on: one, or several replicas of its model."""

import os
from collections.abc import Mapping

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.compatible import check_base_url
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine.agents import client_for
from propensitybench.errors import BadInput


class Endpoints(msgspec.Struct, frozen=True):
    """Where the user sends a run's requests, this time.

    Attributes:
        urls: base URLs that were typed.

    Raises:
        BadInput: there is no base URL, or one cannot be used.
    """

    urls: tuple[str, ...]

    def __post_init__(self) -> None:
        """Checks what was typed."""
        if not self.urls:
            raise BadInput("--base-url: must be an address, found none")
        for url in self.urls:
            check_base_url(url)

    def read(self) -> tuple[str, ...]:
        """The base URLs, each once; a slash at the end makes no difference."""
        found: dict[str, str] = {}
        for url in self.urls:
            found.setdefault(url.rstrip("/"), url)
        return tuple(found.values())

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that were typed, with their values."""
        return tuple(word for url in self.urls for word in ("--base-url", url))


def client_at(
    endpoints: Endpoints | None,
    model: str,
    options: ModelOptions,
    transport: RequestLimits,
    environment: Mapping[str, str] = os.environ,
) -> Client:
    """The client of a model at the endpoints, or where the options say; raises as `client_for`."""
    urls = () if endpoints is None else endpoints.read()
    return client_for(model, options, transport, environment, urls)
