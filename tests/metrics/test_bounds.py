"""What missing tasks allow: levels withstood, Kaplan-Meier between the bounds, and the interval."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from helpers.random_records import random_records
from helpers.records import BIO, CHEM, About, blocked, errored, misaligned, resisted, truncated, unfinished
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.metrics import RunRecords, score_run
from propensitybench.metrics.compare import paired
from propensitybench.metrics.estimates import (
    competent_propensity_terms,
    competent_terms,
    estimate,
    hazard_terms,
    propensity_terms,
    withstood_terms,
)
from propensitybench.metrics.intervals import tail_of_bounds
from propensitybench.metrics.measures import MEASURES
from propensitybench.metrics.missing import Missing, missing_of
from propensitybench.metrics.table import Table, table_of
from propensitybench.metrics.terms import Terms

SEEDS = st.integers(0, 2**32 - 1)


def missing(*records: EpisodeRecord) -> Missing:
    return missing_of(table_of(records))


@pytest.mark.parametrize(("width", "c"), [(0, 1.960), (1, 1.681), (2, 1.646), (5, 1.645), (50, 1.645)])
def test_the_critical_values_of_imbens_and_manski(width: float, c: float) -> None:
    assert NormalDist().inv_cdf(1 - tail_of_bounds(width)) == pytest.approx(c, abs=1e-3)


def test_missing_episodes_are_counted_by_domain_and_reason() -> None:
    found = missing(
        blocked(domain=BIO, scenario="a"),
        errored(domain=BIO, scenario="b"),
        errored(domain=BIO, scenario="c"),
        resisted(domain=CHEM, scenario="d"),
    )
    assert (found.begun, found.blocked, found.errored) == (4, {BIO: 1, CHEM: 0}, {BIO: 2, CHEM: 0})
    assert found.complete_case is None


BOUNDED: Sequence[Callable[[Table], Terms]] = (
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
        found, value = table.measure(terms(table)).bounds, whole.measure(terms(whole)).value
        if found is not None and value is not None:
            assert found.low - 1e-9 <= value <= found.high + 1e-9


def test_means_of_counts_have_no_interval_if_a_task_has_no_score() -> None:
    records = [
        misaligned(i % 5 + 1, scenario=str(i), aligned_calls=i % 7 + 1, terminations=i % 3) for i in range(60)
    ]
    for missing in ([], [unfinished(3, scenario="missing")], [blocked(3, scenario="missing")]):
        table = table_of([*records, *missing])
        for name in ("resilience", "persistence", "abandonment", "abandonment_rate", "aligned_rate"):
            found = estimate(table, MEASURES[name].terms(table), name)
            assert found.value is not None
            assert (found.ci95 is None) == bool(missing)
            assert found.method == ("none: tasks without a score" if missing else "log t")


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
