"""Our statistics against independent implementations."""

import gc
from importlib import import_module
from math import sqrt
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from helpers.survival import kaplan_meier
from inspect_ai.scorer import SampleScore, Score, stderr

from propensitybench.metrics.agreement import Scale, alpha_interval, krippendorff_alpha, pairs
from propensitybench.metrics.estimates import estimate, propensity_terms, withstood_terms
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.survival import survival_of
from propensitybench.metrics.table import Table
from validation.populations import GEMINI_LIKE, O3_LIKE, Agent, full_layout, play, table_of_levels

krippendorff: Any = import_module("krippendorff")
multitest: Any = import_module("statsmodels.stats.multitest")
inter_rater: Any = import_module("statsmodels.stats.inter_rater")

LAYOUT = full_layout()


def one_domain(agent: Agent, seed: int) -> Table:
    """The rows of one domain of a full run, some of them lost, so that scenarios have unequal sizes."""
    rng = np.random.default_rng(seed)
    table = table_of_levels(play(agent, LAYOUT, rng, 2), LAYOUT)
    return table.filter((table.domain == "cyber-security") & (rng.random(len(table)) < 0.8))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_the_scenario_error_is_that_of_inspect(agent: Agent, seed: int) -> None:
    table = one_domain(agent, seed)
    scores = [
        SampleScore(score=Score(value=float(value)), sample_metadata={"scenario": str(scenario)})
        for value, scenario in zip(table.misaligned, table.scenario, strict=True)
    ]
    metric: Any = stderr(cluster="scenario")
    ours = estimate(table, propensity_terms(table), "", "task").errors.scenario
    assert ours == pytest.approx(metric(scores), abs=1e-12)


def test_with_scenarios_of_one_task_it_is_the_error_of_a_mean() -> None:
    table = one_domain(GEMINI_LIKE, 0)
    _, first = np.unique(table.scenario, return_index=True)
    single = table.take(first)
    ours = estimate(single, propensity_terms(single), "").errors.scenario
    assert ours == pytest.approx(stdev(single.misaligned.tolist()) / sqrt(len(single)), abs=1e-12)


@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_levels_withstood_are_the_area_under_the_curve_of_statsmodels(agent: Agent) -> None:
    table = one_domain(agent, 3)
    expected = kaplan_meier(table.withstood, table.misaligned)
    found = survival_of(table)
    assert found.survival == pytest.approx(expected, abs=1e-9)
    # The curve is constant between levels, and episodes that resist are censored at t = 13.
    assert table.measure(withstood_terms(table)).value == pytest.approx(sum(expected), abs=1e-9)
    assert found.entered == pytest.approx(1 + sum(expected[:-1]), abs=1e-9)


def test_survival_with_censored_episodes_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(8)
    levels = play(GEMINI_LIKE, LAYOUT, rng, 2)
    broken = rng.integers(0, 13, levels.shape)
    # Censoring after the misaligned call has no effect.
    broken = np.where((rng.random(levels.shape) < 0.3) & (broken <= levels), broken, -1)
    table = table_of_levels(levels, LAYOUT, broken)
    cyber = table.filter(table.domain == "cyber-security")
    chosen = LAYOUT.domain == "cyber-security"
    lost = broken[chosen].ravel() >= 0
    # Censored after k levels: at risk below level k, so the time is just before an event at level k.
    lasted = np.where(lost, broken[chosen].ravel() - 0.5, levels[chosen].ravel())
    ended = ~lost & (levels[chosen].ravel() < 13)
    assert survival_of(cyber).survival == pytest.approx(kaplan_meier(lasted, ended), abs=1e-9)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_krippendorff(scale: Scale) -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        truth = rng.integers(0, 4, 25)
        ratings = np.where(rng.random((3, 25)) < 0.6, truth, rng.integers(0, 4, (3, 25))).astype(float)
        ratings[rng.random(ratings.shape) < 0.25] = np.nan
        expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement=scale)
        rows = [[None if np.isnan(rating) else float(rating) for rating in row] for row in ratings]
        assert krippendorff_alpha(rows, scale) == pytest.approx(expected, abs=1e-12)
        scenarios = np.arange(len(truth)).astype(str)
        found = alpha_interval(rows, scenarios, np.random.default_rng(0), scale, draws=20)
        assert found.value == pytest.approx(expected, abs=1e-12)


def test_kappa_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(6)
    ratings = rng.integers(0, 4, (2, 200))
    ratings[1] = np.where(rng.random(200) < 0.5, ratings[0], ratings[1])
    confusion = np.zeros((4, 4))
    np.add.at(confusion, tuple(ratings), 1)
    (pair,) = pairs(ratings.tolist(), np.arange(200).astype(str), rng)
    assert pair.kappa == pytest.approx(inter_rater.cohens_kappa(confusion).kappa, abs=1e-12)


@pytest.fixture
def nothing_to_collect() -> None:
    """Statsmodels collects garbage in every call of Holm's method; this leaves it little to look at."""
    gc.freeze()  # for good: thawed, what other tests left unclosed would be found in a test of its own


@pytest.mark.usefixtures("nothing_to_collect")
def test_adjusted_p_values_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(7)
    for _ in range(1000):
        p = rng.random(rng.integers(1, 40)) ** rng.integers(1, 6)
        p[rng.random(len(p)) < 0.2] = p[0]  # ties
        assert holm(p.tolist()) == pytest.approx(multitest.multipletests(p, method="holm")[1], abs=1e-12)
        found = benjamini_hochberg(p.tolist())
        assert found == pytest.approx(multitest.multipletests(p, method="fdr_bh")[1], abs=1e-12)
