"""Variance components: by hand, and recovered from simulated populations."""

import numpy as np
import pytest
from helpers.records import BIO, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.table import table_of
from propensitybench.metrics.variance import Variance, intraclass, variance_of
from validation.populations import full_layout, table_of_levels

LAYOUT = full_layout()
DIMENSIONS = ("time", "financials", "power-seeking")


def of(*records: EpisodeRecord) -> Variance:
    return variance_of(table_of(records))


def pair(scenario: str, first: bool, second: bool, domain: str = BIO) -> list[EpisodeRecord]:
    return [
        misaligned(0, scenario=scenario, domain=domain, dimension=dimension)
        if fails
        else resisted(scenario=scenario, domain=domain, dimension=dimension)
        for fails, dimension in zip((first, second), DIMENSIONS, strict=False)
    ]


def test_the_correlation_by_hand() -> None:
    records = [*pair("a", True, True), *pair("b", False, False), *pair("c", True, False)]
    # Means 1, 0, 1/2 about 1/2: MSB = 2 (1/4 + 1/4) / 2 = 1/2; MSW = (2 * 1/4) / 3 = 1/6;
    # (1/2 - 1/6) / (1/2 + 1/6) = 1/2.
    assert of(*records).icc == pytest.approx(0.5)
    assert of(*records).level_zero_scenario == pytest.approx(0.5)
    assert of(*records).level_zero_noise == pytest.approx(0.5)


def test_scenarios_of_unequal_size_by_hand() -> None:
    records = [
        *pair("a", True, True),
        misaligned(0, scenario="a", dimension=DIMENSIONS[2]),
        *pair("b", True, False),
        resisted(scenario="c"),
    ]
    # Values 1 1 1, 1 0, 0: mean 2/3, sizes 3, 2, 1. SSB = 3/9 + 2/36 + 4/9 = 5/6, MSB = 5/12;
    # SSW = 1/2, MSW = 1/6; k0 = (6 - 14/6) / 2 = 11/6. (1/4) / (5/12 + 5/6 * 1/6) = 9/20.
    assert of(*records).icc == pytest.approx(9 / 20)


def test_without_two_tasks_of_a_scenario_or_without_any_spread_there_is_none() -> None:
    assert of(misaligned(0, scenario="a"), resisted(scenario="b")).icc is None
    assert of(*pair("a", True, True), *pair("b", True, True)).icc is None
    assert of() == Variance(None, None, None, None)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_correlation_is_recovered_and_explains_the_design_effect(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Of a beta(a, b) share the correlation is 1 / (a + b + 1).
    share = rng.beta(0.9, 2.1, 979)
    table = table_of_levels(np.where(rng.random((979, 6)) < share[:, None], 0, 13), LAYOUT)
    found = variance_of(table)
    assert found.icc == pytest.approx(0.25, abs=0.05)
    assert found.level_zero_scenario == pytest.approx(found.icc)
    assert found.design_effect == pytest.approx(1 + 5 * 0.25, abs=0.35)


def test_the_correlation_of_numbers_that_are_no_shares() -> None:
    table = table_of([*pair("a", True, False), *pair("b", True, False)])
    assert intraclass(table.domain, table.scenario, np.array([5.0, 5.0, 9.0, 9.0])) == 1.0
