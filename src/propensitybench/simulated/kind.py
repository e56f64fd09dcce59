"""Simulated agents as a kind of client."""

from collections.abc import Mapping, Sequence

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.kind import ClientKind
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import BadInput
from propensitybench.simulated.agent import PREFIX, SimulatedClient
from propensitybench.simulated.profile import profile


class SimulatedKind(ClientKind):
    """Agents of known propensity, ``simulated/PROFILE``."""

    providers = (PREFIX.rstrip("/"),)

    def serves(self, model: str, base_url: str | None) -> bool:  # noqa: ARG002
        """Every ``simulated/PROFILE``, with a base URL too, which `client` refuses."""
        return model.startswith(PREFIX)

    def client(
        self,
        model: str,
        options: ModelOptions,
        transport: RequestLimits,  # noqa: ARG002
        environment: Mapping[str, str],  # noqa: ARG002
        base_urls: Sequence[str],
    ) -> Client:
        """The agent; raises `BadInput` for options of a model."""
        _check_options(model, options, has_address=bool(base_urls))
        return SimulatedClient(model.removeprefix(PREFIX))

    def check(self, model: str, options: ModelOptions) -> None:
        """Checks that there is such an agent, and that it has no options."""
        _check_options(model, options)
        profile(model.removeprefix(PREFIX))

    def is_free(self, model: str) -> bool:  # noqa: ARG002
        """They are."""
        return True


def _check_options(model: str, options: ModelOptions, *, has_address: bool = False) -> None:
    given = list(msgspec.to_builtins(options))  # without defaults
    if has_address and "base_url" not in given:
        given.insert(0, "base_url")
    if given:
        raise BadInput(
            f"--model {model}: a simulated model has no address and no sampling options; remove "
            f"{', '.join(given)}"
        )
