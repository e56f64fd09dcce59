"""How a run is executed: everything that may change when a run is resumed."""

from importlib.util import find_spec
from typing import Final, Literal

import msgspec

from propensitybench.clients.options import RequestLimits
from propensitybench.engine.endpoints import Endpoints
from propensitybench.engine.prices import Budget, Price, check_number
from propensitybench.errors import BadInput
from propensitybench.store import ExecutionSetting

# Tests of timeouts wait for fractions of a second.
MIN_TIMEOUT_S: Final = 0.001
# The part of one of a million shards; users give whole numbers.
LEAST_RATE: Final = 1e-6


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

    Raises:
        BadInput: a number is not finite or too small, or Ray is needed and not installed.
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
        """Checks the numbers of the transport; those of the budget and the price check themselves."""
        transport = self.transport
        for name in ("timeout", "connect_timeout"):
            check_number(name, getattr(transport, name), least=MIN_TIMEOUT_S)
        for name, least in (("concurrency", 1), ("max_retries", 0)):
            check_number(name, getattr(transport, name), least=least, whole=True)
        for name in ("rpm", "tpm"):
            check_number(name, getattr(transport, name), least=LEAST_RATE, optional=True)
        check_number("workers", self.workers, least=1, optional=True, whole=True)
        if self.engine != "ray":
            for name in ("ray_address", "workers"):
                if getattr(self, name) is not None:
                    raise BadInput(f"{name}: is a setting of the Ray engine; add engine ray, or leave it out")
        elif find_spec("ray") is None:
            raise BadInput("engine ray: Ray is not installed; type: pip install 'propensitybench[ray]'")

    @property
    def kept(self) -> dict[str, ExecutionSetting]:
        """What a run file keeps for the next session, by the names of settings of a run; without defaults.

        Endpoints, folders and clusters are not kept: a run file from somebody else must not choose them.
        """
        usual = ExecutionOptions().numbers()
        return {
            name: value
            for name, value in self.numbers().items()
            if value is not None and value != usual[name]
        }

    def numbers(self) -> dict[str, ExecutionSetting | None]:
        """Everything that a run file can keep, by the names of settings of a run."""
        transport, budget, price = self.transport, self.budget, self.price
        usd, tokens = budget.usd, budget.tokens
        return {
            "concurrency": transport.concurrency,
            "timeout": transport.timeout,
            "max_retries": transport.max_retries,
            "rpm": transport.rpm,
            "tpm": transport.tpm,
            # Of a budget that is shared with other runs, what they leave for this one.
            "budget_usd": None if usd is None else max(0.0, usd - budget.usd_elsewhere),
            "max_tokens_total": None if tokens is None else max(1, tokens - budget.tokens_elsewhere),
            "price": None if price is None else [n for n in msgspec.structs.astuple(price) if n is not None],
            "preflight": self.preflight,
        }
