"""The endpoints at which a run goes on: one, or several replicas of its model."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.wire_policy import COMPATIBLE
from propensitybench.engine.agents import check_base_url, client_for, endpoint_at, wire_policy
from propensitybench.errors import BadInput
from propensitybench.files import MIB, read_text


class Endpoints(msgspec.Struct, frozen=True):
    """Where the user sends a run's requests, this time.

    Attributes:
        urls: base URLs that were typed.
        file: a file of base URLs instead, which may change while the run goes on.

    Raises:
        BadInput: there is no base URL, or one cannot be used, or both were given.
    """

    urls: tuple[str, ...] = ()
    file: Path | None = None

    def __post_init__(self) -> None:
        """Checks what was typed."""
        if self.urls and self.file is not None:
            raise BadInput("--endpoints: cannot be combined with --base-url; put all addresses into the file")
        if not self.urls and self.file is None:
            raise BadInput("--base-url: must be an address, found none")
        for url in self.urls:
            check_base_url(url)

    def read(self) -> tuple[str, ...]:
        """The base URLs as of now, each once.

        Raises:
            BadInput: the file cannot be read, holds something else, or is empty.
        """
        if self.file is None:
            return _distinct(self.urls)
        name = f"--endpoints {os.fsencode(self.file).decode('utf-8', 'replace')}"
        found = []
        for number, line in enumerate(read_text(self.file, name, MIB).splitlines(), 1):
            if url := line.partition("#")[0].strip():
                check_base_url(url, f"{name}, line {number}")
                found.append(url)
        if not found:
            raise BadInput(f"{name}: holds no address; write one base URL on each line")
        return _distinct(found)

    @property
    def typed(self) -> tuple[str, ...]:
        """The options that were typed, with their values."""
        if self.file is not None:
            return ("--endpoints", os.fsencode(self.file).decode("utf-8", "replace"))
        return tuple(word for url in self.urls for word in ("--base-url", url))


def client_at(
    endpoints: Endpoints | None,
    model: str,
    options: ModelOptions,
    transport: Transport,
    environment: Mapping[str, str] = os.environ,
) -> Client:
    """The client of a model at the endpoints: a fleet if there are several, or a file of them.

    Without endpoints, `client_for`.

    Raises:
        BadInput: as `client_for`, or the file of addresses cannot be used.
    """
    if endpoints is None:
        return client_for(model, options, transport, environment)
    urls = endpoints.read()
    options = msgspec.structs.replace(options, base_url=urls[0])
    if len(urls) == 1 and endpoints.file is None:
        return client_for(model, options, transport, environment)
    # See `client_for`.
    from propensitybench.clients.fleet import FleetClient

    look = endpoints.read if endpoints.file is not None else None
    fleet = FleetClient(lambda url: endpoint_at(model, url, environment), urls, options, transport, look)
    fleet.wire = wire_policy(model, urls[0]) or COMPATIBLE
    return fleet


def _distinct(urls: Iterable[str]) -> tuple[str, ...]:
    """Without repetitions; a slash at the end makes no difference."""
    found: dict[str, str] = {}
    for url in urls:
        found.setdefault(url.rstrip("/"), url)
    return tuple(found.values())
