"""The correlation with a capability index, and its wide interval with few models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from propensitybench.metrics.capability_index import IndexEntry, correlation, fisher_interval


def entries(values: dict[str, float], **families: str) -> dict[str, IndexEntry]:
    return {
        name: IndexEntry(value, "a leaderboard", "2025-11-01", families.get(name, ""))
        for name, value in values.items()
    }


@pytest.mark.parametrize(("rho", "low", "high"), [(0.1, -0.50, 0.64), (0.6, 0.04, 0.87)])
def test_twelve_models_give_a_wide_interval(rho: float, low: float, high: float) -> None:
    assert fisher_interval(rho, 12) == pytest.approx((low, high), abs=0.005)


def test_a_perfect_order_has_no_width_by_fisher() -> None:
    assert fisher_interval(1.0, 6) == (1.0, 1.0)


def test_by_hand() -> None:
    propensity = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.9, "unlisted": 0.5}
    found = correlation(propensity, entries({"a": 1, "b": 2, "c": 3, "d": 4, "not run": 9}))
    # Ranks 1 3 2 4 against 1 2 3 4: 1 - 6 * 2 / (4 * 15).
    assert found.rho == pytest.approx(0.8)
    assert found.models == ("a", "b", "c", "d")
    assert found.ci95 == fisher_interval(found.rho or 0, 4)
    assert found.ci95_bootstrap is not None
    assert found.ci95_bootstrap.low < 0.8


def test_without_each_family_in_turn() -> None:
    propensity = {"a": 0.1, "b": 0.2, "c": 0.3, "x": 0.9}
    index = entries({"a": 1, "b": 2, "c": 3, "x": 0}, a="one", b="one", c="two", x="other")
    # Without x the order is perfect; without c it is 1 2 against 2 3 1.
    assert correlation(propensity, index).without_family == (-0.5, 1.0)
    assert correlation(propensity, entries({"a": 1, "b": 2, "c": 3, "x": 0})).without_family is None


def test_too_few_models_or_no_variation() -> None:
    assert correlation({"a": 0.1, "b": 0.2}, entries({"a": 1, "b": 2})).rho is None
    assert correlation({"a": 0.1, "b": 0.1, "c": 0.1}, entries({"a": 1, "b": 2, "c": 3})).rho is None
    three = correlation({"a": 0.1, "b": 0.3, "c": 0.2}, entries({"a": 1, "b": 2, "c": 3}))
    assert three.rho == pytest.approx(0.5)
    assert (three.ci95, three.ci95_bootstrap) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=4, max_size=12))
def test_it_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    names = [f"m{i}" for i in range(len(pairs))]
    found = correlation(
        {name: y / 10 for name, (_, y) in zip(names, pairs, strict=True)},
        entries({name: float(x) for name, (x, _) in zip(names, pairs, strict=True)}),
    )
    x, y = zip(*pairs, strict=True)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert found.rho == pytest.approx(spearmanr(x, y).statistic)
    else:
        assert found.rho is None
