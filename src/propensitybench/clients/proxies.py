"""Proxies, from the environment variables that other programs use.

aiohttp's ``trust_env`` is not used: it also reads ``~/.netrc``, whose password would replace the API key, and
uses the proxy for requests to this machine.
"""

from base64 import b64encode
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

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


def proxy_for(base_url: str) -> Proxy | None:
    """The proxy for requests to an endpoint; None if they go there directly.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` by the address's scheme, else ``ALL_PROXY``; lower case comes first.
    There is no proxy for this machine, nor for hosts and networks in ``NO_PROXY``.

    Raises:
        BadInput: the variable holds something other than the address of an HTTP proxy.
    """
    parts, proxies = urlsplit(base_url), getproxies_environment()
    host = (parts.hostname or "").rstrip(".")
    scheme = parts.scheme if parts.scheme in proxies else "all"
    address = proxies.get(scheme, "").strip()
    if not address or _is_loopback(host) or proxy_bypass_environment(parts.netloc, proxies):
        return None
    if any(_is_in(host, name.strip()) for name in proxies.get("no", "").split(",")):
        return None
    try:
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        user, password = unquote(proxy.username or ""), unquote(proxy.password or "")
        sound = proxy.scheme in _SCHEMES and bool(proxy.hostname) and proxy.port != 0 and ":" not in user
    except ValueError:
        sound = False
    variable = f"{scheme.upper()}_PROXY"
    if not sound:  # the address is not shown: it may hold a password
        raise BadInput(
            f"{variable}: must be an HTTP proxy like http://127.0.0.1:3128 (SOCKS is not supported); "
            f"change it, or add {host} to NO_PROXY"
        )
    return Proxy(f"{proxy.scheme}://{proxy.netloc.rpartition('@')[2]}", variable, user, password)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _is_in(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
