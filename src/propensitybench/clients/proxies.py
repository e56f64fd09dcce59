"""Proxies, from the environment variables that other programs use.

aiohttp's ``trust_env`` is not used: it also reads ``~/.netrc``, whose password would replace the API key, and
uses the proxy for requests to this machine.
"""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from propensitybench.errors import BadInput

_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy.

    Attributes:
        url: its address, without user and password.
        variable: the environment variable that names it.
        user, password: for the proxy; empty without.
    """

    url: str
    variable: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What the proxy has to be sent."""
        if not self.user:
            return {}
        return {"Proxy-Authorization": f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"}


def proxy_for(base_url: str, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for requests to an endpoint; None if they go there directly.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the address's scheme, else ``ALL_PROXY``; lower case comes
    first. There is no proxy for this machine, nor for hosts in ``NO_PROXY``.

    Raises:
        BadInput: the variable holds something other than the address of an HTTP proxy.
    """
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    variable, address = _variable(parts.scheme, environment)
    if not address or _is_loopback(host) or _is_excluded(host, parts.port, environment):
        return None
    try:
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        sound = proxy.scheme in _SCHEMES and bool(proxy.hostname) and proxy.port != 0
        sound = sound and ":" not in unquote(proxy.username or "")
    except ValueError:
        sound = False
    if not sound:  # the address is not shown: it may hold a password
        raise BadInput(
            f"{variable}: must be an HTTP proxy like http://127.0.0.1:3128 (SOCKS is not supported); "
            f"change it, or add {host} to NO_PROXY"
        )
    return Proxy(_address(proxy), variable, unquote(proxy.username or ""), unquote(proxy.password or ""))


def _variable(scheme: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The first variable that is set, and its value."""
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
        # In a CGI program, HTTP_PROXY is a header that a client sent.
        if environment.get(name) and not (name == "HTTP_PROXY" and "REQUEST_METHOD" in environment):
            return name, environment[name].strip()
    return "", ""


def _address(proxy: SplitResult) -> str:
    host = f"[{proxy.hostname}]" if ":" in (proxy.hostname or "") else proxy.hostname
    return f"{proxy.scheme}://{host}" + (f":{proxy.port}" if proxy.port else "")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_excluded(host: str, port: int | None, environment: Mapping[str, str]) -> bool:
    """Whether ``NO_PROXY`` names the host, a domain that it is in, or a network; with or without a port."""
    names = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    return any(_matches(name.strip().lower(), host, port) for name in names.split(","))


def _matches(name: str, host: str, port: int | None) -> bool:
    if name == "*":
        return True
    try:
        return ip_address(host) in ip_network(name.strip("[]"), strict=False)
    except ValueError:
        pass
    if port is not None:
        name = name.removesuffix(f":{port}")
    name = name.strip("[]").removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))
