"""Two sets of labels on the same items: differences, their test and what is missing, by hand."""

import numpy as np
import pytest

from propensitybench.metrics.compare import FLIPS
from propensitybench.metrics.judged import MISSING
from propensitybench.metrics.relabelled import Relabelled, Shift, relabelled
from propensitybench.metrics.sample import ClusteredSample


def compare(
    first: list[int], second: list[int], each: int = 1, domains: int = 1, flips: int = FLIPS
) -> Relabelled:
    """Items in scenarios of so many, in domains of equal size one after the other."""
    rows = np.arange(len(first))
    domain = rows * domains // len(first)
    places = ClusteredSample(
        np.char.add("d", domain.astype(str)),
        np.char.add(np.char.add("d", domain.astype(str)), np.char.add("s", (rows // each).astype(str))),
    )
    return relabelled(places, (np.array(first), np.array(second)), 2, np.random.default_rng(0), flips)


def test_the_difference_by_hand() -> None:
    # Of 20 items 5 turn from 0 to 1 and 1 back.
    found = compare([0] * 10 + [1] * 10, [1] * 5 + [0] * 5 + [0] + [1] * 9)
    no, yes = found.shifts
    assert (yes.first, yes.second) == (0.5, 0.7)
    assert yes.difference == pytest.approx(0.2)
    assert no.difference == pytest.approx(-0.2)
    assert yes.bounds == pytest.approx((0.2, 0.2))
    assert found.changed == pytest.approx(0.3)
    # Of the 64 signs of the 6 items that changed, 2 x 7 leave a sum of 4 or 6 on either side.
    assert yes.p == no.p == pytest.approx(14 / 64)
    assert yes.ci95 is not None
    assert no.ci95 is not None
    assert yes.ci95.low < 0.2 < yes.ci95.high
    assert no.ci95 == pytest.approx((-yes.ci95.high, -yes.ci95.low))


def test_domains_have_equal_weight() -> None:
    places = ClusteredSample(np.array(["a"] * 2 + ["b"] * 8), np.array([f"s{row}" for row in range(10)]))
    first, second = np.zeros(10, dtype=np.int64), np.array([1, 1] + [0] * 8)
    yes = relabelled(places, (first, second), 2, np.random.default_rng(0)).shifts[1]
    assert yes.difference == 0.5


def test_items_of_a_scenario_change_sign_together() -> None:
    first, second = [0] * 24, [1] * 12 + [0] * 12
    alone, together = (compare(first, second, each=size).shifts[1] for size in (1, 4))
    assert alone.difference == together.difference == 0.5
    # Twelve independent changes, or three scenarios that all changed: 2 of 8 signs are as extreme.
    assert alone.p == pytest.approx(2 / 2**12)
    assert together.p == 2 / 8
    assert alone.ci95 is not None
    assert together.ci95 is not None
    assert together.ci95.high - together.ci95.low > alone.ci95.high - alone.ci95.low


def test_equal_labels_have_no_difference_and_a_bound_on_how_many_can_differ() -> None:
    found = compare([0, 1] * 20, [0, 1] * 20)
    for shift in found.shifts:
        assert (shift.difference, shift.p) == (0.0, 1.0)
        assert (shift.ci95, shift.method) == (None, "none: no spread among clusters")
    assert found.changed == 0.0
    assert found.changed_ci95 is not None
    assert found.changed_ci95.low == 0.0
    assert 0.05 < found.changed_ci95.high < 0.15


def test_missing_labels_are_counted_and_widen_the_bounds() -> None:
    first = [0, 0, 0, 0, 1, 1, 1, 1, MISSING, MISSING]
    second = [1, 0, 0, 0, 1, 1, 1, MISSING, 0, MISSING]
    found = compare(first, second)
    yes = found.shifts[1]
    assert (found.items, found.first_missing, found.second_missing) == (10, 2, 2)
    # Seven items have both labels; one of them turned to 1.
    assert yes.first == pytest.approx(3 / 7)
    assert yes.second == pytest.approx(4 / 7)
    assert yes.difference == pytest.approx(1 / 7)
    assert found.changed == pytest.approx(1 / 7)
    # At least: 1 to 0 where the second is missing, 1 to 0 where the first is, 1 to 0 where both are.
    assert yes.bounds == pytest.approx(((1 - 1 - 1 - 1) / 10, (1 + 0 + 0 + 1) / 10))


def test_a_domain_without_an_item_that_has_both_labels_leaves_no_difference() -> None:
    found = compare([0] * 10 + [MISSING] * 10, [1] * 20, domains=2)
    assert found.shifts[1] == Shift(None, None, None, None, "none: no value", None, None)
    assert (found.changed, found.changed_ci95) == (None, None)


def test_the_interval_and_the_test_keep_their_rates_where_nothing_is_changed_but_by_chance() -> None:
    rng = np.random.default_rng(7)
    covered, rejected = [], []
    for _ in range(300):
        # Scenarios of 4 items differ; the second reading errs at random, both ways.
        chance = rng.beta(1, 2, 40).repeat(4)
        first, second = ((rng.random(160) < chance).astype(int).tolist() for _ in range(2))
        yes = compare(first, second, each=4, domains=2, flips=400).shifts[1]
        assert yes.ci95 is not None
        assert yes.p is not None
        covered.append(yes.ci95.low <= 0 <= yes.ci95.high)
        rejected.append(yes.p <= 0.05)
    # With probability .999 the first lies in .903 to .987 if the truth is .95, the second below .097.
    assert 0.903 <= np.mean(covered) <= 0.987
    assert np.mean(rejected) <= 0.097
