"""Which endpoints a run file or the design of an experiment may use.

Such a file may come from somebody else, and it names the model and the endpoint to which requests and the API
key are sent. Without confirmation, only a known provider's own address and loopback addresses are used.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from propensitybench.clients import Client
from propensitybench.clients.compatible import check_base_url
from propensitybench.clients.endpoint import abbreviated
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import Endpoints, ExecutionOptions, client_at
from propensitybench.errors import BadInput
from propensitybench.store import Manifest

# Asks the user about what the sentence says.
Confirm = Callable[[str], bool]
OPTION: Final = "--trust-endpoint"


def destination(model: str, options: ModelOptions, endpoints: Endpoints | None = None) -> str:
    """The model, its endpoints and its options, for a message to the user."""
    urls = (options.base_url or "",) if endpoints is None else endpoints.read()
    where = f"{model} at {abbreviated(urls)}" if urls[0] else model
    settings = ", ".join(f"{name} {_short(value)}" for name, value in options.body().items())
    return f"{where}, with {settings}" if settings else where


def distrusted(options: ModelOptions) -> str:
    """Why the model of a file needs confirmation; empty if it does not.

    Args:
        options: of the model, from the file.

    Raises:
        BadInput: the endpoint's address is invalid.
    """
    if options.base_url is None:
        return ""
    check_base_url(options.base_url)
    if is_this_machine(options.base_url):
        return ""
    return f"sends requests, and the key in PROPENSITYBENCH_API_KEY, to {options.base_url}"


def moved(file: str, options: ModelOptions, endpoints: Endpoints | None) -> str:
    """A sentence that a run goes on at other endpoints than it was made at; empty if it does not.

    Args:
        file: the run file's name.
        options: of the model, from the run file.
        endpoints: that the user has given, if any.

    Raises:
        BadInput: the run was not made at a base URL, so that its model has another name there.
    """
    if endpoints is None:
        return ""
    if options.base_url is None:
        raise BadInput(
            f"{file}: was made at a provider and not at a base URL, so its model has another name there; "
            "leave out --base-url, or set the variable NAME_BASE_URL of the provider"
        )
    urls = endpoints.read()
    if options.base_url.rstrip("/") in [url.rstrip("/") for url in urls]:
        return ""
    return f"{file}: was made at {options.base_url}, goes on at {abbreviated(urls)}"


def check_trusted(file: str, options: ModelOptions, confirm: Confirm | None = None) -> None:
    """Raises `BadInput` if `distrusted` gives a reason and the user, who is asked, does not confirm it."""
    why = distrusted(options)
    if why and (confirm is None or not confirm(f"{file}: {why}")):
        raise BadInput(f"{file}: {why}; to allow that, give {OPTION}")


def check_addressed(file: str, manifest: Manifest) -> None:
    """Raises `BadInput` for a run that code of the user's answered, which no address can reach."""
    if manifest.client:
        call = f"run({manifest.model!r}, {file!r}, client=...)"
        if manifest.gate is not None:
            call = f"gate(base, {file!r}, until_decided=True, model={manifest.model!r}, client=...)"
        raise BadInput(
            f"{file}: was played from Python by {manifest.client}; call propensitybench.{call} again with "
            "it, and with the settings of the run"
        )


def client_of_run(
    file: str, manifest: Manifest, options: ModelOptions, execution: ExecutionOptions
) -> Client:
    """The client of the model that a run file names: at the endpoints that the user has given, or at its own.

    Args:
        file: the run file's name.
        manifest: the run's.
        options: the model's, from the run file.
        execution: the user's endpoints or trust, and how requests are sent.

    Raises:
        BadInput: the endpoint needs the user's confirmation, endpoints cannot be used, or the run was
            answered by code of the user's.
    """
    check_addressed(file, manifest)
    if execution.endpoints is not None:
        moved(file, options, execution.endpoints)
    elif not execution.trust_endpoint:
        check_trusted(file, options)
    return client_at(execution.endpoints, manifest.model, options, execution.transport)


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
