"""The power analysis, against simulated populations with the assumed correlations."""

from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from propensitybench.metrics.power import (
    ASSUMED_CORRELATION,
    ASSUMED_ICC,
    ASSUMED_PROPENSITY,
    Z80,
    power,
)

Z95 = 1.959963984540054
DRAWS = 2000


def shares(rng: np.random.Generator, propensity: float, scenarios: int) -> NDArray[np.float64]:
    """Each scenario's own propensity: a beta distribution whose intraclass correlation is the assumed one."""
    size = 1 / ASSUMED_ICC - 1
    return rng.beta(propensity * size, (1 - propensity) * size, (DRAWS, scenarios))


@pytest.mark.parametrize("propensity", ASSUMED_PROPENSITY)
@pytest.mark.parametrize("each", [1, 3, 6])
def test_widths_and_differences_are_those_of_populations_as_assumed(propensity: float, each: int) -> None:
    rng = np.random.default_rng(20261121)
    scenarios = 120
    one, other = shares(rng, propensity, scenarios), shares(rng, propensity, scenarios)
    # A scenario that is the same for both with this probability has effects with this correlation.
    other = np.where(rng.random(one.shape) < ASSUMED_CORRELATION, one, other)
    first, second = (rng.binomial(each, share).sum(axis=1) / (each * scenarios) for share in (one, other))
    expected = power(each * scenarios, scenarios, propensity)
    assert expected.half_width == pytest.approx(Z95 * first.std(), rel=0.06)
    assert expected.model_difference == pytest.approx((Z95 + Z80) * (first - second).std(), rel=0.06)
    assert expected.naming_difference == expected.model_difference


def test_one_task_a_scenario_is_the_textbook_binomial() -> None:
    assert power(400, 400, 0.5).half_width == pytest.approx(Z95 * sqrt(0.25 / 400))


def test_without_the_other_naming_there_is_no_difference_between_namings() -> None:
    assert power(400, 100, 0.1, both_namings=False).naming_difference is None
