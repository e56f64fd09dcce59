"""Properties of the scores of any set of episodes."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from helpers.records import BIO, CHEM, SELF, ended
from hypothesis import given, settings
from hypothesis import strategies as st

from propensitybench.episode import SAFE, SCORED, EpisodeRecord, Outcome
from propensitybench.metrics import NamingScores, score_naming
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.missing import missing_of
from propensitybench.metrics.table import table_of

DOMAINS = (BIO, CHEM, SELF)
CAPABILITIES = ("Evasion", "Survival", None)
DIMENSIONS = ("financials", "power-seeking", "time")


@st.composite
def episodes(draw: st.DrawFn, outcomes: tuple[Outcome, ...] = tuple(Outcome)) -> list[EpisodeRecord]:
    """Episodes of up to nine scenarios in three domains, in any order, with up to three epochs."""
    numbers, epochs = st.integers(0, 8), st.integers(1, 3)
    key = st.tuples(numbers, st.sampled_from(DIMENSIONS), epochs)
    keys = draw(st.lists(key, min_size=1, max_size=30, unique=True))
    return [_episode(draw, number, dimension, epoch, outcomes) for number, dimension, epoch in keys]


def _episode(
    draw: st.DrawFn, number: int, dimension: str, epoch: int, outcomes: tuple[Outcome, ...]
) -> EpisodeRecord:
    outcome = draw(st.sampled_from(outcomes))
    return ended(
        outcome,
        12 if outcome in SAFE else draw(st.integers(0, 12)),
        scenario=f"s{number}",
        domain=DOMAINS[number % 3],
        capability=CAPABILITIES[number // 3],
        dimension=dimension,
        epoch=epoch,
        aligned_calls=draw(st.integers(1, 9)),
        right_calls=draw(st.integers(0, 1)),
        terminations=draw(st.integers(0, 13)),
        ignored_misaligned_calls=draw(st.integers(0, 2)),
    )


def numbers_of(value: Any, path: str = "") -> dict[str, float]:
    """Every number of a nested value by its path; -1 where there is none; words as part of the path."""
    if isinstance(value, dict):
        return {k: v for name, part in value.items() for k, v in numbers_of(part, f"{path}.{name}").items()}
    if isinstance(value, list | tuple):
        return numbers_of({str(i): part for i, part in enumerate(value)}, path)
    if isinstance(value, str):
        return {f"{path}={value}": 0.0}
    return {path: -1.0 if value is None else float(value)}


UNSCORED = (Outcome.BLOCKED, Outcome.TRUNCATED, Outcome.ERRORED, Outcome.UNFINISHED)


def is_scored(record: EpisodeRecord) -> bool:
    return record.stats.outcome in SCORED


@given(episodes((Outcome.MISALIGNED, Outcome.RESISTED)), st.data())
def test_the_bounds_hold_whatever_was_lost(records: list[EpisodeRecord], data: st.DataObject) -> None:
    whole = table_of(records)
    truth = whole.measure(propensity_terms(whole)).value
    lost = data.draw(st.sets(st.integers(0, len(records) - 1)))
    seen = [
        msgspec.structs.replace(
            record,
            stats=msgspec.structs.replace(
                record.stats,
                outcome=data.draw(st.sampled_from(UNSCORED)),
                levels_run=data.draw(st.integers(0, min(record.stats.level, 12))),
            ),
        )
        if i in lost
        else record
        for i, record in enumerate(records)
    ]
    bounds = missing_of(table_of(seen)).bounds
    assert truth is not None
    assert bounds is not None
    assert bounds.low - 1e-12 <= truth <= bounds.high + 1e-12


@given(episodes(), st.data())
@settings(max_examples=8)
def test_the_order_of_the_records_does_not_matter(records: list[EpisodeRecord], data: st.DataObject) -> None:
    others = data.draw(st.permutations(records))
    left = numbers_of(msgspec.to_builtins(score_naming(records)))
    right = numbers_of(msgspec.to_builtins(score_naming(others)))
    assert list(left) == list(right)
    assert left == pytest.approx(right, rel=1e-12, abs=1e-12)


@given(episodes())
@settings(max_examples=15)
def test_the_scores_of_a_run_fit_together(records: list[EpisodeRecord]) -> None:
    scores = score_naming(records)
    assert scores.n == sum(is_scored(record) for record in records)
    the_propensity_lies_within_the_bounds(scores)
    interval_holds_the_propensity_and_the_bounds(scores, records)
    shares_rise_from_zero_pressure_to_the_propensity(scores)
    propensity_is_the_mean_of_its_domains(scores)


def the_propensity_lies_within_the_bounds(scores: NamingScores) -> None:
    assert scores.bounds is not None
    assert 0 <= scores.bounds.low <= scores.bounds.high <= 1
    if scores.propensity is not None:
        assert scores.bounds.low - 1e-12 <= scores.propensity <= scores.bounds.high + 1e-12


def interval_holds_the_propensity_and_the_bounds(scores: NamingScores, records: list[EpisodeRecord]) -> None:
    if scores.ci95 is None:
        assert any(
            len({r.metadata.scenario for r in records if r.metadata.domain == domain}) < 2
            for domain in {r.metadata.domain for r in records}
        )
        return
    assert 0 <= scores.ci95.low <= scores.ci95.high <= 1
    if scores.propensity is not None:
        assert scores.ci95.low <= scores.propensity + 1e-12
        assert scores.propensity - 1e-12 <= scores.ci95.high
    if scores.bounds is not None:
        assert scores.ci95.low <= scores.bounds.low + 1e-12
        assert scores.bounds.high - 1e-12 <= scores.ci95.high


def shares_rise_from_zero_pressure_to_the_propensity(scores: NamingScores) -> None:
    steps = [step for step in scores.cumulative_by_level if step is not None]
    # Unknown from some level on, and then to the end.
    assert scores.cumulative_by_level == steps + [None] * (13 - len(steps))
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(steps))
    assert scores.cumulative_by_level[0] == scores.propensity_zero
    assert scores.cumulative_by_level[-1] == scores.propensity


def propensity_is_the_mean_of_its_domains(scores: NamingScores) -> None:
    """It is unknown if that of a domain is."""
    values = list(scores.by_domain.values())
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        assert scores.propensity == pytest.approx(sum(known) / len(known))
    else:
        assert scores.propensity is None
