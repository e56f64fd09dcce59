"""Cost of a run: a dated price table, and a budget."""

import json
from functools import cache
from importlib import resources
from math import inf
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
        BadInput: a limit is negative, infinite or not a number.
    """

    usd: float | None = None
    tokens: int | None = None

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
        if self._budget.tokens is not None and self.tokens >= self._budget.tokens:
            return f"the budget of {self._budget.tokens} tokens is used up ({self.tokens} spent)"
        if self._budget.usd is not None and self.usd is not None and self.usd >= self._budget.usd:
            return f"the budget of ${self._budget.usd:g} is used up (${self.usd:.2f} spent)"
        return ""
