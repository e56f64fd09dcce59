"""Where a model is reached."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from propensitybench.clients.proxies import Proxy

# Addresses in a message.
SHOWN: Final = 5


@dataclass(frozen=True)
class Endpoint:
    """A model at an endpoint.

    Attributes:
        address: the model's address for the user, e.g. ``openai/gpt-x``.
        name: the model's name at the endpoint.
        base_url: without ``/chat/completions``.
        keys: API keys, which take turns; may be empty.
        key_variable: the environment variable that holds them.
        proxy: None for a direct connection.
    """

    address: str
    name: str
    base_url: str
    keys: tuple[str, ...] = field(default=(), repr=False)
    key_variable: str = ""
    proxy: Proxy | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys, and the proxy's password, or its user if that is all it needs."""
        return (*self.keys, *((self.proxy.password or self.proxy.user,) if self.proxy else ()))

    @property
    def key_advice(self) -> str:
        """What to do when the endpoint rejects the key or requires one."""
        if not self.key_variable:
            return ""
        if self.keys:
            return f"; check the key in {self.key_variable}"
        return f"; no key was sent, type: export {self.key_variable}=..."

    @property
    def through(self) -> str:
        """The end of an error message, if there is a proxy."""
        return f", through the proxy {self.proxy.url} ({self.proxy.variable})" if self.proxy else ""


def abbreviated(urls: Sequence[str]) -> str:
    """Addresses for a message, the first few of many."""
    more = f" and {len(urls) - SHOWN} more" if len(urls) > SHOWN else ""
    return ", ".join(urls[:SHOWN]) + more


@lru_cache
def same_model(asked: str, served: str) -> bool:
    """Whether a served id names the requested model: equal, or with a date or path added."""
    if not asked or not served:
        return True
    asked, served = asked.lower(), served.lower()
    if served.endswith("/" + asked) or asked.endswith("/" + served):
        return True
    dated = re.compile(re.escape(asked.rpartition("/")[2]) + r"([-@:_](\d[\d.-]*|latest))?")
    return dated.fullmatch(served.rpartition("/")[2]) is not None
