"""Which endpoints a run file may use when it is resumed.

A run file may come from somebody else, and it names the model and the endpoint to which requests and the API
key are sent. Without confirmation, only a known provider's own address and loopback addresses are used.
"""

from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from propensitybench.clients.options import ModelOptions
from propensitybench.engine.agents import check_base_url
from propensitybench.errors import BadInput

# Inspect providers that download a model and load it locally.
_LOCAL_PROVIDERS: Final = frozenset(("hf",))
OPTION: Final = "--trust-endpoint"


def destination(model: str, options: ModelOptions) -> str:
    """The model, its endpoint and its options, for a message to the user."""
    where = f"{model} at {options.base_url}" if options.base_url is not None else model
    settings = ", ".join(f"{name} {_short(value)}" for name, value in options.body().items())
    return f"{where}, with {settings}" if settings else where


def distrusted(model: str, options: ModelOptions) -> str:
    """Why a run file's model needs confirmation; empty if it does not.

    Args:
        model: the model's address, from the run file.
        options: its options, from the run file.

    Raises:
        BadInput: the endpoint's address is invalid.
    """
    if options.base_url is not None:
        check_base_url(options.base_url)
        if not is_this_machine(options.base_url):
            return f"sends requests, and the key in PROPENSITYBENCH_API_KEY, to {options.base_url}"
    elif model.partition("/")[0] in _LOCAL_PROVIDERS:
        return f"downloads and loads the model {model} on this machine"
    return ""


def check_trusted(file: str, model: str, options: ModelOptions) -> None:
    """Raises `BadInput` if `distrusted` gives a reason."""
    if why := distrusted(model, options):
        raise BadInput(f"{file}: {why}; to allow that, give {OPTION}")


def is_this_machine(url: str) -> bool:
    """Whether a URL's host is ``localhost`` or a loopback address; other names are not resolved."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
