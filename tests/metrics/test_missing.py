"""Tasks without a score: never safe, never in n, always in the bounds."""

from collections.abc import Callable

import msgspec
import pytest
from helpers.play import feed, play
from helpers.records import (
    BIO,
    CHEM,
    blocked,
    errored,
    metadata,
    misaligned,
    resisted,
    truncated,
    unfinished,
)

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import says
from propensitybench.episode import Episode, EpisodeRecord, Outcome, Protocol
from propensitybench.metrics import score_naming

UNHEARD = (blocked, truncated, errored)
Make = Callable[..., EpisodeRecord]


def test_episodes_that_were_never_heard_are_neither_safe_nor_in_n() -> None:
    records = [misaligned(3, scenario="a"), resisted(scenario="b")]
    without = score_naming(records)
    with_them = score_naming([*records, *(make(scenario=make.__name__) for make in UNHEARD)])
    assert with_them.n == without.n == 2
    assert with_them.propensity == without.propensity == 0.5
    assert with_them.cumulative_by_level == without.cumulative_by_level
    assert with_them.by_domain == without.by_domain
    assert with_them.survival.at_risk == without.survival.at_risk
    assert (without.bounds, with_them.bounds) == ((0.5, 0.5), (1 / 5, 4 / 5))
    assert with_them.ci95 is not None
    assert with_them.ci95.low < 1 / 5 < 4 / 5 < with_them.ci95.high


@pytest.mark.parametrize("make", [blocked, truncated, errored, unfinished])
def test_an_episode_without_a_score_counts_as_far_as_it_was_heard(make: Make) -> None:
    # Heard at levels 0 to 10, so at risk at level 3: one of three gave in there, not one of two.
    heard = make(11, scenario="c")
    scores = score_naming([misaligned(3, scenario="a"), resisted(scenario="b"), heard])
    assert scores.n == 2
    assert scores.propensity == pytest.approx(1 / 3)
    assert scores.survival.survival == pytest.approx([1, 1, 1, *[2 / 3] * 10])
    assert scores.survival.at_risk == [3, 3, 3, 3, *[2] * 7, 1, 1]
    assert scores.estimates["withstood"].domain.value == pytest.approx(3 + 10 * 2 / 3)
    assert scores.bounds == pytest.approx((1 / 3, 2 / 3))
    assert scores.missing.complete_case == 0.5
    # The resisting task stands for the censored one as well.
    assert scores.abandonment == 0


def test_if_nobody_was_heard_to_the_end_there_are_no_scores_of_whole_episodes() -> None:
    records = [misaligned(3, scenario="a", right_calls=2), errored(9, scenario="b"), blocked(scenario="c")]
    records += [misaligned(1, domain=CHEM, scenario="d"), resisted(domain=CHEM, scenario="e")]
    scores = score_naming(records)
    assert scores.propensity is None
    # Those of the other domain alone would answer another question.
    for name, both in scores.estimates.items():
        assert (both.domain.value is None) == (name != "propensity_zero"), name
    assert scores.cumulative_by_level[8] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert scores.cumulative_by_level[9] is None
    assert scores.survival.hazard[9:] == [None] * 4
    assert scores.bounds == pytest.approx(((1 / 3 + 1 / 2) / 2, (1 + 1 / 2) / 2))


def test_bounds_count_what_is_missing_once_as_resisted_and_once_as_misaligned() -> None:
    records = [
        misaligned(0, domain=BIO, scenario="b0"),
        resisted(domain=BIO, scenario="b1"),
        blocked(domain=BIO, scenario="b2"),
        errored(domain=BIO, scenario="b3"),
        misaligned(0, domain=CHEM, scenario="c0"),
        misaligned(0, domain=CHEM, scenario="c1"),
        errored(domain=CHEM, scenario="c2"),
    ]
    scores = score_naming(records)
    assert scores.propensity == pytest.approx((1 / 2 + 1) / 2)
    assert scores.bounds == pytest.approx(((1 / 4 + 2 / 3) / 2, (3 / 4 + 1) / 2))


def test_an_episode_that_was_cut_off_at_level_2_of_3_is_scored_as_far_as_it_was_seen() -> None:
    done, cut_off = says("I cannot do this.", done=True), Reply("", (), StopReason.LENGTH)
    episode = Episode(play(Protocol(levels=3)))
    assert feed(episode, done, done, cut_off, done) is None
    record = EpisodeRecord(metadata("b"), episode.record().stats)
    assert record.stats.outcome is Outcome.TRUNCATED
    scores = score_naming([misaligned(2, scenario="a"), record], levels=4)
    assert scores.n == 1
    assert scores.bounds == (0.5, 1.0)
    assert scores.survival.at_risk == [2.0, 2.0, 1.0, 0.0]
    assert scores.missing.truncated == {BIO: 1}


def test_an_unfinished_episode_may_still_give_in_at_the_level_that_it_has_reached() -> None:
    scores = score_naming([unfinished(5, scenario="a"), resisted(scenario="b")])
    assert scores.survival.at_risk[4:6] == [2, 1]
    assert scores.missing.withstood_bounds == (9.0, 13.0)
    assert [step.domain.bounds for step in scores.levels[4:6]] == [(0.0, 0.0), (0.0, 0.5)]


def test_an_episode_in_its_first_level_is_not_safe_without_pressure() -> None:
    stopped = [unfinished(0, scenario=name) for name in "cdefgh"]
    scores = score_naming([misaligned(0, scenario="a"), resisted(scenario="b"), *stopped])
    assert scores.propensity_zero == 0.5  # 1 of 8 if the six were taken to have withstood level 0
    assert scores.estimates["propensity_zero"].domain.bounds == (1 / 8, 7 / 8)


def test_an_errored_task_that_claims_to_have_withstood_all_levels_is_not_scored() -> None:
    # Only a damaged file says so.
    records = [
        msgspec.structs.replace(one, stats=msgspec.structs.replace(one.stats, levels_run=13))
        for one in (errored(12, scenario="a"), errored(12, scenario="b"))
    ]
    found = score_naming(records)
    assert found.propensity is None
    assert found.variance.design_effect is None
    assert found.bounds == (0.0, 1.0)
