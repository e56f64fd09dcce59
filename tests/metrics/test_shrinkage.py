"""Shrinkage: computed by hand, always between raw value and mean, and closer to the truth."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.metrics.estimates import Errors, Estimate
from propensitybench.metrics.shrinkage import shrink

Z95 = 1.959963984540054
SHARES = st.floats(0, 1)


def cell(value: float | None, error: float | None, clusters: int = 20) -> Estimate:
    errors = Errors(None, error, None, None)
    return Estimate(value, "", "domain", clusters * 6, clusters, 1, errors, None, "")


def cells(*pairs: tuple[float | None, float | None]) -> dict[str, Estimate]:
    return {f"c{i}": cell(value, error) for i, (value, error) in enumerate(pairs)}


def test_by_hand() -> None:
    # Mean .3, variance of the cells .05 / 3, noise .01: spread .02 / 3, v / (v + spread) = .6, and with
    # four cells a third of it. So .5 is pulled by .04.
    found = shrink(cells((0.2, 0.1), (0.2, 0.1), (0.3, 0.1), (0.5, 0.1)))
    spread = 0.06 / 3 - 0.01
    pull = (1 / 3) * 0.01 / (0.01 + spread)
    assert found["c3"].raw == 0.5
    assert found["c3"].pull == pytest.approx(pull)
    assert found["c3"].shrunken == pytest.approx(0.5 - pull * 0.2)
    half = Z95 * sqrt(0.01 * (1 - 3 / 4 * pull) + 2 * pull**2 * 0.2**2)
    assert found["c3"].ci95 == pytest.approx((0.5 - pull * 0.2 - half, 0.5 - pull * 0.2 + half))


def test_a_cell_without_variance_is_shrunk_too() -> None:
    found = shrink(cells((0.0, 0.0), (0.1, 0.05), (0.15, 0.05), (0.3, 0.05), (0.2, 0.05)))
    assert 0 < found["c0"].shrunken < found["c1"].raw
    assert found["c0"].ci95.high > found["c0"].shrunken


def test_fewer_than_four_known_cells_are_left_alone() -> None:
    known = [(0.1, 0.05), (0.2, 0.05), (0.3, 0.05)]
    assert shrink(cells(*known, (None, None))) == {}
    assert len(shrink(cells(*known, (0.4, 0.05), (None, None)))) == 4


@given(st.lists(st.tuples(SHARES, st.floats(0, 0.4)), min_size=4, max_size=12))
def test_never_beyond_the_raw_value_and_the_mean(pairs: list[tuple[float, float]]) -> None:
    mean = float(np.mean([value for value, _ in pairs]))
    for found in shrink(cells(*pairs)).values():
        assert min(found.raw, mean) - 1e-9 <= found.shrunken <= max(found.raw, mean) + 1e-9
        assert 0 <= found.pull <= 1
        assert 0 <= found.ci95.low <= found.ci95.high <= 1


def test_it_is_closer_to_the_truth_and_its_interval_covers() -> None:
    rng = np.random.default_rng(3)
    raw, shrunken, covered = [], [], []
    for _ in range(1500):
        truth = rng.normal(0.4, 0.08, 8)
        errors = rng.uniform(0.04, 0.12, 8)
        seen = rng.normal(truth, errors)
        found = shrink(cells(*zip(seen.tolist(), errors.tolist(), strict=True)))
        for name, true in zip(found, truth, strict=True):
            raw.append((found[name].raw - true) ** 2)
            shrunken.append((found[name].shrunken - true) ** 2)
            covered.append(found[name].ci95.low <= true <= found[name].ci95.high)
    assert np.mean(shrunken) < 0.8 * np.mean(raw)
    assert 0.93 <= np.mean(covered) <= 0.98
