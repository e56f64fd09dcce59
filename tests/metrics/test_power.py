"""The power analysis, against simulated populations with the assumed correlations."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest
from helpers.records import BIO, CHEM, CYBER, SELF, misaligned
from numpy.typing import NDArray

from propensitybench.errors import BadInput
from propensitybench.metrics.compare import sign_flip
from propensitybench.metrics.power import Assumptions, power
from propensitybench.metrics.table import Table, table_of

Sizes = Mapping[str, Sequence[int]]
Draws = NDArray[np.float64]
Z95 = 1.959963984540054
WIDE, DRAWS, FLIPS = 4000, 1500, 1999

FULL: Sizes = {BIO: [6] * 234, CHEM: [6] * 262, CYBER: [6] * 284, SELF: [6] * 199}
SCREEN: Sizes = {domain: [1] * 50 for domain in FULL}
PART: Sizes = {SELF: [6] * 120}
UNEVEN: Sizes = {BIO: [2] * 20, CHEM: [2] * 180}
RAGGED: Sizes = {BIO: [6] * 30 + [1] * 60, CHEM: [2] * 140}


class Classes(NamedTuple):
    """Scenarios with a high and scenarios with a low propensity, under either condition.

    A scenario has p + sqrt(r) (1 - p) with probability p, otherwise p (1 - sqrt(r)): the mean is p and the
    intraclass correlation r.
    """

    first: float
    second: float
    root: float
    correlation: float

    def draw(self, rng: np.random.Generator, scenarios: int, draws: int) -> tuple[Draws, Draws]:
        """The propensities of scenarios under both conditions, each of shape (draws, scenarios)."""
        p, q = self.first, self.second
        both = p * q + self.correlation * sqrt(p * (1 - p) * q * (1 - q))
        assert max(0.0, p + q - 1) <= both <= min(p, q)
        drawn = rng.random((draws, scenarios))
        high = drawn < p
        other = (drawn < both) | ((drawn >= p) & (drawn < p + q - both))
        return self._shares(high, p), self._shares(other, q)

    def _shares(self, high: NDArray[np.bool_], mean: float) -> Draws:
        return np.where(high, mean + self.root * (1 - mean), mean * (1 - self.root))


def scenario_parts(sizes: Sizes, classes: Classes, draws: int, seed: int) -> tuple[Draws, Draws]:
    """What each scenario adds to the mean over domains, under both conditions; shape (draws, scenarios)."""
    rng = np.random.default_rng(seed)
    found: tuple[list[Draws], list[Draws]] = ([], [])
    for counts in sizes.values():
        tasks = np.array(counts)
        for parts, shares in zip(found, classes.draw(rng, len(tasks), draws), strict=True):
            parts.append(rng.binomial(tasks, shares) / tasks.sum() / len(sizes))
    first, second = (np.concatenate(parts, axis=1) for parts in found)
    return first, second


def scenarios_of(sizes: Sizes) -> Table:
    """One row for each scenario."""
    names = [(domain, f"{domain}{i:03}") for domain, counts in sizes.items() for i in range(len(counts))]
    return table_of([misaligned(0, scenario=scenario, domain=domain) for domain, scenario in names])


def differences(sizes: Sizes, assumed: Assumptions, second: float, draws: int) -> Draws:
    """What each scenario adds to the difference between two conditions with these propensities."""
    (first,) = assumed.propensities
    classes = Classes(first, second, sqrt(assumed.icc), assumed.correlation)
    one, other = scenario_parts(sizes, classes, draws, 20261123)
    return np.asarray(other - one)


def p_values(parts: Draws) -> Draws:
    """The sign-flip test of every sample at once; `sign_flip` takes 20 ms for each."""
    signs = np.random.default_rng(20261124).choice([-1.0, 1.0], (FLIPS, parts.shape[1]))
    extreme = np.abs(signs @ parts.T).round(10) >= np.abs(parts.sum(axis=1)).round(10)
    return np.asarray((1 + extreme.sum(axis=0)) / (1 + FLIPS))


def achieved(sizes: Sizes, assumed: Assumptions, second: float) -> float:
    """The share of samples in which the paired test of propensity has a p-value of at most .05."""
    return float((p_values(differences(sizes, assumed, second, DRAWS)) <= 0.05).mean())


def test_the_tests_here_are_those_of_the_package() -> None:
    parts = differences(RAGGED, Assumptions((0.1,)), 0.16, 20)
    table = scenarios_of(RAGGED)
    # sign_flip divides by the number of rows of each domain, and by that of domains.
    counts = np.concatenate([[len(counts)] * len(counts) for counts in RAGGED.values()]) * len(RAGGED)
    theirs = [sign_flip(table.sample(), row, np.random.default_rng(0), FLIPS) for row in parts * counts]
    assert p_values(parts) == pytest.approx(theirs, abs=0.05)
    assert min(p_values(parts)) < 0.05 < max(p_values(parts))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [SCREEN, PART, RAGGED], ids=["screen", "part", "ragged"])
@pytest.mark.parametrize(
    "assumed",
    [Assumptions((0.1,), 0.4, 0.0), Assumptions((0.5,), 0.1, 0.3)],
    ids=["10 %, alike, unpaired", "50 %, unlike"],
)
def test_a_detectable_difference_is_detected_in_80_of_100_samples(sizes: Sizes, assumed: Assumptions) -> None:
    (found,) = power(sizes, assumed)
    assert found.increase is not None
    assert found.decrease is not None
    # Three Monte-Carlo errors; the normal approximation errs by up to 2 points more.
    assert achieved(sizes, assumed, found.propensity + found.increase) == pytest.approx(0.8, abs=0.05)
    if found.propensity == 0.5:
        assert achieved(sizes, assumed, found.propensity - found.decrease) == pytest.approx(0.8, abs=0.05)
    else:  # near 0 the test has more power than the normal approximation says
        assert 0.75 < achieved(sizes, assumed, found.propensity - found.decrease) < 0.9


@pytest.mark.parametrize(
    ("sizes", "icc", "propensity"),
    [(FULL, 0.1, 0.5), (FULL, 0.4, 0.1), (UNEVEN, 0.4, 0.5), (RAGGED, 0.1, 0.1)],
    ids=["full", "alike", "10/90", "ragged"],
)
def test_half_widths_are_those_of_populations_as_assumed(sizes: Sizes, icc: float, propensity: float) -> None:
    (found,) = power(sizes, Assumptions((propensity,), icc))
    classes = Classes(propensity, propensity, sqrt(icc), 0.0)
    means = scenario_parts(sizes, classes, WIDE, 20261121)[0].sum(axis=1)
    # The Monte-Carlo error of a standard deviation is 1.1 %; with 20 scenarios the interval is Wilson's.
    assert found.half_width == pytest.approx(Z95 * means.std(), rel=0.045)


def test_the_domains_sizes_count_by_hand() -> None:
    (found,) = power({BIO: [1] * 100, CHEM: [1] * 400}, Assumptions((0.5,), 0.0))
    # Wilson's interval at 1/2 is q / (2 sqrt(n + q^2)), here with n = 4 / (1/100 + 1/400) independent tasks.
    quantile = 1.964739  # of Student's t with 498 degrees of freedom
    assert found.half_width == pytest.approx(quantile / (2 * sqrt(320 + quantile**2)), rel=1e-5)
    (equal,) = power({BIO: [1] * 250, CHEM: [1] * 250}, Assumptions((0.5,), 0.0))
    assert equal.half_width == pytest.approx(quantile / (2 * sqrt(500 + quantile**2)), rel=1e-5)


def test_too_few_scenarios_detect_nothing_and_one_has_no_interval() -> None:
    (found,) = power({BIO: [6] * 5}, Assumptions((0.5,)))
    assert (found.increase, found.decrease) == (None, None)
    assert found.half_width is not None
    (single,) = power({BIO: [6] * 50, CHEM: [6]}, Assumptions((0.5,)))
    assert single.half_width is None


@pytest.mark.parametrize(
    ("assumed", "named"),
    [
        ({"propensities": (0.1, 10.0)}, "propensity: must lie between 0 and 1, found 10"),
        ({"propensities": (0.0,)}, "propensity: must lie between 0 and 1, found 0"),
        ({"icc": 1.0}, "ICC: must be from 0 to less than 1, found 1"),
        ({"icc": float("nan")}, "ICC: must be from 0 to less than 1, found nan"),
        ({"correlation": -0.1}, "correlation: must be from 0 to 1, found -0.1"),
    ],
)
def test_an_assumption_that_cannot_be_is_refused(assumed: dict[str, float], named: str) -> None:
    with pytest.raises(BadInput, match=f"assumed {named}"):
        Assumptions(**assumed)  # type: ignore[arg-type]


def test_a_difference_must_be_larger_where_several_are_tested() -> None:
    """The strictest of Holm's levels for 5 tests is .01, two-sided: 2.576 in place of 1.96."""
    sizes = {BIO: [1] * 100_000}
    alone, five = (power(sizes, Assumptions((0.5,), 0.0, tests=tests))[0].increase for tests in (1, 5))
    assert alone is not None
    assert five is not None
    assert five / alone == pytest.approx((2.5758 + 0.8416) / (1.96 + 0.8416), abs=0.001)
