"""From a model's address to whatever answers."""

from propensitybench.clients import Client
from propensitybench.errors import BadInput
from propensitybench.simulated import PREFIX, SimulatedClient, profile_names


def client_for(model: str) -> Client:
    """The client of a model address.

    Raises:
        UnknownName: there is no simulated profile of that name.
        BadInput: this version knows no other provider.
    """
    if model.startswith(PREFIX):
        return SimulatedClient(model.removeprefix(PREFIX))
    raise BadInput(
        f"--model {model!r}: this version plays simulated models; give {PREFIX}NAME with NAME one of "
        + ", ".join(profile_names())
    )
