"""How a run is executed: everything that may change when a run is resumed."""

import msgspec

from propensitybench.clients.options import Transport
from propensitybench.engine.prices import Budget, Price


class ExecutionOptions(msgspec.Struct, frozen=True):
    """How tasks are executed. None of it affects what is measured.

    Attributes:
        transport: concurrency, rate limits, retries and timeouts.
        budget: when to stop.
        price: the price of the model's tokens; None looks it up in the price table.
        preflight: whether to check the endpoint before the first task.
        trust_endpoint: whether any endpoint that the run file names may be used; see `runs.trust`.
    """

    transport: Transport = Transport()
    budget: Budget = Budget()
    price: Price | None = None
    preflight: bool = False
    trust_endpoint: bool = False
