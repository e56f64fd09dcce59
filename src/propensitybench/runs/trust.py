"""What a run file may decide when it is resumed.

A run file may come from somebody else. It names the model and the endpoint, so it decides where requests and
the key go. Without the user's word it may only name a known provider's own address or this machine.
"""

from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from propensitybench.clients.options import ModelOptions
from propensitybench.engine.agents import check_base_url
from propensitybench.errors import BadInput

# Inspect's providers that load the model's files onto this machine.
_LOCAL_PROVIDERS: Final = frozenset(("hf",))
OPTION: Final = "--trust-endpoint"


def destination(model: str, options: ModelOptions) -> str:
    """Where a model's requests go and what they carry, for the user to judge."""
    where = f"{model} at {options.base_url}" if options.base_url is not None else model
    carried = options.body()
    settings = ", ".join(f"{name} {_short(value)}" for name, value in carried.items())
    return f"{where}, with {settings}" if settings else where


def distrusted(model: str, options: ModelOptions) -> str:
    """Why a stored model must not be used without the user's word; empty if it may.

    Args:
        model: its address, from a run file.
        options: likewise.

    Raises:
        BadInput: the endpoint's address cannot be used at all.
    """
    if options.base_url is not None:
        check_base_url(options.base_url)
        if not is_this_machine(options.base_url):
            return f"sends requests, and the key in PROPENSITYBENCH_API_KEY, to {options.base_url}"
    elif model.partition("/")[0] in _LOCAL_PROVIDERS:
        return f"loads the model {model} onto this machine"
    return ""


def check_trusted(file: str, model: str, options: ModelOptions) -> None:
    """Raises `BadInput` for a run file that needs the user's word; arguments as of `distrusted`."""
    if why := distrusted(model, options):
        raise BadInput(f"{file}: {why}; if that is what you want, resume it with {OPTION}")


def is_this_machine(url: str) -> bool:
    """Whether an address is a loopback address or ``localhost``; other names are not looked up."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
