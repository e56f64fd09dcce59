"""The cluster bootstrap: what it resamples, and that its interval agrees with the formula."""

import numpy as np
import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted

from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.resample import Resample, percentile_interval
from propensitybench.metrics.scores import score_naming
from propensitybench.metrics.table import table_of
from propensitybench.metrics.terms import Ratio


def test_whole_scenarios_are_resampled_within_each_domain() -> None:
    records = [resisted(scenario=name, dimension=d) for name in "abc" for d in ("time", "financials")]
    records += [resisted(domain=CHEM, scenario=f"c{i}") for i in range(5)]
    table = table_of(records)
    columns = np.stack([np.ones(len(table)), table.scenario == "a"], axis=1)
    totals = Resample(table).totals(columns)
    assert totals.shape == (2000, 2, 2)
    assert (totals[:, 0, 0] == 6).all()
    assert (totals[:, 1, 0] == 5).all()
    # Scenario a comes 0 to 3 times, with both of its tasks, and once on average.
    assert set(totals[:, 0, 1]) == {0, 2, 4, 6}
    assert totals[:, 0, 1].mean() == pytest.approx(2, abs=0.1)


def test_a_domain_with_one_scenario_cannot_be_resampled() -> None:
    records = [misaligned(1, scenario="a"), resisted(scenario="b"), misaligned(1, domain=CHEM, scenario="c")]
    found = score_naming(records).estimates["propensity"].domain
    assert found.value == 0.75
    assert (found.errors.scenario, found.ci95) == (None, None)
    table = table_of(records)
    assert np.isnan(Resample(table).ratios(propensity_terms(table).ratio)).all()


def test_equal_resamples_give_no_percentile_interval() -> None:
    records = [resisted(scenario=name) for name in "abcdef"]
    table = table_of(records)
    assert percentile_interval(Resample(table).ratios(propensity_terms(table).ratio)) is None
    found = score_naming(records).estimates["propensity"].domain
    assert found.ci95 is not None
    assert found.ci95.high > 0.3


def test_a_resample_without_a_value_leaves_no_percentile_interval() -> None:
    assert percentile_interval(np.array([0.1, np.nan])) is None
    assert percentile_interval(np.empty(0)) is None


def test_a_domain_with_denominator_0_is_left_out_of_a_resample_or_makes_it_nan() -> None:
    records = [resisted(domain=BIO, scenario=f"b{i}") for i in range(4)]
    records += [misaligned(1, domain=CHEM, scenario="c0"), errored(domain=CHEM, scenario="c1")]
    table = table_of(records)
    values = np.nan_to_num(table.misaligned)
    some = Ratio(values, (table.finished > 0).astype(np.float64))
    draws = Resample(table).ratios(some)
    assert set(draws) == {0.0, 0.5}
    every = Resample(table).ratios(some._replace(needed=some.y))
    assert (np.isnan(every) == (draws == 0.0)).all()
