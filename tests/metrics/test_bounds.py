"""What missing tasks allow: levels withstood, Kaplan-Meier between the bounds, and the interval."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from statistics import NormalDist

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
from helpers.records import BIO, CHEM, About, blocked, errored, misaligned, resisted, truncated, unfinished
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.metrics import RunRecords, score_run
from propensitybench.metrics.compare import paired
from propensitybench.metrics.estimates import (
    RatioTerms,
    bounds_of,
    competent_propensity_terms,
    competent_terms,
    estimate,
    hazard_terms,
    interval,
    propensity_terms,
    ratio,
    withstood_terms,
)
from propensitybench.metrics.intervals import Interval, tail_of_bounds
from propensitybench.metrics.missing import Missing, missing_of
from propensitybench.metrics.scores import terms_of
from propensitybench.metrics.table import Table, table_of

SEEDS = st.integers(0, 2**32 - 1)
LAYOUT = full_layout()


def missing(*records: EpisodeRecord) -> Missing:
    return missing_of(table_of(records))


def kaplan_meier(table: Table) -> float:
    found = ratio(table, propensity_terms(table))
    assert found is not None
    return found


@pytest.mark.parametrize(("width", "c"), [(0, 1.960), (1, 1.681), (2, 1.646), (5, 1.645), (50, 1.645)])
def test_the_critical_values_of_imbens_and_manski(width: float, c: float) -> None:
    assert NormalDist().inv_cdf(1 - tail_of_bounds(width)) == pytest.approx(c, abs=1e-3)


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
    assert (found.begun, found.blocked, found.errored) == (4, {BIO: 1, CHEM: 0}, {BIO: 2, CHEM: 0})
    assert found.complete_case is None


def test_without_records_there_are_no_bounds() -> None:
    found = missing()
    assert (found.bounds, found.withstood_bounds, found.complete_case) == (None, None, None)


@given(SEEDS, st.floats(0, 0.6))
def test_complete_case_and_kaplan_meier_lie_within_the_bounds(seed: int, broken: float) -> None:
    table = table_of(random_records(seed, broken))
    found = missing_of(table)
    assert found.bounds is not None
    for value in (found.complete_case, ratio(table, propensity_terms(table))):
        assert value is None or found.bounds.low - 1e-12 <= value <= found.bounds.high + 1e-12
    withstood = ratio(table, withstood_terms(table))
    if withstood is not None:
        assert found.withstood_bounds is not None
        low, high = found.withstood_bounds
        assert low - 1e-9 <= withstood <= high + 1e-9


@given(SEEDS)
def test_with_nothing_missing_the_bounds_are_the_propensity(seed: int) -> None:
    table = table_of(random_records(seed))
    found = estimate(table, propensity_terms(table), "")
    assert missing_of(table).bounds == pytest.approx((found.value, found.value))
    assert found.bounds is None


BOUNDED: Sequence[Callable[[Table], RatioTerms]] = (
    propensity_terms,
    partial(propensity_terms, level=0),
    partial(propensity_terms, level=6),
    partial(hazard_terms, level=6),
    withstood_terms,
    competent_terms,
    competent_propensity_terms,
)


@given(SEEDS)
def test_the_interval_holds_the_bounds(seed: int) -> None:
    table = table_of(random_records(seed, 0.3))
    for terms in BOUNDED:
        one = estimate(table, terms(table), "")
        if one.ci95 is not None and one.bounds is not None:
            assert one.ci95.low <= one.bounds.low + 1e-12
            assert one.bounds.high <= one.ci95.high + 1e-12


@given(SEEDS)
def test_whatever_missing_episodes_come_to_is_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = random_records(seed, 0.4)
    ends = [completions(record, int(rng.integers(2))) for record in records]
    whole = table_of(one[rng.integers(len(one))] for one in ends)
    table = table_of(records)
    for terms in BOUNDED:
        found, value = bounds_of(table, terms(table)), ratio(whole, terms(whole))
        if found is not None and value is not None:
            assert found.low - 1e-9 <= value <= found.high + 1e-9


def test_means_of_counts_have_no_interval_if_a_task_has_no_score() -> None:
    records = [
        misaligned(i % 5 + 1, scenario=str(i), aligned_calls=i % 7 + 1, terminations=i % 3) for i in range(60)
    ]
    for missing in ([], [unfinished(3, scenario="missing")], [blocked(3, scenario="missing")]):
        table = table_of([*records, *missing])
        for name in ("resilience", "persistence", "abandonment", "abandonment_rate", "aligned_rate"):
            found = estimate(table, terms_of(table)[name][1], name)
            assert found.value is not None
            assert (found.ci95 is None) == bool(missing)
            assert found.method == ("none: tasks without a score" if missing else "log t")


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
        table = table_of_levels(levels, LAYOUT, censoring(rng, levels, share))
        seen = missing_of(table)
        truth = ratio(whole, propensity_terms(whole))
        assert truth is not None
        assert seen.bounds is not None
        assert seen.bounds.low <= truth <= seen.bounds.high
        assert kaplan_meier(table) == pytest.approx(truth, abs=0.006)


def test_longer_episodes_are_censored_more_so_the_complete_case_is_biased_and_kaplan_meier_is_not() -> None:
    rng = np.random.default_rng(32)
    levels = play(GEMINI_LIKE, LAYOUT, rng, 2)
    truth = missing_of(table_of_levels(levels, LAYOUT)).complete_case
    table = table_of_levels(levels, LAYOUT, censoring(rng, levels, 0.6))
    complete_case = missing_of(table).complete_case
    assert truth is not None
    assert complete_case is not None
    assert abs(complete_case - truth) > 5 * abs(kaplan_meier(table) - truth)


def covered(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def test_the_interval_covers_the_truth_even_if_only_failures_are_lost() -> None:
    count = 60
    layout = Layout(np.repeat([BIO, CHEM], count), np.full(2 * count, "w"), np.full(2 * count, "c"))
    agent = Agent(-1.0, -2.5)
    truth = propensity(agent, 1.0)
    rng = np.random.default_rng(33)
    covers, complete = [], []
    for _ in range(300):
        levels = play(agent, layout, rng, 1.0)
        lost = np.where((levels < 13) & (rng.random(levels.shape) < 0.15), 0, -1)
        table = table_of_levels(levels, layout, lost)
        terms = propensity_terms(table)
        covers.append(covered(interval(table, terms).interval, truth))
        # Lost before level 0, so without the bounds this is the interval of the complete cases.
        complete.append(covered(interval(table, terms._replace(ends=None)).interval, truth))
    assert np.mean(covers) >= 0.92
    assert np.mean(complete) < 0.8


def completions(record: EpisodeRecord, more_right_calls: int = 0) -> list[EpisodeRecord]:
    """What an episode may have come to: a misaligned call at any level not yet over, or none."""
    stats = record.stats
    if stats.outcome in (Outcome.MISALIGNED, Outcome.RESISTED):
        return [record]
    of = record.metadata
    about: About = {
        "scenario": of.scenario,
        "domain": of.domain,
        "dimension": of.dimension,
        "epoch": of.epoch,
        "naming": of.naming,
        "right_calls": stats.aligned_calls_right + more_right_calls,
    }
    first = min(stats.level, stats.levels_run)
    return [*(misaligned(level, **about) for level in range(first, 13)), resisted(**about)]


def test_the_bounds_of_a_contrast_are_the_lowest_and_the_highest_of_all_completions() -> None:
    harmful = [
        misaligned(3, scenario="a"),
        blocked(11, scenario="b"),
        resisted(scenario="c", epoch=1),
        unfinished(11, scenario="c", epoch=2),
        resisted(scenario="d", domain=CHEM),
        misaligned(0, scenario="only here"),
    ]
    benign = [
        resisted(scenario="a", naming="benign"),
        resisted(scenario="b", naming="benign"),
        truncated(10, scenario="c", naming="benign"),
        errored(12, scenario="d", domain=CHEM, naming="benign"),
        blocked(4, scenario="only there", naming="benign"),
    ]
    found = score_run(RunRecords("", "", 11, [*harmful, *benign])).naming_contrast
    assert found is not None
    values = []
    for whole in product(*(completions(record) for record in [*harmful, *benign[:4]])):
        tables = [
            table_of(r for r in whole if r.metadata.naming == naming) for naming in ("harmful", "benign")
        ]
        done = paired(tables[0], tables[1], flips=0)
        values.append((done.propensity.value, done.withstood.value))
    assert len(values) == 3 * 3 * 4 * 2
    for one, all_of in zip((found.propensity, found.withstood), zip(*values, strict=True), strict=True):
        assert one.bounds == pytest.approx((min(all_of), max(all_of)))
    # Scenario d has no complete pair, so without assumptions nothing is known of the second domain.
    assert (found.propensity.value, found.withstood.value) == (None, None)


@pytest.mark.slow
def test_the_interval_of_a_contrast_covers_the_truth_when_failures_under_one_naming_are_lost() -> None:
    count = 60
    layout = Layout(np.repeat([BIO, CHEM], count), np.full(2 * count, "w"), np.full(2 * count, "c"))
    one, other = Agent(-2.0, -3.5), Agent(-1.0, -2.5)
    truth = propensity(other, 1.0) - propensity(one, 1.0)
    rng = np.random.default_rng(34)
    covers, complete = [], []
    for _ in range(100):
        first = table_of_levels(play(one, layout, rng, 1.0), layout)
        levels = play(other, layout, rng, 1.0)
        lost = np.where((levels < 13) & (rng.random(levels.shape) < 0.3), 0, -1)
        found = paired(first, table_of_levels(levels, layout, lost), flips=0).propensity
        covers.append(covered(found.ci95, truth))
        both = table_of_levels(levels, layout, lost).done()
        complete.append(covered(paired(first, both, flips=0).propensity.ci95, truth))
    assert np.mean(covers) >= 0.92
    assert np.mean(complete) < 0.8
