"""Prices and budgets."""

import pytest

from propensitybench.chat import Usage
from propensitybench.engine import Budget, Price, price_table
from propensitybench.engine.prices import Spending

PRICE = Price(2.0, 8.0, 0.5)


def test_cached_input_has_its_own_price_and_reasoning_is_output() -> None:
    usage = Usage(input=1_000_000, output=100_000, cached=400_000, reasoning=90_000)
    assert PRICE.of(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)
    assert Price(2.0, 8.0).of(usage) == pytest.approx(2 + 0.8)


def test_an_unknown_price_is_none_and_local_models_are_free() -> None:
    assert price_table().find("openai/no-such-model") is None
    assert price_table().find("simulated/never") == price_table().find("vllm/x") == Price(0, 0)
    assert Spending(Usage(5, 5), None, Budget()).usd is None


def test_a_budget_includes_earlier_spending() -> None:
    spending = Spending(Usage(input=900_000), PRICE, Budget(usd=2.0))
    assert spending.exhausted() == ""
    spending.add(Usage(input=100_000))
    assert spending.exhausted() == "the budget of $2 is used up ($2.00 spent)"


def test_tokens_count_against_the_budget_even_without_a_price() -> None:
    spending = Spending(Usage(), None, Budget(tokens=10))
    spending.add(Usage(input=7, output=3))
    assert "the budget of 10 tokens is used up (10 spent)" in spending.exhausted()


def test_the_table_has_a_date_and_no_price_of_zero() -> None:
    assert price_table().date.count("-") == 2
    assert all(price.input > 0 and price.output > 0 for price in price_table().prices.values())
