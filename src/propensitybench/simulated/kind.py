"""Simulated agents as a kind of client."""

from collections.abc import Mapping, Sequence

from propensitybench.clients import Client
from propensitybench.clients.kind import ClientKind
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.errors import BadInput
from propensitybench.simulated.agent import PREFIX, SimulatedClient


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
        if options != ModelOptions() or base_urls:
            raise BadInput(f"--model {model}: a simulated model takes no base URL and no sampling options")
        return SimulatedClient(model.removeprefix(PREFIX))

    def is_free(self, model: str) -> bool:  # noqa: ARG002
        """They are."""
        return True
