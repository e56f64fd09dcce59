"""Cost of a run: a dated price table, and a budget."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from math import inf
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

    def __post_init__(self) -> None:
        """Raises `BadInput` for a price that is not a number of 0 or more."""
        for name in self.__struct_fields__:
            check_number(f"price: {name}", getattr(self, name), least=0, optional=name == "cached")

    def of(self, usage: Usage) -> float:
        """Cost of a usage in US dollars."""
        cached_rate = self.input if self.cached is None else self.cached
        fresh = max(0, usage.input - usage.cached)
        return (fresh * self.input + usage.cached * cached_rate + usage.output * self.output) / MILLION


def check_number(
    name: str, number: Any, *, least: float, optional: bool = False, whole: bool = False
) -> None:
    """Checks a setting that is a number.

    Args:
        name: its name, for the message.
        number: its value.
        least: the smallest that can be used.
        optional: whether None can be used too.
        whole: whether it must be an integer.

    Raises:
        BadInput: it is not a number (NaN is none), infinite, below ``least``, or no integer.
    """
    if number is None and optional:
        return
    kinds = int if whole else int | float
    if isinstance(number, bool) or not isinstance(number, kinds) or not least <= number < inf:
        what = "an integer" if whole else "a number"
        raise BadInput(f"{name}: must be {what} of {least:g} or more, found {number!r}")


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
    """Spending limits of a run; None is unlimited.

    Attributes:
        usd: US dollars.
        tokens: tokens of prompts and replies.
        usd_elsewhere: what other runs under the same limit have spent.
        tokens_elsewhere: likewise.

    Raises:
        BadInput: a limit is negative, infinite or not a number.
    """

    usd: float | None = None
    tokens: int | None = None
    usd_elsewhere: float = 0.0
    tokens_elsewhere: int = 0

    def __post_init__(self) -> None:
        """Checks the limits."""
        check_number("budget: usd", self.usd, least=0, optional=True)
        check_number("budget: tokens", self.tokens, least=0, optional=True, whole=True)


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
        return _exhausted(self._budget, self.tokens, self.usd)


class Costs:
    """What several models have cost together, over all sessions.

    Args:
        usages: tokens of each model's replies so far.
        prices: by model; None if unknown.
        budget: of all models together.
    """

    def __init__(
        self, usages: Mapping[str, Usage], prices: Mapping[str, Price | None], budget: Budget
    ) -> None:
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
        return _exhausted(self._budget, self.tokens, self.usd)


def _exhausted(most: Budget, tokens: int, usd: float | None) -> str:
    tokens += most.tokens_elsewhere
    if usd is not None:
        usd += most.usd_elsewhere
    if most.tokens is not None and tokens >= most.tokens:
        return f"the budget of {most.tokens} tokens is used up ({tokens} spent)"
    if most.usd is not None and usd is not None and usd >= most.usd:
        return f"the budget of ${most.usd:g} is used up (${usd:.2f} spent)"
    return ""
