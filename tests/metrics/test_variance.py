"""Variance components: by hand, and recovered from simulated populations."""

import numpy as np
import pytest
from helpers.populations import GEMINI_LIKE, full_layout, play, table_of_levels
from helpers.records import BIO, CHEM, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.table import table_of
from propensitybench.metrics.variance import Variance, intraclass, variance_of

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


def test_what_lies_between_domains_is_not_between_scenarios() -> None:
    records = [*pair("a", True, True), *pair("b", True, True)]
    records += [*pair("c", False, False, CHEM), *pair("d", True, False, CHEM), *pair("e", False, True, CHEM)]
    # Nothing varies within bio-security. Means 0, 1/2, 1/2 about 1/3 in chemical-security:
    # SSB = 2 (1/9 + 1/36 + 1/36) = 1/3 with 3 df in all, SSW = 1 with 5; 1/9 - 1/5 < 0 is cut to 0.
    assert of(*records).icc == 0.0


def test_without_two_tasks_of_a_scenario_or_without_any_spread_there_is_none() -> None:
    assert of(misaligned(0, scenario="a"), resisted(scenario="b")).icc is None
    assert of(*pair("a", True, True), *pair("b", True, True)).icc is None
    assert of() == Variance(None, None, None, None)


def test_epochs_at_level_0_are_replicates_like_dimensions() -> None:
    by_dimension = [*pair("a", True, True), *pair("b", False, False), *pair("c", True, False)]
    by_epoch = [
        misaligned(0, scenario=scenario, epoch=epoch) if fails else resisted(scenario=scenario, epoch=epoch)
        for scenario, ends in (("a", (True, True)), ("b", (False, False)), ("c", (True, False)))
        for epoch, fails in enumerate(ends, 1)
    ]
    assert of(*by_epoch).level_zero_scenario == of(*by_dimension).level_zero_scenario


def test_the_design_effect_of_single_tasks_is_1() -> None:
    records = [misaligned(0, scenario=f"a{i}") if i % 3 else resisted(scenario=f"a{i}") for i in range(20)]
    assert of(*records).design_effect == pytest.approx(1.0)


def test_the_design_effect_of_six_times_the_same_task_is_6() -> None:
    table = table_of_levels(np.where(np.arange(979)[:, None] % 3 == 0, 1, np.full((979, 6), 13)), LAYOUT)
    assert variance_of(table).design_effect == pytest.approx(6.0, rel=0.01)
    assert variance_of(table).icc == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_independent_tasks_have_neither_correlation_nor_design_effect(seed: int) -> None:
    levels = np.where(np.random.default_rng(seed).random((979, 6)) < 0.3, 1, 13)
    found = variance_of(table_of_levels(levels, LAYOUT))
    assert found.icc == pytest.approx(0.0, abs=0.04)
    assert found.design_effect == pytest.approx(1.0, abs=0.2)


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


def test_more_spread_of_scenarios_gives_more_correlation() -> None:
    rng = np.random.default_rng(0)
    found = [
        variance_of(table_of_levels(play(GEMINI_LIKE, LAYOUT, rng, s), LAYOUT)).icc for s in (0.0, 1.0, 2.0)
    ]
    # As in the simulations behind the method: .23 and .47.
    assert found == [
        pytest.approx(0.05, abs=0.06),
        pytest.approx(0.23, abs=0.06),
        pytest.approx(0.47, abs=0.06),
    ]


def test_the_correlation_of_numbers_that_are_no_shares() -> None:
    table = table_of([*pair("a", True, False), *pair("b", True, False)])
    assert intraclass(table.domain, table.scenario, np.array([5.0, 5.0, 9.0, 9.0])) == 1.0
