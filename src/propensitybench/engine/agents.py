"""Creates the client for a model's address."""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.compatible import CompatibleKind, dialects
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.kind import ClientKind
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import BadInput, UnknownName
from propensitybench.simulated import PREFIX, profile_names
from propensitybench.simulated.kind import SimulatedKind

KINDS: Final[Sequence[ClientKind]] = (SimulatedKind(), CompatibleKind())
"""The kinds of client. The first that serves a model is asked for it."""
_OTHERS: Final = (
    "a server of your own needs its address, --base-url URL (in an experiment's design: "
    'models = [{ name = "...", options = { base_url = "URL" } }]); for other providers '
    'see "Other providers" in docs/models.md, for an agent of your own docs/agents.md'
)


def kind_of(model: str, base_url: str | None = None) -> ClientKind | None:
    """The kind of client that serves a model; None if there is none."""
    return next((kind for kind in KINDS if kind.serves(model, base_url)), None)


def client_for(
    model: str,
    options: ModelOptions = ModelOptions(),
    transport: RequestLimits = RequestLimits(),
    environment: Mapping[str, str] = os.environ,
    base_urls: Sequence[str] = (),
) -> Client:
    """The client of a model address.

    Args:
        model: ``simulated/NAME``, ``provider/name``, or with a base URL the endpoint's own name.
        options: the sampling options.
        transport: how requests are sent.
        environment: where keys are looked up.
        base_urls: where several servers have the model, instead of the base URL of the options.

    Raises:
        BadInput: no such provider or simulated profile, a missing key, or options that cannot be used.
    """
    kind = _serving(model, base_urls[0] if base_urls else options.base_url)
    return kind.client(model, options, transport, environment, base_urls)


def check_address(model: str, options: ModelOptions = ModelOptions()) -> None:
    """Checks a model's address and options as `client_for` does, but for keys; sends nothing."""
    _serving(model, options.base_url).check(model, options)


def _serving(model: str, base_url: str | None) -> ClientKind:
    """The kind of client that serves a model; raises `BadInput` if there is none."""
    kind = kind_of(model, base_url)
    name, _, rest = model.partition("/")
    if base_url is None and (not name or not rest.strip()):
        if near := get_close_matches(model, profile_names(), n=1, cutoff=0.7):
            raise BadInput(f"--model {model}: did you mean {PREFIX}{near[0]}?")
        raise BadInput(
            f"--model {model}: give provider/name, for example openai/o4-mini, or --base-url with "
            "the address of an OpenAI-compatible endpoint"
        )
    if kind is None:
        known = [provider for one in reversed(KINDS) for provider in one.providers]
        raise UnknownName("provider", name, known, f"--model {model}", _OTHERS)
    return kind


def dialect_of(model: str, base_url: str | None = None) -> ChatDialect | None:
    """The dialect of a model; None if its client has only one form of requests."""
    kind = kind_of(model, base_url)
    return DEFAULT_DIALECT if kind is None else kind.dialect_of(model, base_url)


def variables_of(
    model: str, base_url: str | None, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment variables that a client of a model needs on another machine: keys and addresses.

    Proxies are left out: each machine has its own.
    """
    kind = kind_of(model, base_url)
    wanted = kind.variables(model, base_url) if kind else ()
    return {variable: environment[variable] for variable in wanted if variable in environment}


def use_recorded_dialect(client: Client, recorded: Mapping[str, Any]) -> None:
    """Makes a client use the dialect in a run's manifest.

    Args:
        client: that resumes the run.
        recorded: the manifest's dialect; empty leaves the client unchanged.

    Raises:
        BadInput: the dialect has unknown fields or a pattern of its own.
    """
    if recorded and client.dialect is not None:
        client.dialect = recorded_dialect(recorded)


def recorded_dialect(recorded: Mapping[str, Any]) -> ChatDialect:
    """The dialect in a run's manifest; raises as `use_recorded_dialect` does."""
    try:
        dialect = msgspec.convert(dict(recorded), ChatDialect)
    except msgspec.ValidationError as error:
        raise BadInput(f"the run file's dialect is of another version of this program ({error})") from error
    if unknown := _unknown_in(dialect):
        raise BadInput(f"the run file's dialect is not one of this program's ({unknown})")
    return dialect


def _unknown_in(dialect: ChatDialect) -> str:
    """The fields of a dialect whose values no known dialect has; empty if there are none.

    A run file from somebody else must not add fields to requests or supply a regular expression.
    """
    known = dialects().values()
    echoed = {name for one in known for name in (*one.echo, *one.echo_in_calls, *one.always)}
    extra = [(name, value) for one in known for name, value in one.extra.items()]
    checks = {
        "echo": echoed.issuperset((*dialect.echo, *dialect.echo_in_calls, *dialect.always)),
        "extra": all(field in extra for field in dialect.extra.items()),
        "call_id": dialect.call_id in {one.call_id for one in known},
        "description_limit": dialect.description_limit in {one.description_limit for one in known},
    }
    return ", ".join(name for name, sound in checks.items() if not sound)
