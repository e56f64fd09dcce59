"""The same tasks twice: differences, and permutation tests."""

from itertools import product
from math import comb

import numpy as np
import pytest
from helpers.random_records import random_records
from helpers.records import BIO, CHEM, misaligned, resisted
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.arrays import Flags
from propensitybench.metrics.compare import Contrast, paired, shuffle, sign_flip
from propensitybench.metrics.table import Table, table_of
from validation.populations import Agent, Layout, play, table_of_levels

SEEDS = st.integers(0, 2**32 - 1)
SMALL = Layout(np.repeat([BIO, CHEM], 15), np.full(30, "w"), np.full(30, "c"))


def contrast(first: list[EpisodeRecord], second: list[EpisodeRecord]) -> Contrast:
    return paired(table_of(first), table_of(second))


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


def test_a_single_scenario_that_differs_shows_nothing() -> None:
    first = [misaligned(12, scenario=name) for name in "abcd"]
    assert contrast(first, [misaligned(0, scenario="a"), *first[1:]]).p == 1.0


def test_a_random_sign_flip_is_that_of_its_seed_and_near_the_exact_one() -> None:
    differences = np.array([3.0, 1.0, -2.0, 5.0, 0.0, 2.0, 4.0, -1.0, 2.0, 2.0])
    table = table_of([resisted(scenario=f"s{i}") for i in range(len(differences))])
    signs = np.array(list(product((-1, 1), repeat=len(differences))))
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()))
    sample = table.sample()
    assert sign_flip(sample, differences, np.random.default_rng(0)) == exact
    once, again, other = (sign_flip(sample, differences, np.random.default_rng(s), 400) for s in (1, 1, 2))
    assert once == again != other
    # (1 + b) / (1 + B) with B = 400, within four standard errors.
    assert once == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 400))
    assert once * 401 == pytest.approx(round(once * 401))


def test_by_chance_alone_every_p_is_as_likely() -> None:
    rng = np.random.default_rng(12)
    p = []
    for _ in range(500):
        table = table_of_levels(play(Agent(-1, -2), SMALL, rng, 1), SMALL)
        scenario = np.unique(table.scenario, return_inverse=True)[1]
        # Exchangeable under the hypothesis: a sign for each scenario, noise for each of its tasks.
        differences = rng.normal(size=30)[scenario] + rng.normal(size=len(table))
        p.append(sign_flip(table.sample(), differences, rng, 400))
    assert kstest(p, "uniform").pvalue > 0.001


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
