"""The hierarchical model: its data, derivatives, integrals and checks, and what it tells of known agents."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted

from propensitybench.errors import NotConverged
from propensitybench.metrics.hierarchical import fit
from propensitybench.metrics.hierarchical_checks import bulk_ess, r_hat
from propensitybench.metrics.hierarchical_design import HierarchicalData, design_of
from propensitybench.metrics.hierarchical_sampler import Sampler
from propensitybench.metrics.hierarchical_summary import Parameters, curves, group_propensities
from propensitybench.metrics.hierarchical_target import NormalParameters, Target
from propensitybench.metrics.table import LEVELS, table_of
from validation.hierarchical import play, replicates, small_layout, world_of, world_of_priors
from validation.populations import Layout, table_of_levels

DIMENSIONS = 3


@pytest.fixture(scope="module")
def design() -> HierarchicalData:
    rng = np.random.default_rng(1)
    layout = small_layout()
    return design_of(play(world_of_priors(layout, rng, DIMENSIONS), layout, rng))


def effects(design: HierarchicalData, seed: int) -> NormalParameters:
    rng = np.random.default_rng(seed)
    start = Target(design).start(0.8)
    noise = NormalParameters(*(rng.normal(0, 0.5, len(one)) for one in start))
    return start.plus(1.0, noise)


def flat(at: NormalParameters) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.concatenate(at)


def unflat(values: np.ndarray[tuple[int], np.dtype[np.float64]], like: NormalParameters) -> NormalParameters:
    return NormalParameters(*np.split(values, np.cumsum([len(one) for one in like])[:-1]))


# The data


def test_episodes_are_at_risk_up_to_the_level_at_which_they_were_lost() -> None:
    records = [
        misaligned(1, scenario="a", dimension="time", domain=BIO),
        misaligned(0, scenario="a", dimension="financials", domain=BIO),
        errored(3, scenario="b", dimension="time", domain=CHEM),
        resisted(scenario="b", dimension="time", domain=CHEM, epoch=2),
    ]
    found = design_of(table_of(records))
    later = [found.met[:, 1:].reshape(2, 2, 12), found.ends[:, 1:].reshape(2, 2, 12)]
    # Episodes of scenario a under its dimensions, financials and time, then of b.
    assert later[0].sum(axis=2).tolist() == [[0, 1], [0, 2 + 12]]
    assert later[1].sum(axis=2).tolist() == [[0, 1], [0, 0]]
    assert later[0][1, 1].tolist() == [2, 2, *[1] * 10]
    assert found.ends[:, 0].tolist() == [1, 0]
    # Level 0 is one cell for all dimensions of a scenario.
    assert found.met[:, 0].tolist() == [2, 2]
    assert found.met.shape == (2, 1 + 2 * 12)
    assert [found.domains[place] for place in found.domain] == [BIO, CHEM]


def test_groupings_that_the_data_cannot_support_are_left_out() -> None:
    levels = np.full((48, DIMENSIONS), LEVELS)
    layout = small_layout()
    assert [one.column for one in design_of(table_of_levels(levels, layout)).groupings] == [
        "workspace",
        "capability",
    ]
    few = Layout(layout.domain, layout.domain, layout.capability)
    assert [one.column for one in design_of(table_of_levels(levels, few)).groupings] == ["capability"]
    same = Layout(layout.domain, layout.workspace, layout.workspace)
    assert [one.column for one in design_of(table_of_levels(levels, same)).groupings] == ["workspace"]
    alone = Layout(layout.domain, np.array([f"w{i}" for i in range(48)]), layout.capability)
    assert [one.column for one in design_of(table_of_levels(levels, alone)).groupings] == ["capability"]


def test_any_column_of_the_table_can_group_and_scenarios_without_a_name_have_no_effect() -> None:
    levels = np.full((48, DIMENSIONS), LEVELS)
    table = table_of_levels(levels, small_layout())
    roles = np.array([f"r{int(name) % 6}" if int(name) % 6 else "" for name in table.scenario])
    (found,) = design_of(replace(table, role=roles), ("storyline", "role")).groupings
    assert (found.column, found.names) == ("role", ("r1", "r2", "r3", "r4", "r5"))
    assert (found.codes == -1).sum() == 8


# The posterior density


def test_the_density_is_that_of_its_definition(design: HierarchicalData) -> None:
    at, target = effects(design, 2), Target(design)
    spreads = at.spread * [1.0, 1.0, 1.5]
    logits = -3.0 + design.by_cell @ at.cell
    own = spreads[-1] * at.scenario
    for place, grouping in enumerate(design.groupings):
        own = own + spreads[place] * at.group[design.grouping_of == place][grouping.codes]
    own = own + design.by_scenario[:, design.grouping_of < 0] @ at.group[design.grouping_of < 0]
    hazard = 1 / (1 + np.exp(-(logits + own[:, None])))
    likelihood = design.ends * np.log(hazard) + (design.met - design.ends) * np.log1p(-hazard)
    assert target.density(at) == pytest.approx(likelihood.sum() - (flat(at) ** 2).sum() / 2, rel=1e-10)


def test_the_gradient_is_that_of_the_density(design: HierarchicalData) -> None:
    at, target = effects(design, 3), Target(design)
    gradient, point, step = flat(target.gradient(at)), flat(at), 1e-5
    for place in range(len(point)):
        ends = [
            target.density(unflat(point + sign * step * np.eye(len(point))[place], at)) for sign in (-1, 1)
        ]
        assert gradient[place] == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-4)


def test_the_scale_of_the_momentum_is_the_inverse_of_the_curvature(design: HierarchicalData) -> None:
    at, target = effects(design, 4), Target(design)
    deviation = np.array([0.3, 0.4, 0.5])
    curvature = target.curvature(at, deviation)
    point, step = flat(at), 1e-5
    count = len(point) - 3  # all but the spreads
    hessian = np.array(
        [
            flat(target.gradient(unflat(point - step * one, at)))[:count]
            - flat(target.gradient(unflat(point + step * one, at)))[:count]
            for one in np.eye(len(point))[:count]
        ]
    ) / (2 * step)
    for place in range(len(point)):
        one = unflat(np.eye(len(point))[place], at)
        inverse = flat(curvature.root(curvature.transposed(one)))
        if place < count:
            assert hessian @ inverse[:count] == pytest.approx(np.eye(count)[place], abs=1e-4)
        else:
            expected = np.eye(len(point))[place] * deviation[place - count] ** 2
            assert inverse == pytest.approx(expected, rel=1e-5)


def test_the_mode_has_no_gradient(design: HierarchicalData) -> None:
    target = Target(design)
    mode, _ = target.mode(target.start(0.7), np.full(3, 0.3))
    slope = target.gradient(mode)
    assert max(np.abs(one).max() for one in slope[:3]) < 1e-3


# The sampler


def test_equal_seeds_give_equal_draws_in_one_part_or_two(design: HierarchicalData) -> None:
    once, parts, other = (Sampler(design, seed, chains=2) for seed in (5, 5, 6))
    for sampler in (once, parts, other):
        sampler.run(20, warm_up=10)
    parts.run(20)
    once.run(20)
    assert np.array_equal(once.draws().spreads, parts.draws().spreads)
    assert not np.array_equal(once.draws().cells[:, :20], other.draws().cells)
    assert once.draws().cells.shape[:2] == (2, 40)
    assert (once.draws().spreads > 0).all()


def test_progress_rises_to_one(design: HierarchicalData) -> None:
    told: list[float] = []
    Sampler(design, 7, chains=1).run(60, told.append, warm_up=10)
    assert told == sorted(told)
    assert told[-1] == 1


# The integrals


def test_hazards_with_and_without_selection_are_those_of_simulated_scenarios() -> None:
    rng = np.random.default_rng(8)
    level = np.array([-1.5, *[-2.5] * 12])
    domain, dimension, spreads = np.array([0.4, -0.4]), np.array([0.3, -0.3]), np.array([0.5, 1.5])
    draw = Parameters(level[None], domain[None], dimension[None], (np.zeros((1, 5)),), spreads[None])
    count = 400_000
    frailty = rng.normal(0, np.sqrt((spreads**2).sum()), count)
    alive, hazard, everyone = np.ones((2, 2, count)), np.zeros((2, LEVELS)), np.zeros(LEVELS)
    for number in range(LEVELS):
        later = dimension[None, :, None] * (number > 0)
        chance = 1 / (1 + np.exp(-(level[number] + domain[:, None, None] + later + frailty)))
        everyone[number] = chance.mean()
        hazard[:, number] = (alive * chance).sum(axis=(1, 2)) / alive.sum(axis=(1, 2))
        alive *= 1 - chance
    found = curves(draw)
    assert found.at_risk[0] == pytest.approx(hazard.mean(axis=0), abs=0.002)
    assert found.everyone[0] == pytest.approx(everyone, abs=0.002)
    assert found.average[0] == pytest.approx(1 / (1 + np.exp(-level)), abs=1e-12)
    assert found.propensity[0] == pytest.approx(1 - alive.mean(), abs=0.003)
    assert found.at_risk[0][-1] < 0.6 * found.everyone[0][-1]


def test_a_groups_propensity_is_that_of_its_new_scenarios(design: HierarchicalData) -> None:
    level, spreads = np.full(LEVELS, -4.0), np.array([0.7, 0.4, 1.0])
    groups = tuple(np.zeros((1, len(one.names))) for one in design.groupings)
    groups[1][0, 2] = 1.2
    dimension = np.zeros((1, DIMENSIONS))
    draw = Parameters(level[None], np.array([[0.5, -0.5]]), dimension, groups, spreads[None])
    rng = np.random.default_rng(9)
    # The capability's own effect is known, those of workspaces and scenarios are not.
    frailty = rng.normal(0, np.hypot(0.7, 1.0), 400_000)
    domain = np.array([0.5, -0.5])[design.domain[design.groupings[1].codes == 2]]
    survives = [(1 + np.exp(-4.0 + 1.2 + shift + frailty)) ** -LEVELS for shift in domain]
    found = group_propensities(draw, design, 1)[0, 2]
    assert found == pytest.approx(1 - np.mean(survives), abs=0.003)


# The checks


def test_effective_draws_are_those_of_known_chains() -> None:
    rng = np.random.default_rng(10)
    independent = rng.normal(size=(4, 1000))
    assert bulk_ess(independent) == pytest.approx(4000, rel=0.15)
    correlated = np.zeros((4, 4000))
    for place in range(1, 4000):
        correlated[:, place] = 0.8 * correlated[:, place - 1] + rng.normal(size=4)
    assert bulk_ess(correlated) == pytest.approx(16_000 * 0.2 / 1.8, rel=0.25)
    assert bulk_ess(np.exp(3 * independent)) == bulk_ess(independent)  # ranks only


def test_r_hat_finds_a_chain_in_another_place_or_of_another_width() -> None:
    rng = np.random.default_rng(11)
    chains = rng.normal(size=(4, 1000))
    assert r_hat(chains) < 1.01
    assert r_hat(chains + np.array([[0], [0], [0], [1]])) > 1.05
    assert r_hat(chains * np.array([[1], [1], [1], [3]])) > 1.05


# The fit


def test_agents_that_all_end_alike_have_no_fit() -> None:
    never = fit(table_of_levels(np.full((48, DIMENSIONS), LEVELS), small_layout()))
    assert (never.levels, never.met) == ((), 48 * DIMENSIONS * LEVELS)
    assert never.note == "nothing varies: all tasks end alike at each level"


def test_too_few_scenarios_have_no_fit() -> None:
    records = [misaligned(1, scenario="a"), resisted(scenario="b")]
    assert fit(table_of(records)).note == "2 scenarios are too few; at least 10 are needed"
    assert fit(table_of([])).note.startswith("0 scenarios are too few")


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
def test_selection_is_told_from_pressure() -> None:
    layout = small_layout(400, 16, 16)
    rng = np.random.default_rng(12)
    flat_agent = world_of(layout, rng, (0.5, 0.4, 2.0))
    found = fit(play(flat_agent, layout, rng, lost_share=0.05), draws=350)
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


@pytest.mark.slow
def test_a_small_run_is_not_drawn_towards_the_priors() -> None:
    """Independent intercepts of levels, centred at 12 %, gave a propensity near 50 % here."""
    layout = small_layout(150)
    rng = np.random.default_rng(13)
    world = world_of(layout, rng, (0.0, 0.0, 0.5))
    for draws, truth in replicates(layout, 3, 14, world=replace(world, dimension=np.zeros(1))):
        low, middle, high = np.quantile(draws["propensity"], [0.025, 0.5, 0.975])
        assert low < truth["propensity"] < high
        assert middle < 2 * truth["propensity"]
