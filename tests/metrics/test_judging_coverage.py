"""Corrected shares cover the truth that was planted; `validation` has all settings and more runs."""

from functools import partial

import pytest

from validation.cells import Cell, Found, simulate
from validation.judged_worlds import FOUR_LABELS, binary
from validation.judging import agreeing, one_judge, usual

pytestmark = pytest.mark.slow

REPLICATES = 150
# The coverage of 150 intervals of 95 % lies in this range with probability .999.
LOW, HIGH = 0.880, 0.994


def lies_in_range(found: Found) -> bool:
    return found.shown == REPLICATES and LOW <= found.mean <= HIGH


@pytest.mark.parametrize(
    ("prevalence", "sensitivity", "specificity"), [(0.05, 0.6, 0.95), (0.2, 0.8, 0.85), (0.6, 0.95, 0.7)]
)
def test_corrected_shares_cover_and_uncorrected_ones_are_reported_as_biased(
    prevalence: float, sensitivity: float, specificity: float
) -> None:
    found = simulate(
        Cell(("judge",), partial(one_judge, binary(prevalence, sensitivity, specificity))), REPLICATES
    )
    for name in "Rogan-Gladen", "PPI++", "sensitivity", "specificity":
        assert lies_in_range(found[name]), name
    for name in "Rogan-Gladen, a domain", "PPI++, a domain":
        assert LOW <= found[name].mean <= HIGH, name
    assert found["uncorrected"].mean < 0.2
    assert found["misses corrected"].mean > 0.75


def test_where_errors_cancel_a_bias_is_shown_no_more_often_than_by_chance() -> None:
    # Sensitivity .8, specificity .95: 20 % where there are 20 %.
    found = simulate(Cell(("even",), partial(one_judge, binary(0.2, 0.8, 0.95))), REPLICATES)
    assert found["bias shown"].mean <= 1 - LOW
    assert lies_in_range(found["uncorrected"])


def test_few_scenarios_that_differ_much() -> None:
    world = binary(0.2, 0.8, 0.85)._replace(scenarios=60, alike=(0.6, 0.5))
    found = simulate(Cell(("few",), partial(usual, world)), REPLICATES)
    assert lies_in_range(found["PPI++"])


def test_alpha_and_kappa_cover() -> None:
    found = simulate(Cell(("raters",), partial(agreeing, FOUR_LABELS, 2, 200)), REPLICATES)
    for name in "alpha", "kappa", "agreement":
        assert lies_in_range(found[name]), name
