"""What missing tasks allow: levels withstood, Kaplan-Meier between the bounds, and the publication rule."""

import numpy as np
import pytest
from helpers.populations import (
    GEMINI_LIKE,
    O3_LIKE,
    Agent,
    Layout,
    full_layout,
    play,
    propensity,
    table_of_levels,
)
from helpers.random_records import random_records
from helpers.records import BIO, CHEM, blocked, errored, misaligned, resisted
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.estimates import interval, propensity_terms, ratio
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.missing import Missing, critical_value, missing_of
from propensitybench.metrics.scores import score_naming
from propensitybench.metrics.survival import survival_of
from propensitybench.metrics.table import Table, table_of

SEEDS = st.integers(0, 2**32 - 1)
LAYOUT = full_layout()
# For tests that do not use Kaplan-Meier.
NO_SURVIVAL = survival_of(table_of([]))


def missing(*records: EpisodeRecord) -> Missing:
    table = table_of(records)
    return missing_of(table, survival_of(table))


def of(table: Table) -> Missing:
    return missing_of(table, survival_of(table))


@pytest.mark.parametrize(("width", "c"), [(0, 1.960), (1, 1.681), (2, 1.646), (5, 1.645), (50, 1.645)])
def test_the_critical_values_of_imbens_and_manski(width: float, c: float) -> None:
    assert critical_value(width) == pytest.approx(c, abs=1e-3)


def test_levels_withstood_lie_between_failing_at_once_and_lasting_to_the_end() -> None:
    found = missing(
        misaligned(5, scenario="a"),
        resisted(scenario="b"),
        errored(4, scenario="c"),  # levels 0 to 3 are completed
        blocked(scenario="d"),
    )
    assert found.withstood_bounds == pytest.approx(((5 + 13 + 4 + 0) / 4, (5 + 13 + 13 + 13) / 4))


def test_epochs_without_a_score_count_as_their_part_of_the_task() -> None:
    found = missing(
        misaligned(6, scenario="a", epoch=1), errored(2, scenario="a", epoch=2), resisted(scenario="b")
    )
    assert found.withstood_bounds == pytest.approx(((4 + 13) / 2, (9.5 + 13) / 2))


def test_missing_episodes_are_counted_by_domain_and_reason() -> None:
    found = missing(
        blocked(domain=BIO, scenario="a"),
        errored(domain=BIO, scenario="b"),
        errored(domain=BIO, scenario="c"),
        resisted(domain=CHEM, scenario="d"),
    )
    assert (found.planned, found.blocked, found.errored) == (4, {BIO: 1, CHEM: 0}, {BIO: 2, CHEM: 0})
    assert found.complete_case is None


@pytest.mark.parametrize(("lost", "headline"), [(0, "complete case"), (1, "complete case"), (2, "interval")])
def test_one_percentage_point_may_be_missing(lost: int, headline: str) -> None:
    records = [misaligned(1, scenario=f"s{i}") for i in range(50)]
    records += [resisted(scenario=f"s{i}") for i in range(50, 100 - lost)]
    records += [errored(scenario=f"s{i}") for i in range(100 - lost, 100)]
    assert missing(*records).headline == headline


def test_without_records_there_is_no_headline() -> None:
    found = missing()
    assert (found.headline, found.bounds, found.bounds_interval, found.kaplan_meier) == ("none", *[None] * 3)


@given(SEEDS, st.floats(0, 0.6))
def test_complete_case_and_kaplan_meier_lie_within_the_bounds(seed: int, broken: float) -> None:
    table = table_of(random_records(seed, broken))
    found, survival = of(table), survival_of(table)
    assert found.bounds is not None
    for value in (found.complete_case, found.kaplan_meier):
        assert value is None or found.bounds.low - 1e-12 <= value <= found.bounds.high + 1e-12
    if survival.withstood is not None:
        assert found.withstood_bounds is not None
        low, high = found.withstood_bounds
        assert low - 1e-9 <= survival.withstood <= high + 1e-9


@given(SEEDS)
def test_with_nothing_missing_the_interval_is_that_of_the_propensity(seed: int) -> None:
    scores = score_naming(random_records(seed))
    assert scores.missing.bounds == pytest.approx((scores.propensity, scores.propensity))
    assert (scores.missing.bounds_interval is None) == (scores.ci95 is None)
    if scores.ci95 is not None:
        assert scores.missing.bounds_interval == pytest.approx(scores.ci95, abs=1e-9)


@given(SEEDS)
def test_the_interval_of_the_bounds_holds_the_bounds(seed: int) -> None:
    found = missing(*random_records(seed, 0.3))
    if found.bounds_interval is not None:
        assert found.bounds is not None
        assert found.bounds_interval.low <= found.bounds.low + 1e-12
        assert found.bounds.high <= found.bounds_interval.high + 1e-12


def censoring(rng: np.random.Generator, levels: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Levels completed before random censoring, -1 where the episode ended first."""
    broken = rng.integers(0, 13, levels.shape)
    return np.where((rng.random(levels.shape) < share) & (broken <= np.minimum(levels, 12)), broken, -1)


@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_random_censoring_leaves_the_truth_within_the_bounds_and_kaplan_meier_near_it(agent: Agent) -> None:
    rng = np.random.default_rng(31)
    for share in (0.0, 0.02, 0.05, 0.1):
        levels = play(agent, LAYOUT, rng, 2)
        whole = table_of_levels(levels, LAYOUT)
        seen = of(table_of_levels(levels, LAYOUT, censoring(rng, levels, share)))
        truth = ratio(whole, propensity_terms(whole))
        assert truth is not None
        assert seen.bounds is not None
        assert seen.bounds.low <= truth <= seen.bounds.high
        assert seen.kaplan_meier == pytest.approx(truth, abs=0.006)


def test_longer_episodes_are_censored_more_so_the_complete_case_is_biased_and_kaplan_meier_is_not() -> None:
    rng = np.random.default_rng(32)
    levels = play(GEMINI_LIKE, LAYOUT, rng, 2)
    truth = of(table_of_levels(levels, LAYOUT)).complete_case
    seen = of(table_of_levels(levels, LAYOUT, censoring(rng, levels, 0.6)))
    assert truth is not None
    assert seen.complete_case is not None
    assert seen.kaplan_meier is not None
    assert abs(seen.complete_case - truth) > 5 * abs(seen.kaplan_meier - truth)


def covered(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def test_the_interval_of_the_bounds_covers_the_truth_even_if_only_failures_are_lost() -> None:
    count = 60
    layout = Layout(np.repeat([BIO, CHEM], count), np.full(2 * count, "w"), np.full(2 * count, "c"))
    agent = Agent(-1.0, -2.5)
    truth = propensity(agent, 1.0)
    rng = np.random.default_rng(33)
    with_bounds, complete = [], []
    for _ in range(300):
        levels = play(agent, layout, rng, 1.0)
        lost = np.where((levels < 13) & (rng.random(levels.shape) < 0.15), 0, -1)
        table = table_of_levels(levels, layout, lost)
        with_bounds.append(covered(missing_of(table, NO_SURVIVAL).bounds_interval, truth))
        complete.append(covered(interval(table, propensity_terms(table)), truth))
    assert np.mean(with_bounds) >= 0.92
    assert np.mean(complete) < 0.8
