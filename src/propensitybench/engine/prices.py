"""Cost of a run: a dated price table, and a budget."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from propensitybench.chat import Usage
from propensitybench.engine.agents import kind_of
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
        kind = kind_of(model)
        if kind is not None and kind.is_free(model):
            return Price(0.0, 0.0)
        return self.prices.get(model)


@cache
def price_table() -> PriceTable:
    """The price table of the package."""
    raw = resources.files(__package__).joinpath("data", "prices.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(raw)
    return msgspec.convert({"date": loaded["date"], "prices": loaded["prices"]}, PriceTable)


class Budget(msgspec.Struct, frozen=True):
    """Spending limits of a run, in US dollars and in tokens of prompts and replies; None is unlimited."""

    usd: float | None = None
    tokens: int | None = None

    def check_price(self, model: str, price: Price | None) -> None:
        """Raises `BadInput` if a limit in US dollars needs a price that is unknown."""
        if self.usd is not None and price is None:
            raise BadInput(f"a budget in US dollars needs the price of {model}: give --price INPUT,OUTPUT")

    def exhausted(self, tokens: int, usd: float | None) -> str:
        """A sentence about the limit that has been reached; empty if there is none."""
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens} tokens is used up ({tokens} spent)"
        if self.usd is not None and usd is not None and usd >= self.usd:
            return f"the budget of ${self.usd:g} is used up (${usd:.2f} spent)"
        return ""

    def left(self, tokens: int, usd: float | None) -> str:
        """What is left of each limit, in words; empty without one."""
        parts = []
        if self.usd is not None and usd is not None:
            parts.append(f"${max(0.0, self.usd - usd):.2f} of ${self.usd:g}")
        if self.tokens is not None:
            parts.append(f"{max(0, self.tokens - tokens):,} of {self.tokens:,} tokens")
        return f", and {' and '.join(parts)} of the budget are left" if parts else ""


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
        return self._budget.exhausted(self.tokens, self.usd)

    def left(self) -> str:
        """What is left of the budget, in words; empty without one."""
        return self._budget.left(self.tokens, self.usd)


class Costs:
    """What several models have cost together, over all sessions.

    Args:
        usages: tokens of each model's replies so far.
        prices: by model; None if unknown.
        budget: of all models together.

    Raises:
        BadInput: there is a budget in US dollars, and a price is unknown.
    """

    def __init__(
        self, usages: Mapping[str, Usage], prices: Mapping[str, Price | None], budget: Budget
    ) -> None:
        for model, price in prices.items():
            budget.check_price(model, price)
        self._budget = budget
        self._by_model = {model: Spending(usages[model], price, Budget()) for model, price in prices.items()}

    def add(self, model: str, usage: Usage) -> None:
        """Adds the usage of a model's reply."""
        self._by_model[model].add(usage)

    @property
    def tokens(self) -> int:
        """Tokens of all models."""
        return sum(spent.tokens for spent in self._by_model.values())

    @property
    def usd(self) -> float | None:
        """Cost of all models; None if a price is unknown."""
        costs = [spent.usd for spent in self._by_model.values()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def exhausted(self) -> str:
        """A sentence about the limit that has been reached; empty if there is none."""
        return self._budget.exhausted(self.tokens, self.usd)
