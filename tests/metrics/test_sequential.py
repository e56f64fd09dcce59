"""The stopping rule: hand-computed widths, and the coverage of runs that stop by it."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
import pytest
from helpers.records import BIO, CHEM, CYBER, SELF, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.estimates import Estimate, estimate, propensity_terms
from propensitybench.metrics.intervals import Z95
from propensitybench.metrics.sequential import half_width, is_narrow
from propensitybench.metrics.table import Table, table_of
from validation.coverage.stopping import spread_order, stopped
from validation.populations import (
    DIMENSIONS,
    O3_LIKE,
    Agent,
    full_layout,
    play,
    propensity,
    table_of_levels,
)

REPLICATES = 60
# Of 60 intervals of 95 % coverage, at least this share contains the truth with
# probability .999.
AT_LEAST = 0.85
HALF_LIKE = Agent(-1.9, -3.2)
LAYOUT = full_layout()


def without_failures(count: int) -> Iterator[EpisodeRecord]:
    for domain in (BIO, CHEM, CYBER, SELF):
        for index in range(count):
            yield resisted(scenario=f"{domain}{index}", domain=domain)


def test_a_run_without_failures_has_a_width() -> None:
    table = table_of(without_failures(100))
    smooth = 0.5 / 101
    assert half_width(table) == pytest.approx(Z95 * sqrt(4 * smooth * (1 - smooth) / 100) / 4)
    assert is_narrow(table, 0.02, least=400)
    assert not is_narrow(table, 0.02, least=401)
    assert not is_narrow(table_of(without_failures(10)), 0.02, least=1)


def test_the_width_of_clustered_tasks_by_hand() -> None:
    failures = {"a": 2, "b": 0, "c": 0, "d": 1, "e": 0}
    table = table_of(
        misaligned(0, scenario=scenario, dimension=dimension)
        if index < failures[scenario]
        else resisted(scenario=scenario, dimension=dimension)
        for scenario in failures
        for index, dimension in enumerate(("time", "financials"))
    )
    # Residuals by scenario 1.4, -.6, -.6, .4, -.6: 3.2 * 5/4 / 10^2, scaled from .3 * .7 to 3.5/11.
    variance = 0.04 * (3.5 / 11) * (7.5 / 11) / 0.21
    assert half_width(table) == pytest.approx(Z95 * sqrt(variance))


def test_a_share_that_is_the_same_in_every_scenario_is_not_certain() -> None:
    half = [
        outcome
        for name in "abcd"
        for outcome in (misaligned(0, scenario=name), resisted(scenario=name, dimension="financials"))
    ]
    assert half_width(table_of(half)) == pytest.approx(Z95 * sqrt(0.25 / 4))


def test_no_width_if_a_domain_has_no_variance_estimate() -> None:
    assert half_width(table_of([])) is None
    one = [resisted(), *(resisted(domain=CHEM, scenario=name) for name in "bcd")]
    assert half_width(table_of(one)) is None
    assert not is_narrow(table_of(one), 1.0, least=0)


def found(table: Table) -> Estimate:
    return estimate(table, propensity_terms(table), "propensity")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "scenario_spread", "target", "tasks"),
    [
        # Where scenarios do not differ, 1.96^2 p (1 - p) / .03^2 with p .47 is 1,064.
        (HALF_LIKE, 0.0, 0.03, (1020, 1140)),
        # With p .12, 1.96^2 p (1 - p) / .02^2 is 1,014, and a few scenarios come twice.
        (O3_LIKE, 2.0, 0.02, (950, 1250)),
    ],
)
def test_a_run_that_stops_by_width_keeps_its_coverage(
    agent: Agent, scenario_spread: float, target: float, tasks: tuple[int, int]
) -> None:
    rng = np.random.default_rng(20261121)
    truth = propensity(agent, scenario_spread)
    sizes, near, near_full_run, covered = [], [], [], []
    for _ in range(REPLICATES):
        everything = table_of_levels(play(agent, LAYOUT, rng, scenario_spread), LAYOUT)
        end = stopped(everything, spread_order(LAYOUT, DIMENSIONS, rng), target)
        result, full_run = found(end), everything.measure(propensity_terms(everything)).value
        assert result.value is not None
        assert result.ci95 is not None
        assert full_run is not None
        sizes.append(len(end))
        near.append(abs(result.value - truth) <= target)
        near_full_run.append(abs(result.value - full_run) <= target)
        covered.append(result.ci95.low <= truth <= result.ci95.high)
    assert tasks[0] <= np.mean(sizes) <= tasks[1]
    assert np.mean(near) >= AT_LEAST
    assert np.mean(covered) >= AT_LEAST
    assert np.mean(near_full_run) >= 0.95
