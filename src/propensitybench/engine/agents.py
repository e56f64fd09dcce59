"""Creates the client for a model's address."""

import json
import os
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from propensitybench.clients import Adaptable, Client
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.proxies import Proxy, proxy_for
from propensitybench.clients.wire_policy import COMPATIBLE, WirePolicy
from propensitybench.errors import BadInput, UnknownName
from propensitybench.simulated import PREFIX, SimulatedClient

ANY_KEY: Final = "PROPENSITYBENCH_API_KEY"


class Provider(NamedTuple):
    """A provider with an OpenAI-compatible endpoint.

    Attributes:
        base_url: without ``/chat/completions``.
        key: the environment variable with its key.
        needs_key: whether a key is required.
        wire: name of its policy.
    """

    base_url: str
    key: str
    needs_key: bool
    wire: str


@cache
def providers() -> Mapping[str, Provider]:
    """The providers with an OpenAI-compatible endpoint, by name."""
    return {name: Provider(**entry) for name, entry in _data()["providers"].items()}


@cache
def through_inspect() -> tuple[str, ...]:
    """The providers that are used through Inspect AI."""
    return tuple(_data()["inspect"])


@cache
def policies() -> Mapping[str, WirePolicy]:
    """The wire policies by name."""
    found = _data()["policies"]
    return {name: msgspec.convert({"name": name, **fields}, WirePolicy) for name, fields in found.items()}


def wire_policy(model: str, base_url: str | None = None) -> WirePolicy | None:
    """The wire policy of a model; None if it has no OpenAI-compatible endpoint.

    A base URL at a known provider's host gets that provider's policy.

    Args:
        model: its address.
        base_url: of its endpoint, if given.
    """
    provider = model.partition("/")[0]
    if model.startswith(PREFIX) or (base_url is None and provider in through_inspect()):
        return None
    if base_url is None:
        return policies()[providers()[provider].wire] if provider in providers() else COMPATIBLE
    host = urlsplit(base_url).hostname
    wires = [known.wire for known in providers().values() if known.needs_key and _host(known) == host]
    return policies()[wires[0] if wires else COMPATIBLE.name]


def _host(provider: Provider) -> str | None:
    return urlsplit(provider.base_url).hostname


def adopt(client: Client, recorded: Mapping[str, Any]) -> None:
    """Makes a client use the wire policy in a run's manifest.

    Args:
        client: that resumes the run.
        recorded: the manifest's policy; empty leaves the client unchanged.

    Raises:
        BadInput: the policy has unknown fields or a pattern of its own.
    """
    if not recorded or not isinstance(client, Adaptable):
        return
    try:
        policy = msgspec.convert(dict(recorded), WirePolicy)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"the run file's wire policy is of another version of this program ({error})"
        ) from error
    if unknown := _unknown_in(policy):
        raise BadInput(f"the run file's wire policy is not one of this program's ({unknown})")
    client.wire = policy


def _unknown_in(policy: WirePolicy) -> str:
    """The fields of a policy whose values no known policy has; empty if there are none.

    A run file from somebody else must not add fields to requests or supply a regular expression.
    """
    known = policies().values()
    echoed = {name for one in known for name in (*one.echo, *one.echo_in_calls, *one.always)}
    extra = [(name, value) for one in known for name, value in one.extra.items()]
    checks = {
        "echo": echoed.issuperset((*policy.echo, *policy.echo_in_calls, *policy.always)),
        "extra": all(field in extra for field in policy.extra.items()),
        "call_id": policy.call_id in {one.call_id for one in known},
        "description_limit": policy.description_limit in {one.description_limit for one in known},
    }
    return ", ".join(name for name, sound in checks.items() if not sound)


def _data() -> dict[str, Any]:
    raw = resources.files(__package__).joinpath("data", "providers.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(raw)
    return loaded


def client_for(
    model: str,
    options: ModelOptions = ModelOptions(),
    transport: Transport = Transport(),
    environment: Mapping[str, str] = os.environ,
) -> Client:
    """The client of a model address.

    Args:
        model: ``simulated/NAME``, ``provider/name``, or with a base URL the endpoint's own name.
        options: the sampling options.
        transport: how requests are sent.
        environment: where keys are looked up.

    Raises:
        BadInput: no such provider or simulated profile, a missing key, or options that cannot be used.
    """
    if model.startswith(PREFIX):
        if options != ModelOptions():
            raise BadInput(f"--model {model}: a simulated model takes no base URL and no sampling options")
        return SimulatedClient(model.removeprefix(PREFIX))
    if options.base_url is None and model.partition("/")[0] in through_inspect():
        return _inspect_client(model, options, transport)
    endpoint = endpoint_at(model, options.base_url, environment)
    # Importing aiohttp takes as long as scoring a run, and most commands send no requests.
    from propensitybench.clients.openai_chat import OpenAIChatClient

    return OpenAIChatClient(endpoint, options, transport, wire_policy(model, options.base_url) or COMPATIBLE)


def _inspect_client(model: str, options: ModelOptions, transport: Transport) -> Client:
    try:
        from propensitybench.clients.inspect_models import InspectClient
    except ModuleNotFoundError as error:
        raise BadInput(
            f"--model {model}: is reached through Inspect AI, which is not installed ({error.name}); "
            "type: pip install 'propensitybench[inspect]'"
        ) from error
    return InspectClient(model, options, transport)


def endpoint_at(model: str, base_url: str | None, environment: Mapping[str, str]) -> Endpoint:
    """Where a model is reached, with the keys of the environment; raises `BadInput` as `client_for` does."""
    if base_url is not None:
        check_base_url(base_url)
        # Never a provider's key: a run file from somebody else may name any address.
        keys = _keys(environment, ANY_KEY)
        return Endpoint(model, model, base_url, keys, ANY_KEY, _proxy(base_url, keys, environment))
    name, _, rest = model.partition("/")
    if not rest.strip() or not name:
        raise BadInput(
            f"--model {model}: give provider/name, for example openai/o4-mini, or --base-url with "
            "the address of an OpenAI-compatible endpoint"
        )
    known = providers()
    if name not in known:
        raise UnknownName(
            "provider", name, [*known, *through_inspect(), PREFIX.rstrip("/")], f"--model {model}"
        )
    provider = known[name]
    url = environment.get(f"{name.upper().replace('-', '_')}_BASE_URL") or provider.base_url
    check_base_url(url)
    keys = _keys(environment, provider.key)
    if provider.needs_key and not keys:
        raise BadInput(f"--model {model}: needs a key; type: export {provider.key}=...")
    return Endpoint(model, rest, url, keys, provider.key, _proxy(url, keys, environment))


def _proxy(base_url: str, keys: tuple[str, ...], environment: Mapping[str, str]) -> Proxy | None:
    proxy = proxy_for(base_url, environment)
    if proxy is not None and keys and urlsplit(base_url).scheme == "http":
        host = urlsplit(base_url).hostname
        warnings.warn(
            f"the proxy {proxy.url} ({proxy.variable}) can read the key and the conversation, since "
            f"{base_url} is not encrypted; use an https address, or add {host} to NO_PROXY",
            stacklevel=2,
        )
    return proxy


def variables_of(
    model: str, base_url: str | None, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment variables that a client of a model needs on another machine: keys and addresses.

    Proxies are left out: each machine has its own. For a provider that is reached through Inspect, these are
    the variables that begin with its name.
    """
    if base_url is not None:
        wanted = (ANY_KEY,)
    else:
        name = model.partition("/")[0]
        prefix = f"{name.upper().replace('-', '_')}_"
        key = (providers()[name].key,) if name in providers() else ()
        wanted = (*key, *(variable for variable in environment if variable.startswith(prefix)))
    return {variable: environment[variable] for variable in wanted if variable in environment}


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
