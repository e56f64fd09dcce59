"""Cost of a run: a dated price table, and a budget."""

import json
import math
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from propensitybench.chat import Usage
from propensitybench.errors import BadInput

MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True):
    """US dollars per million tokens; cached input costs ``cached`` or, if that is None, ``input``."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """Cost of a usage in US dollars."""
        cached_rate = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached_rate + usage.output * self.output) / MILLION


class PriceTable(msgspec.Struct, frozen=True):
    """Prices by model address, as of a date."""

    date: str
    prices: dict[str, Price]

    def find(self, model: str) -> Price | None:
        """The price of a model; None if the table does not have it. Local and simulated models are free."""
        provider = model.partition("/")[0]
        if provider in _FREE:
            return Price(0.0, 0.0)
        return self.prices.get(model)


_FREE = ("simulated", "vllm", "sglang", "ollama", "llama-cpp")


@cache
def price_table() -> PriceTable:
    """The price table of the package."""
    raw = resources.files(__package__).joinpath("data", "prices.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(raw)
    return msgspec.convert({"date": loaded["date"], "prices": loaded["prices"]}, PriceTable)


class Budget(msgspec.Struct, frozen=True):
    """Spending limits of a run; None is unlimited.

    Raises:
        BadInput: a limit is negative or not a number.
    """

    usd: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("usd", self.usd), ("tokens", self.tokens)):
            if limit is not None and not 0 <= limit < math.inf:
                raise BadInput(f"budget: {name} must be 0 or more, found {limit}; None is unlimited")


class Spending:
    """Spending of a run so far.

    Args:
        usage: tokens of the replies in the run file.
        price: price of the model; None if unknown.
        budget: limits.
    """

    def __init__(self, usage: Usage, price: Price | None, budget: Budget) -> None:
        self._price = price
        self._budget = budget
        self.tokens = usage.input + usage.output
        self.usd = None if price is None else price.of(usage)

    def add(self, usage: Usage) -> None:
        """Adds the usage of a reply."""
        self.tokens += usage.input + usage.output
        if self.usd is not None and self._price is not None:
            self.usd += self._price.of(usage)

    def exhausted(self) -> str:
        """A sentence about the limit that has been reached; empty if there is none."""
        if self._budget.tokens is not None and self.tokens >= self._budget.tokens:
            return f"the budget of {self._budget.tokens} tokens is used up ({self.tokens} spent)"
        if self._budget.usd is not None and self.usd is not None and self.usd >= self._budget.usd:
            return f"the budget of ${self._budget.usd:g} is used up (${self.usd:.2f} spent)"
        return ""
