"""The hierarchical model: its data, density and integrals, and what it tells of known agents."""

import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted
from numpyro.infer.util import log_density
from scipy.stats import multivariate_normal, norm

from propensitybench.errors import BadInput, NotConverged
from propensitybench.metrics.hierarchical import fit
from propensitybench.metrics.hierarchical_model import (
    HierarchicalData,
    data_of,
    group_propensities,
    hazards,
    model,
    sample,
)
from propensitybench.metrics.table import LEVELS, table_of
from validation.hierarchical import play, small_layout, world_of, world_of_priors
from validation.populations import Layout, table_of_levels

DIMENSIONS = 3


@pytest.fixture(scope="module")
def data() -> HierarchicalData:
    rng = np.random.default_rng(1)
    layout = small_layout()
    return data_of(play(world_of_priors(layout, rng, DIMENSIONS), layout, rng))


def test_episodes_are_at_risk_up_to_the_level_at_which_they_were_lost() -> None:
    records = [
        misaligned(1, scenario="a", dimension="time", domain=BIO),
        misaligned(0, scenario="a", dimension="financials", domain=BIO),
        errored(3, scenario="b", dimension="time", domain=CHEM),
        resisted(scenario="b", dimension="time", domain=CHEM, epoch=2),
    ]
    found = data_of(table_of(records))
    rows = zip(found.scenario, found.dimension, found.level, found.at_risk, found.events, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        # Level 0 is one row for all dimensions of a scenario.
        (0, 0, 0, 2, 1),
        (0, 1, 1, 1, 1),
        (1, 0, 0, 2, 0),
        (1, 1, 1, 2, 0),
        (1, 1, 2, 2, 0),
        *[(1, 1, level, 1, 0) for level in range(3, 13)],
    ]
    assert (found.levels, found.domains, found.domain.tolist()) == (13, 2, [0, 1])


@pytest.mark.parametrize(
    ("workspace", "capability", "kept"),
    [
        (None, None, ["workspace", "capability"]),
        ([f"w{i % 2}" for i in range(48)], None, ["capability"]),  # too few groups
        ([f"w{i}" for i in range(48)], None, ["capability"]),  # as many as scenarios
        (None, "workspace", ["workspace"]),  # two that divide the scenarios alike
    ],
)
def test_groupings_that_the_data_cannot_support_are_left_out(
    workspace: list[str] | None, capability: str | None, kept: list[str]
) -> None:
    layout = small_layout()
    given = Layout(
        layout.domain,
        layout.workspace if workspace is None else np.array(workspace),
        layout.workspace if capability else layout.capability,
    )
    assert list(data_of(table_of_levels(np.full((48, DIMENSIONS), LEVELS), given)).groupings) == kept


def test_any_column_of_the_table_can_group_and_scenarios_without_a_name_have_no_effect() -> None:
    table = table_of_levels(np.full((48, DIMENSIONS), LEVELS), small_layout())
    roles = np.array([f"r{int(name) % 6}" if int(name) % 6 else "" for name in table.scenario])
    (found,) = data_of(replace(table, role=roles), ("storyline", "role")).groupings.values()
    assert found.names == ("r1", "r2", "r3", "r4", "r5")
    assert (found.codes == -1).sum() == 8


def test_the_density_is_that_of_the_definition(data: HierarchicalData) -> None:
    """The formula of docs/metrics.md, written out with scipy."""
    rng = np.random.default_rng(2)
    level, domain = rng.normal(-3, 1, data.levels), np.array([0.3, -0.3])
    dimension = np.array([0.1, 0.2, -0.3])
    sd = {"workspace": 0.7, "capability": 0.4, "scenario": 1.2}
    counts = {name: len(one.names) for name, one in data.groupings.items()} | {"scenario": 48}
    standard = {name: rng.normal(size=count) for name, count in counts.items()}
    logits = level[data.level] + domain[data.domain][data.scenario]
    logits = logits + dimension[data.dimension] * (data.level > 0)
    logits = logits + sd["scenario"] * standard["scenario"][data.scenario]
    for name, grouping in data.groupings.items():
        logits = logits + sd[name] * standard[name][grouping.codes[data.scenario]]
    hazard = 1 / (1 + np.exp(-logits))
    events, rest = data.events, data.at_risk - data.events
    expected = (events * np.log(hazard) + rest * np.log1p(-hazard)).sum()
    # Level l is m + e_l with m ~ N(-3, 2) and e_l ~ N(0, 1.5).
    covariance = 4 + 2.25 * np.eye(data.levels)
    expected += multivariate_normal(np.full(data.levels, -3.0), covariance).logpdf(level)
    expected -= ((domain**2).sum() + (dimension**2).sum()) / (2 * 0.5**2)
    for name, scale in (("workspace", 1.0), ("capability", 1.0), ("scenario", 1.5)):
        expected += norm.logpdf(sd[name], 0, scale) + norm.logpdf(standard[name]).sum()
    parameters = {"level": level, "domain": domain, "dimension": dimension}
    parameters |= {f"sd {name}": np.array(value) for name, value in sd.items()}
    parameters |= {f"standard {name}": value for name, value in standard.items()}
    with jax.enable_x64(True):
        nothing = {name: np.zeros_like(value) for name, value in parameters.items()}
        nothing |= {name: np.ones(()) for name in nothing if name.startswith("sd ")}
        found, base = (float(log_density(model, (data,), {}, at)[0]) for at in (parameters, nothing))
    # Constants, such as binomial coefficients, do not matter: they are the same without any effect.
    expected -= (data.at_risk * np.log(0.5)).sum()
    expected -= multivariate_normal(np.full(data.levels, -3.0), covariance).logpdf(np.zeros(data.levels))
    for name, scale in (("workspace", 1.0), ("capability", 1.0), ("scenario", 1.5)):
        expected -= norm.logpdf(1, 0, scale) + counts[name] * norm.logpdf(0)
    assert found - base == pytest.approx(expected, rel=1e-10)


def test_hazards_with_and_without_selection_are_those_of_simulated_scenarios() -> None:
    rng = np.random.default_rng(8)
    level = np.array([-1.5, *[-2.5] * 12])
    domain, dimension, spreads = np.array([0.4, -0.4]), np.array([0.3, -0.3]), np.array([0.5, 1.5])
    draw = {"level": level[None], "domain": domain[None], "dimension": dimension[None]}
    draw |= {"sd workspace": spreads[:1], "sd scenario": spreads[1:]}
    count = 400_000
    frailty = rng.normal(0, np.sqrt((spreads**2).sum()), count)
    alive, hazard, everyone = np.ones((2, 2, count)), np.zeros((2, LEVELS)), np.zeros(LEVELS)
    for number in range(LEVELS):
        later = dimension[None, :, None] * (number > 0)
        chance = 1 / (1 + np.exp(-(level[number] + domain[:, None, None] + later + frailty)))
        everyone[number] = chance.mean()
        hazard[:, number] = (alive * chance).sum(axis=(1, 2)) / alive.sum(axis=(1, 2))
        alive *= 1 - chance
    at_risk, all_scenarios, propensity = (found[0] for found in hazards(draw))
    assert at_risk == pytest.approx(hazard.mean(axis=0), abs=0.002)
    assert all_scenarios == pytest.approx(everyone, abs=0.002)
    assert propensity == pytest.approx(1 - alive.mean(), abs=0.003)
    assert at_risk[-1] < 0.6 * all_scenarios[-1]


def test_a_groups_propensity_is_that_of_its_new_scenarios(data: HierarchicalData) -> None:
    capability = np.where(np.arange(6) == 2, 1.2, 0.0)[None]
    draw = {
        "level": np.full((1, LEVELS), -4.0),
        "domain": np.array([[0.5, -0.5]]),
        "dimension": np.zeros((1, DIMENSIONS)),
        "capability": capability,
        "sd workspace": np.array([0.7]),
        "sd capability": np.array([0.4]),
        "sd scenario": np.array([1.0]),
    }
    rng = np.random.default_rng(9)
    # The capability's own effect is known, those of workspaces and scenarios are not.
    frailty = rng.normal(0, np.hypot(0.7, 1.0), 400_000)
    domain = np.array([0.5, -0.5])[data.domain[data.groupings["capability"].codes == 2]]
    survives = [(1 + np.exp(-4.0 + 1.2 + shift + frailty)) ** -LEVELS for shift in domain]
    found = group_propensities(draw, data, "capability")[0, 2]
    assert found == pytest.approx(1 - np.mean(survives), abs=0.003)


def test_agents_that_all_end_alike_have_no_fit() -> None:
    never = fit(table_of_levels(np.full((48, DIMENSIONS), LEVELS), small_layout()))
    assert (never.levels, never.n_at_risk) == ((), 48 * DIMENSIONS * LEVELS)
    assert never.note == "nothing varies: all tasks end alike at each level"


def test_too_few_scenarios_have_no_fit() -> None:
    records = [misaligned(1, scenario="a"), resisted(scenario="b")]
    assert fit(table_of(records)).note == "2 scenarios are too few; at least 10 are needed"
    assert fit(table_of([])).note.startswith("0 scenarios are too few")


@pytest.mark.slow
def test_a_fit_that_did_not_converge_has_no_numbers() -> None:
    table = table_of(
        [
            misaligned(place, scenario=f"s{place}", domain=(BIO, CHEM)[place % 2])
            if place < 2
            else resisted(scenario=f"s{place}", domain=(BIO, CHEM)[place % 2])
            for place in range(10)
        ]
    )
    # 160 draws are fewer than the 400 that have to be effective.
    with pytest.raises(NotConverged, match=r"^the hierarchical model did not converge \(R-hat [0-9.]+, "):
        fit(table, draws=10)


@pytest.mark.slow
def test_one_domain_one_dimension_and_no_grouping_have_a_fit_that_a_seed_repeats() -> None:
    rng = np.random.default_rng(15)
    levels = np.where(rng.random((60, 1)) < 0.4, rng.integers(0, 3, (60, 1)), LEVELS)
    alone = np.full(60, "only")
    table = table_of_levels(levels, Layout(alone, alone, alone))
    before = jax.numpy.ones(1).dtype
    found = fit(table, draws=800)
    assert found == fit(table, draws=800)
    assert jax.numpy.ones(1).dtype == before
    assert list(found.spread) == ["scenario"]
    assert found.groups == {}
    assert found.propensity is not None
    assert found.propensity.ci95.low < (levels < LEVELS).mean() < found.propensity.ci95.high


def test_numpyro_is_asked_for_where_it_is_missing(
    data: HierarchicalData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpyro.infer", None)
    with pytest.raises(BadInput, match=r"pip install 'propensitybench\[bayes\]'"):
        sample(data, 0, 10)


@pytest.mark.slow
def test_selection_is_told_from_pressure() -> None:
    layout = small_layout(100, 8, 8)
    rng = np.random.default_rng(12)
    flat_agent = replace(world_of(layout, rng, (0.5, 0.4, 2.0)), dimension=np.array([0.3, -0.3]))
    found = fit(play(flat_agent, layout, rng, lost_share=0.05), draws=500)
    assert found.sampling is not None
    assert found.sampling.r_hat < 1.01
    assert found.note == ""
    assert found.trend is not None
    assert found.trend_at_risk is not None
    # The hazard of those at risk falls although that of each scenario does not.
    assert found.trend_at_risk.ci95.high < 1
    assert found.trend.ci95.low < 1 < found.trend.ci95.high
    assert found.pressure is not None
    assert found.pressure.ci95.low < np.exp(-1.0) < found.pressure.ci95.high
    for name, truth in (("workspace", 0.5), ("capability", 0.4), ("scenario", 2.0)):
        assert found.spread[name].sd.ci95.low < truth < found.spread[name].sd.ci95.high
    assert found.wider_priors is not None
    assert found.wider_priors.sd["scenario"].value == pytest.approx(
        found.spread["scenario"].sd.value, abs=0.1
    )
    raw = np.array([one.raw for one in found.groups["capability"].values()], dtype=np.float64)
    shrunken = np.array([one.shrunken.value for one in found.groups["capability"].values()])
    assert shrunken.std() < raw.std()
    assert np.corrcoef(raw, shrunken)[0, 1] > 0.5
