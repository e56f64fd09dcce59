"""The same tasks twice: differences, and permutation tests."""

from itertools import product
from math import comb, hypot

import numpy as np
import pytest
from helpers.populations import O3_LIKE, Agent, Layout, full_layout, play, table_of_levels
from helpers.random_records import random_records
from helpers.records import BIO, CHEM, errored, misaligned, resisted
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics import RunRecords, score_run
from propensitybench.metrics.arrays import Flags
from propensitybench.metrics.compare import Contrast, paired, shuffle, sign_flip
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.table import Table, table_of
from propensitybench.taxonomy import Naming

SEEDS = st.integers(0, 2**32 - 1)
SMALL = Layout(np.repeat([BIO, CHEM], 15), np.full(30, "w"), np.full(30, "c"))


def contrast(first: list[EpisodeRecord], second: list[EpisodeRecord]) -> Contrast:
    return paired(table_of(first), table_of(second))


def test_each_side_of_a_difference_is_weighted_for_its_own_missing_tasks() -> None:
    first = [resisted(scenario="a"), resisted(scenario="b"), misaligned(2, scenario="c")]
    second = [
        misaligned(4, scenario="a"),
        resisted(scenario="b"),
        errored(scenario="c"),
        resisted(scenario="d"),
    ]
    found = contrast(first, second)
    # Of the tasks a, b and c of both, the first ended one of three misaligned, the second one of two.
    assert found.propensity.value == pytest.approx(1 / 2 - 1 / 3)
    assert found.withstood.value == pytest.approx((4 + 13) / 2 - (13 + 13 + 2) / 3)
    assert found.propensity.bounds == pytest.approx((1 / 3 - 1 / 3, 2 / 3 - 1 / 3))
    assert (found.only_first, found.only_second) == (1, 1)
    assert found.propensity.n == 3


@given(SEEDS, st.floats(0, 0.9), st.floats(0, 0.9))
def test_a_difference_lies_within_its_bounds_and_its_interval(seed: int, lost: float, more: float) -> None:
    found = contrast(random_records(seed, lost), random_records(seed + 1, more))
    for one in found.propensity, found.withstood:
        for ends in (one.bounds, one.ci95):
            if one.value is not None and ends is not None:
                assert ends.low - 1e-9 <= one.value <= ends.high + 1e-9


@given(SEEDS, st.floats(0, 0.9))
def test_a_part_lies_within_its_bounds(seed: int, lost: float) -> None:
    for part in table_of(random_records(seed, lost)).parts("workspace").values():
        found = estimate(part, propensity_terms(part), "")
        if found.value is not None and found.bounds is not None:
            assert found.bounds.low - 1e-9 <= found.value <= found.bounds.high + 1e-9


def test_the_error_is_of_differences_within_scenarios() -> None:
    # Very different scenarios, hardly different namings: differences 1, 0, 0, 0.
    first = [misaligned(0, scenario=name) for name in "ab"] + [resisted(scenario=name) for name in "cd"]
    second = [*first[:3], misaligned(0, scenario="d")]
    found = contrast(first, second)
    assert found.propensity.value == 0.25
    assert found.propensity.errors.scenario == pytest.approx(0.25)


def test_pairing_is_worth_having_where_scenarios_matter() -> None:
    rng = np.random.default_rng(3)
    frailty_seed = rng.integers(2**32)
    layout = full_layout()
    one, other = (
        table_of_levels(play(agent, layout, np.random.default_rng(frailty_seed), 2.5), layout)
        for agent in (Agent(-1, -2), Agent(0, -1))
    )
    errors = [estimate(table, propensity_terms(table), "").errors.scenario or 0 for table in (one, other)]
    apart = hypot(*errors)
    together = paired(one, other, flips=0).propensity.errors.scenario
    assert together is not None
    assert together < 0.8 * apart


@given(SEEDS)
def test_the_order_of_the_records_does_not_matter(seed: int) -> None:
    first, second = random_records(seed, 0.2), random_records(seed + 1, 0.2)
    other = contrast(first[::-1], second[::-1])
    ours = contrast(first, second)
    assert ours.p == other.p
    assert ours.propensity.value == pytest.approx(other.propensity.value, abs=1e-12)
    assert ours.withstood.errors.scenario == pytest.approx(other.withstood.errors.scenario, abs=1e-12)


@given(SEEDS)
def test_the_other_way_round_it_is_the_negative(seed: int) -> None:
    first, second = random_records(seed, 0.2), random_records(seed + 1, 0.2)
    ours, other = contrast(first, second), contrast(second, first)
    assert ours.p == other.p
    if ours.propensity.value is not None:
        assert other.propensity.value == pytest.approx(-ours.propensity.value, abs=1e-12)
        assert -1 <= ours.propensity.value <= 1
    if ours.propensity.ci95 is not None:
        assert other.propensity.ci95 is not None
        low, high = other.propensity.ci95
        assert (-high, -low) == pytest.approx(ours.propensity.ci95, abs=1e-12)


@given(SEEDS)
def test_the_same_episodes_twice_show_nothing(seed: int) -> None:
    records = random_records(seed)
    found = contrast(records, records)
    assert (found.p, found.propensity.value, found.withstood.value) == (1.0, 0.0, 0.0)


def test_without_a_common_task_nothing_is_compared() -> None:
    found = contrast([resisted(scenario="a")], [resisted(scenario="b")])
    assert (found.p, found.propensity.value, found.only_first, found.only_second) == (None, None, 1, 1)


def test_swapping_the_namings_turns_the_sign() -> None:
    def run(harmful: str, benign: str) -> float | None:
        failing: dict[Naming, str] = {"harmful": harmful, "benign": benign}
        records = [
            misaligned(1, scenario=s, naming=naming) if s in which else resisted(scenario=s, naming=naming)
            for naming, which in failing.items()
            for s in "abcd"
        ]
        found = score_run(RunRecords("f", "m", 8, records)).naming_contrast
        assert found is not None
        return found.propensity.value

    assert run("a", "abc") == 0.5
    assert run("abc", "a") == -0.5


def test_the_sign_flip_by_hand() -> None:
    # Four scenarios, each one level worse: of 16 sign vectors, the two with all signs alike are as extreme.
    first = [misaligned(5, scenario=name) for name in "abcd"]
    second = [misaligned(4, scenario=name) for name in "abcd"]
    assert contrast(first, second).p_withstood == 2 / 16
    assert contrast(first, second).p == 1.0  # the propensity is the same


def test_the_tasks_of_a_scenario_flip_together() -> None:
    first = [misaligned(5, scenario=s, dimension=d) for s in "ab" for d in ("time", "financials", "x", "y")]
    second = [misaligned(4, scenario=s, dimension=d) for s in "ab" for d in ("time", "financials", "x", "y")]
    assert contrast(first, second).p_withstood == 2 / 4


def test_the_p_value_of_the_propensity_is_that_of_its_differences() -> None:
    # One scenario gives in later, three no longer: of 8 sign vectors of those three, two are as extreme.
    first = [misaligned(5, scenario=name) for name in "abcd"]
    second = [misaligned(12, scenario="a"), *(resisted(scenario=name) for name in "bcd")]
    found = contrast(first, second)
    assert (found.propensity.value, found.p) == (-0.75, 2 / 8)
    assert (found.withstood.value, found.p_withstood) == ((7 + 3 * 8) / 4, 2 / 16)


def test_a_single_scenario_that_differs_shows_nothing() -> None:
    first = [misaligned(12, scenario=name) for name in "abcd"]
    assert contrast(first, [misaligned(0, scenario="a"), *first[1:]]).p == 1.0


def test_a_random_sign_flip_is_that_of_its_seed_and_near_the_exact_one() -> None:
    differences = np.array([3.0, 1.0, -2.0, 5.0, 0.0, 2.0, 4.0, -1.0, 2.0, 2.0])
    table = table_of([resisted(scenario=f"s{i}") for i in range(len(differences))])
    signs = np.array(list(product((-1, 1), repeat=len(differences))))
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()))
    assert sign_flip(table, differences) == exact
    once, again, other = (sign_flip(table, differences, flips=400, seed=seed) for seed in (1, 1, 2))
    assert once == again != other
    # (1 + b) / (1 + B) with B = 400, within four standard errors.
    assert once == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 400))
    assert once is not None
    assert once * 401 == pytest.approx(round(once * 401))


def test_by_chance_alone_every_p_is_as_likely() -> None:
    rng = np.random.default_rng(12)
    p = []
    for _ in range(500):
        table = table_of_levels(play(Agent(-1, -2), SMALL, rng, 1), SMALL)
        scenario = np.unique(table.scenario, return_inverse=True)[1]
        # Exchangeable under the hypothesis: a sign for each scenario, noise for each of its tasks.
        differences = rng.normal(size=30)[scenario] + rng.normal(size=len(table))
        found = sign_flip(table, differences, flips=400, seed=int(rng.integers(2**32)))
        assert found is not None
        p.append(found)
    assert kstest(p, "uniform").pvalue > 0.001


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(13)
    layout = full_layout()
    one, other = (table_of_levels(play(a, layout, rng, 1), layout) for a in (O3_LIKE, Agent(-4.0, -5.3)))
    assert paired(one, other).p == pytest.approx(1 / 10_001)


def cells(failing: int, of: int, among: int) -> tuple[Table, Flags]:
    """So many failing scenarios, all of them among the first few of one domain."""
    records = [
        misaligned(1, scenario=f"s{i:02}") if i < failing else resisted(scenario=f"s{i:02}")
        for i in range(among)
    ]
    table = table_of(records)
    return table, np.array([int(name[1:]) < of for name in table.scenario])


def test_the_shuffle_by_hand() -> None:
    # Two of six scenarios fail, both among the three in question. Two-sided: both inside or both outside.
    table, inside = cells(failing=2, of=3, among=6)
    assert shuffle(table, inside) == pytest.approx(2 * comb(4, 1) / comb(6, 3), abs=0.02)


def test_scenarios_that_never_gave_in_are_no_proof_by_themselves() -> None:
    table, inside = cells(failing=2, of=50, among=60)
    assert shuffle(table, ~inside) > 0.5


def test_the_shuffle_holds_its_level_where_failures_are_rare() -> None:
    layout = Layout(np.full(60, BIO), np.full(60, "w"), np.repeat(["c", "rest"], [13, 47]))
    rng = np.random.default_rng(14)
    p = []
    for _ in range(400):
        table = table_of_levels(play(Agent(-7.0, -8.0), layout, rng, 2), layout)
        p.append(shuffle(table, table.capability == "c", draws=500))
    assert np.mean(np.array(p) <= 0.05) <= 0.085
