"""Boundaries of sequential looks, against published tables and simulated walks."""

from collections.abc import Sequence
from itertools import pairwise
from math import e, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtri

from propensitybench.errors import BadInput
from propensitybench.metrics.boundary import (
    MAX_CORRELATION,
    Boundary,
    Spending,
    Walk,
    power_spending,
)

# One side of the two-sided tests of the tables, whose level is .05. Crossing both sides is too rare to show.
LEVEL = 0.025
# Jennison and Turnbull 2000, tables 2.1 and 2.3, by number of equally spaced looks.
POCOCK = {2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413, 10: 2.555}
OBRIEN_FLEMING = {2: 1.977, 3: 2.004, 4: 2.024, 5: 2.040, 10: 2.087}


def look_levels(shares: Sequence[float], level: float, spending: Spending) -> list[float]:
    """Levels of looks with independent increments, in proportion to the shares."""
    boundary = Boundary(level, spending)
    return [boundary.next(share, 1 / sqrt(share)) for share in shares]


def crossing_probability(shares: Sequence[float], critical: Sequence[float]) -> float:
    """The probability of a Z statistic above its critical value at any look, with independent increments."""
    walk, total, before = Walk(), 0.0, 0.0
    for share, z in zip(shares, critical, strict=True):
        total += walk.crossing(z, before / share)
        walk.stay_below(z, before / share)
        before = share
    return total


def equal(looks: int) -> list[float]:
    return [look / looks for look in range(1, looks + 1)]


@pytest.mark.parametrize("looks", POCOCK)
def test_published_constants_have_their_level(looks: int) -> None:
    constant = [POCOCK[looks]] * looks
    falling = [OBRIEN_FLEMING[looks] / sqrt(share) for share in equal(looks)]
    assert crossing_probability(equal(looks), constant) == pytest.approx(LEVEL, abs=6e-5)
    assert crossing_probability(equal(looks), falling) == pytest.approx(LEVEL, abs=6e-5)


def test_published_boundary_of_a_spending_function() -> None:
    """Lan and DeMets' function of Pocock's type, five looks, two-sided .05."""
    levels = look_levels(equal(5), LEVEL, lambda share, level: level * log(1 + (e - 1) * share))
    assert -ndtri(levels) == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=6e-4)


def test_one_look_is_the_test_itself() -> None:
    assert look_levels([1.0], 0.05, power_spending(1)) == pytest.approx([0.05])


def test_two_looks_by_hand() -> None:
    """P(Z1 < c1, Z2 > c2) = .025 for a bivariate normal with correlation sqrt(1/2)."""
    first, second = -ndtri(look_levels([0.5, 1.0], 0.05, power_spending(1)))
    assert first == pytest.approx(-ndtri(0.025))
    draws = np.random.default_rng(1).normal(size=(2, 2_000_000))
    stays = draws[0] < first
    crosses = (draws[0] + draws[1]) / sqrt(2) > second
    assert (stays & crosses).mean() == pytest.approx(0.025, abs=4 * sqrt(0.025 / 2_000_000))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.floats(0.001, 0.2), st.floats(1, 4))
def test_what_is_spent_is_the_level_whatever_the_looks(
    steps: list[int], level: float, exponent: float
) -> None:
    counts = np.cumsum(steps)
    shares = (counts / counts[-1]).tolist()
    assume(all(one <= MAX_CORRELATION * other for one, other in pairwise(shares)))
    spending = power_spending(exponent)
    levels = look_levels(shares, level, spending)
    critical = [float(-ndtri(one)) for one in levels]
    for look in range(1, len(shares) + 1):
        spent = crossing_probability(shares[:look], critical[:look])
        assert spent == pytest.approx(spending(shares[look - 1], level), rel=1e-5)
    assert all(0 < one <= level * (1 + 1e-9) for one in levels)


def test_what_is_spent_follows_the_tasks_and_how_alike_looks_are_follows_the_errors() -> None:
    """Half of the tasks with 80 % of the information: simulated Z statistics, correlation sqrt(.8)."""
    boundary = Boundary(0.05, power_spending(1.5))
    first, second = (-ndtri(boundary.next(share, error)) for share, error in ((0.5, 1.0), (1.0, sqrt(0.8))))
    draws = np.random.default_rng(2).normal(size=(2, 2_000_000))
    last = sqrt(0.8) * draws[0] + sqrt(0.2) * draws[1]
    early, late = (draws[0] > first).mean(), ((draws[0] <= first) & (last > second)).mean()
    spent = 0.05 * 0.5**1.5
    for found, expected in ((early, spent), (late, 0.05 - spent)):
        assert found == pytest.approx(expected, abs=4 * sqrt(expected / 2_000_000))


def test_where_the_errors_say_nothing_the_shares_do() -> None:
    known, unknown = Boundary(0.05, power_spending(1)), Boundary(0.05, power_spending(1))
    for share in (0.2, 0.6, 1.0):
        assert unknown.next(share, 0.0) == pytest.approx(known.next(share, 1 / sqrt(share)))


def test_an_error_that_grows_is_taken_for_one_that_hardly_falls() -> None:
    """The error is an estimate; a later look has never less information."""
    grown, alike = Boundary(0.05, power_spending(1)), Boundary(0.05, power_spending(1))
    grown.next(0.5, 1.0)
    alike.next(0.5, 1.0)
    assert grown.next(1.0, 1.1) == pytest.approx(alike.next(1.0, sqrt(MAX_CORRELATION)))


@pytest.mark.parametrize(
    ("level", "exponent", "share"), [(1e-300, 1.5, 1.0), (0.05, 10, 12 / 5874)], ids=["level", "looks"]
)
def test_a_look_that_can_spend_next_to_nothing_is_refused(
    level: float, exponent: float, share: float
) -> None:
    with pytest.raises(BadInput, match="too little to compute with"):
        Boundary(level, power_spending(exponent)).next(share, 0.0)
