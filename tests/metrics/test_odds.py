"""Odds ratios with clustered errors: against statsmodels, by hand, and where there is no estimate."""

from importlib import import_module
from math import log
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.odds import LogOdds, log_odds

statsmodels: Any = import_module("statsmodels.api")


class Data(NamedTuple):
    """Rows with two kinds of clusters, neither of which nests in the other."""

    x: Numbers
    outcome: Numbers
    scenario: Codes
    storyline: Codes


def rows(seed: int, scenarios: int = 60, storylines: int = 14, each: int = 6) -> Data:
    rng = np.random.default_rng(seed)
    scenario = np.repeat(np.arange(scenarios), each)
    storyline = rng.integers(0, storylines, len(scenario))
    factors = rng.integers(0, 2, (len(scenario), 3))
    x = np.column_stack([np.ones(len(scenario)), factors]).astype(np.float64)
    logit = x @ [-1.0, 0.8, -0.4, 0.0] + rng.normal(0, 1, scenarios)[scenario]
    logit += rng.normal(0, 0.7, storylines)[storyline]
    outcome = (rng.random(len(scenario)) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    return Data(x, outcome, scenario, storyline)


def fitted(x: Numbers, outcome: Numbers, *clusters: Codes) -> LogOdds:
    found = log_odds(x, outcome, clusters)
    assert isinstance(found, LogOdds), found
    return found


def on_equal_terms(covariance: Numbers, x: Numbers) -> Numbers:
    """Their covariance without the factor (n - 1) / (n - k); both have G / (G - 1)."""
    return np.asarray(covariance * (len(x) - x.shape[1]) / (len(x) - 1))


def theirs(x: Numbers, outcome: Numbers, groups: NDArray[np.int64]) -> Numbers:
    """Their covariance, on equal terms."""
    model = statsmodels.GLM(outcome, x, family=statsmodels.families.Binomial())
    fit = model.fit(tol=1e-14, cov_type="cluster", cov_kwds={"groups": groups})
    return on_equal_terms(np.asarray(fit.cov_params()), x)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_kind_of_cluster_gives_what_their_logit_gives(seed: int) -> None:
    data = rows(seed)
    fit = statsmodels.Logit(data.outcome, data.x).fit(
        disp=0, tol=1e-14, cov_type="cluster", cov_kwds={"groups": data.scenario}
    )
    found = fitted(data.x, data.outcome, data.scenario)
    assert found.values == pytest.approx(np.asarray(fit.params), abs=1e-8)
    expected = on_equal_terms(np.asarray(fit.cov_params()), data.x)
    assert found.covariance == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert found.freedom == 59


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_kinds_of_clusters_give_what_their_glm_gives(seed: int) -> None:
    data = rows(seed)
    found = fitted(data.x, data.outcome, data.scenario, data.storyline)
    expected = theirs(data.x, data.outcome, np.column_stack([data.scenario, data.storyline]))
    assert np.linalg.eigvalsh(expected).min() > 0
    assert found.covariance == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert found.freedom == len(np.unique(data.storyline)) - 1 == 13


def test_clusters_within_larger_ones_give_the_errors_of_the_larger() -> None:
    data = rows(5)
    larger = data.scenario // 3
    found = fitted(data.x, data.outcome, data.scenario, larger)
    assert found.covariance == pytest.approx(theirs(data.x, data.outcome, larger), rel=1e-8)
    assert found.freedom == 19


def test_a_table_of_two_by_two_by_hand() -> None:
    # 5 of 20 without the level, 12 of 18 with it; every row is a cluster of its own.
    x = np.array([[1.0, 0.0]] * 20 + [[1.0, 1.0]] * 18)
    outcome = np.array([1.0] * 5 + [0.0] * 15 + [1.0] * 12 + [0.0] * 6)
    found = fitted(x, outcome, np.arange(38))
    assert found.values == pytest.approx([log(5 / 15), log(12 * 15 / (6 * 5))])
    variance = 1 / 5 + 1 / 15 + 1 / 12 + 1 / 6
    assert found.covariance[1, 1] == pytest.approx(38 / 37 * variance)
    assert found.freedom == 37


@pytest.mark.parametrize("seed", [11, 30])
def test_a_covariance_that_is_not_positive_gives_way_to_the_larger_of_the_two(seed: int) -> None:
    data = rows(seed, scenarios=8, storylines=8, each=5)
    x = data.x[:, :3]
    kinds = [data.scenario, data.storyline]
    one, other = (theirs(x, data.outcome, kind) for kind in kinds)
    assert bool(np.trace(one) > np.trace(other)) == (seed == 11)
    assert np.linalg.eigvalsh(theirs(x, data.outcome, np.column_stack(kinds))).min() < 0
    larger = max((one, other), key=np.trace)
    found = fitted(x, data.outcome, *kinds)
    assert found.covariance == pytest.approx(larger, rel=1e-8)
    assert np.linalg.eigvalsh(found.covariance).min() > 0


def test_a_level_that_decides_the_outcome_has_no_estimate() -> None:
    data = rows(6)
    words = "decides the outcome, so there is no finite estimate"
    for outcome in (
        data.x[:, 1],  # all with the level, none without it
        data.x[:, 1] * data.outcome,  # none without the level
        np.maximum(data.x[:, 1], data.outcome),  # all with the level
        np.zeros(len(data.x)),
        np.ones(len(data.x)),
    ):
        found = log_odds(data.x, outcome, [data.scenario])
        assert isinstance(found, str)
        assert words in found


def test_columns_that_say_the_same_have_no_estimate() -> None:
    data = rows(7)
    for more in (data.x[:, 1], 1 - data.x[:, 1], np.zeros(len(data.x)), np.ones(len(data.x))):
        found = log_odds(np.column_stack([data.x, more]), data.outcome, [data.scenario])
        assert found == "two factors are collinear, so their effects cannot be separated"


def test_too_few_clusters_give_no_estimate() -> None:
    data = rows(8)
    few = data.scenario % 4
    found = log_odds(data.x, data.outcome, [few])
    assert found == "4 clusters are too few for 4 coefficients"
    assert isinstance(log_odds(data.x, data.outcome, [data.scenario % 5]), LogOdds)
    one = np.zeros(len(data.x), dtype=np.int64)
    assert log_odds(data.x, data.outcome, [data.scenario, one]) == "1 clusters are too few for 4 coefficients"


def test_clusters_that_are_all_alike_have_no_error() -> None:
    # In every scenario, one of two rows without the level and one of two with it.
    x = np.tile([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]], (20, 1))
    scenario = np.repeat(np.arange(20), 4)
    for outcome in ([0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]):
        found = log_odds(x, np.tile(outcome, 20), [scenario, scenario])
        assert found == "all clusters are alike, so there is no error to estimate"
