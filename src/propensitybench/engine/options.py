"""How a run is executed: everything that may change when a run is resumed."""

from importlib.util import find_spec
from typing import Literal

import msgspec

from propensitybench.clients.options import RequestLimits
from propensitybench.engine.endpoints import Endpoints
from propensitybench.engine.prices import Budget, Price
from propensitybench.errors import BadInput


class ExecutionOptions(msgspec.Struct, frozen=True):
    """How tasks are executed. None of it affects what is measured.

    Attributes:
        transport: concurrency, rate limits, retries and timeouts.
        budget: when to stop.
        price: the price of the model's tokens; None looks it up in the price table.
        preflight: whether to check the endpoint before the first task.
        endpoints: where requests go; None goes to the endpoint that the run file names.
        trust_endpoint: whether any endpoint that the run file names may be used; see `runs.trust`.
        engine: where tasks are played: in this process, or by the workers of a Ray cluster.
        ray_address: of the cluster; None is what ``RAY_ADDRESS`` says, or a cluster on this machine.
        workers: None is one for each CPU of this machine, or for each machine of a given cluster.
    """

    transport: RequestLimits = RequestLimits()
    budget: Budget = Budget()
    price: Price | None = None
    preflight: bool = True
    endpoints: Endpoints | None = None
    trust_endpoint: bool = False
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        """Raises `BadInput` if Ray is needed and not installed, or has settings and is not asked for."""
        if self.engine != "ray":
            for name in ("ray_address", "workers"):
                if getattr(self, name) is not None:
                    raise BadInput(f"{name}: is a setting of the Ray engine; add engine ray, or leave it out")
        elif find_spec("ray") is None:
            raise BadInput("engine ray: Ray is not installed; type: pip install 'propensitybench[ray]'")
