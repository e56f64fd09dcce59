"""How a run is executed: everything that may change when a run is resumed."""

from pathlib import Path
from typing import Final

import msgspec

from propensitybench.clients.options import Transport
from propensitybench.engine.prices import Budget, Price, check_number

# Tests of timeouts wait for fractions of a second.
MIN_TIMEOUT_S: Final = 0.001


class ExecutionOptions(msgspec.Struct, frozen=True):
    """How tasks are executed. None of it affects what is measured.

    Attributes:
        transport: concurrency, rate limits, retries and timeouts.
        budget: when to stop.
        price: the price of the model's tokens; None looks it up in the price table.
        preflight: whether to check the endpoint before the first task.
        trust_endpoint: whether any endpoint that the run file names may be used; see `runs.trust`.
        scratch: a local folder in which the run file is played; None plays it where it is.

    Raises:
        BadInput: a number is not finite or too small.
    """

    transport: Transport = Transport()
    budget: Budget = Budget()
    price: Price | None = None
    preflight: bool = False
    trust_endpoint: bool = False
    scratch: Path | None = None

    def __post_init__(self) -> None:
        """Checks the numbers of the transport; those of the budget and the price check themselves."""
        transport = self.transport
        for name in ("timeout", "connect_timeout"):
            check_number(name, getattr(transport, name), least=MIN_TIMEOUT_S)
        for name, least in (("concurrency", 1), ("max_retries", 0)):
            check_number(name, getattr(transport, name), least=least, whole=True)
        for name in ("rpm", "tpm"):
            check_number(name, getattr(transport, name), least=1, optional=True, whole=True)
