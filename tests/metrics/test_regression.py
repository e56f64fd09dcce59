"""The regression: against statsmodels on all rows, against known coefficients, and where there is none."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted
from numpy.typing import NDArray

from propensitybench.metrics.regression import FactorEffect, Regression, regression
from propensitybench.metrics.table import LEVELS, Table, table_of
from propensitybench.taxonomy import Naming
from validation.populations import Layout, full_layout, table_of_levels

statsmodels: Any = import_module("statsmodels.api")

LAYOUT = full_layout()
DOMAINS = sorted(set(LAYOUT.domain.tolist()))
BY_DOMAIN = np.array([-0.6, -0.2, 0.2, 0.6])
BY_DIMENSION = np.array([-0.5, -0.3, -0.1, 0.1, 0.3, 0.5])
BENIGN = 0.8


def simulated(
    rng: np.random.Generator,
    layout: Layout,
    shift: float = 0.0,
    frailty: NDArray[np.float64] | None = None,
    dimensions: int = 6,
) -> Table:
    """Tasks whose hazards follow the regression exactly, but for the scenarios' own frailty."""
    count = len(layout.domain)
    domain = BY_DOMAIN[[DOMAINS.index(name) for name in layout.domain]]
    logits = np.full((count, dimensions, LEVELS), shift - 3.5) + domain[:, None, None]
    logits[..., 0] += 0.7
    logits[..., 1:] += BY_DIMENSION[:dimensions, None]
    if frailty is not None:
        logits += frailty[:, None, None]
    fails = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    return table_of_levels(np.where(fails.any(axis=-1), fails.argmax(axis=-1), LEVELS), layout)


def effects(found: Regression) -> dict[tuple[str, str], FactorEffect]:
    return {(effect.factor, effect.value): effect for effect in found.effects}


def log_error(effect: FactorEffect) -> float:
    """Standard error of the log odds, from its interval."""
    return float(np.log(effect.odds_ratio_ci95.high / effect.odds_ratio_ci95.low) / (2 * 1.97))


def test_known_coefficients_are_recovered() -> None:
    rng = np.random.default_rng(1)
    tables: dict[tuple[str, Naming], Table] = {
        (model, naming): simulated(rng, LAYOUT, shift + (BENIGN if naming == "benign" else 0.0))
        for model, shift in (("low", -0.5), ("high", 0.5))
        for naming in ("harmful", "benign")
    }
    found = effects(regression(tables))
    truth = {("naming", "benign"): BENIGN, ("model", "low"): -0.5, ("model", "high"): 0.5}
    truth |= {("domain", name): value for name, value in zip(DOMAINS, BY_DOMAIN, strict=True)}
    truth |= {("dimension", str(i)): value for i, value in enumerate(BY_DIMENSION)}
    assert found.keys() == truth.keys()
    for key, value in truth.items():
        assert abs(np.log(found[key].odds_ratio) - value) <= 4 * log_error(found[key])
        assert log_error(found[key]) < 0.06


def person_periods(table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Every level entered as a row: indicators of level, domain and dimension; outcomes; scenarios."""
    rows, ends, scenarios = [], [], []
    domains, dimensions = np.unique(table.domain).tolist(), np.unique(table.dimension).tolist()
    places = np.unique(table.scenario, return_inverse=True)[1]
    for unit in range(len(table)):
        for level in range(LEVELS):
            if table.at_risk[unit, level] > 0:
                row = np.zeros(LEVELS + len(domains) + len(dimensions))
                row[level] = 1
                row[LEVELS + domains.index(table.domain[unit])] = 1
                row[LEVELS + len(domains) + dimensions.index(table.dimension[unit])] = level > 0
                rows.append(row)
                ends.append(table.ends[unit, level])
                scenarios.append(places[unit])
    keep = np.array([c for c in range(len(rows[0])) if c not in (LEVELS, LEVELS + len(domains))])
    return np.array(rows)[:, keep], np.array(ends), np.array(scenarios)


def test_aggregated_rows_give_the_fit_and_the_errors_of_all_rows() -> None:
    rng = np.random.default_rng(3)
    some = np.flatnonzero(rng.random(len(LAYOUT.domain)) < 0.12)
    layout = Layout(*(column[some] for column in LAYOUT))
    table = simulated(rng, layout, 0.5, rng.normal(0, 1.5, len(some)), dimensions=3)
    x, ends, scenarios = person_periods(table)
    fit = statsmodels.GLM(ends, x, family=statsmodels.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": scenarios, "use_correction": False}
    )
    found = effects(regression({("m", "harmful"): table}))
    clusters = len(np.unique(scenarios))
    # Statsmodels' columns: 13 levels, domains 2 to 4 and dimensions 2 and 3 against the first.
    for (one, other), column in {(1, 0): 13, (2, 0): 14, (3, 0): 15}.items():
        ratio = found["domain", DOMAINS[one]].odds_ratio / found["domain", DOMAINS[other]].odds_ratio
        assert np.log(ratio) == pytest.approx(fit.params[column], abs=1e-6)
    # Against the mean of three dimensions: a contrast of statsmodels' two coefficients.
    contrast = np.zeros(len(fit.params))
    contrast[16:18] = -1 / 3
    error = np.sqrt(contrast @ fit.cov_params() @ contrast * clusters / (clusters - 1))
    effect = found["dimension", "0"]
    assert np.log(effect.odds_ratio) == pytest.approx(contrast @ fit.params, abs=1e-6)
    quantile = np.log(effect.odds_ratio_ci95.high / effect.odds_ratio) / error
    assert quantile == pytest.approx(1.98, abs=0.01)  # t with some hundred degrees of freedom


def test_epochs_and_censored_episodes_count_with_the_levels_that_they_entered() -> None:
    records = [
        misaligned(1, scenario="a", epoch=1),
        resisted(scenario="a", epoch=2),
        errored(3, scenario="b"),
        misaligned(0, scenario="c"),
    ]
    some = regression({("m", "harmful"): table_of(records)})
    # Levels without an end are not in the fit: at level 0, four met; at level 1, three.
    assert (some.rows, some.ends) == (7, 2)


def test_one_value_of_every_factor_has_nothing_to_compare() -> None:
    records = [
        misaligned(i % 5, scenario=f"s{i}") if i % 2 else resisted(scenario=f"s{i}") for i in range(60)
    ]
    found = regression({("m", "harmful"): table_of(records)})
    assert (found.effects, found.clusters) == ((), 60)
    assert found.note == "no factor has two values to compare"


def test_a_model_that_never_gives_in_is_left_out_and_the_others_stay_as_they_are() -> None:
    rng = np.random.default_rng(6)
    tables: dict[tuple[str, Naming], Table] = {
        (m, "harmful"): simulated(rng, LAYOUT) for m in ("one", "other")
    }
    alone = regression(tables)
    with_it = regression({**tables, ("never", "harmful"): table_of_levels(np.full((979, 6), LEVELS), LAYOUT)})
    assert with_it.left_out == ("model never",)
    assert with_it.effects == alone.effects


def test_a_domain_that_always_gives_in_at_once_is_left_out() -> None:
    rng = np.random.default_rng(7)
    table = simulated(rng, LAYOUT)
    levels = np.where(LAYOUT.domain[:, None] == BIO, 0, table.withstood.reshape(979, 6).astype(np.int64))
    found = regression({("m", "harmful"): table_of_levels(levels, LAYOUT)})
    assert found.left_out == (f"domain {BIO}",)
    assert ("domain", CHEM) in effects(found)


@pytest.mark.parametrize("level", [0, 4, LEVELS])
def test_an_agent_whose_tasks_all_end_alike_has_no_effects(level: int) -> None:
    found = regression({("m", "harmful"): table_of_levels(np.full((979, 6), level), LAYOUT)})
    assert found.effects == ()
    assert found.note == "nothing varies: all tasks end alike at each level"


def test_separation_by_two_factors_together_is_reported_and_not_estimated() -> None:
    records = []
    for i in range(80):
        domain, dimension = (BIO, CHEM)[i % 2], ("time", "financials")[i // 2 % 2]
        about = {"scenario": f"s{i}", "domain": domain, "dimension": dimension}
        # At level 1 all of one combination end and none of the others.
        both = domain == BIO and dimension == "time"
        records.append(misaligned(1, **about) if both else resisted(**about))  # type: ignore[arg-type]
    found = regression({("m", "harmful"): table_of(records)})
    assert found.effects == ()
    assert found.note


def test_models_that_met_different_domains_only_cannot_be_told_from_them() -> None:
    rng = np.random.default_rng(8)
    parts = {}
    for model, domain in (("one", BIO), ("other", CHEM)):
        here = np.flatnonzero(LAYOUT.domain == domain)
        parts[model, "harmful"] = simulated(rng, Layout(*(column[here] for column in LAYOUT)), 1.0)
    found = regression(parts)  # type: ignore[arg-type]
    assert found.effects == ()
    assert "collinear" in found.note


def test_too_few_scenarios_are_reported() -> None:
    records = [misaligned(i, scenario=f"s{i % 2}", dimension="time", epoch=i + 1) for i in range(5)]
    records += [resisted(scenario=f"s{i}", dimension="financials") for i in range(2)]
    records += [misaligned(3, scenario=f"s{i}", dimension="financials", epoch=2) for i in range(2)]
    found = regression({("m", "harmful"): table_of(records)})
    assert found.effects == ()
    assert "too few" in found.note


def test_nothing_gives_nothing() -> None:
    found = regression({})
    assert (found.effects, found.rows, found.clusters) == ((), 0, 0)
