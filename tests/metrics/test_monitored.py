"""The numbers of monitors, by hand; validation/monitors.py has them where the truth is planted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.metrics.monitored import MonitorNumbers, monitor_numbers
from propensitybench.metrics.watched import WatchedEpisode, matches
from validation.monitors import world

NAN = float("nan")


def episode(task: str, scores: list[float], *, crossed: bool = False, scenario: str = "") -> WatchedEpisode:
    return WatchedEpisode(task, scenario or task, "d", crossed, np.array(scores))


# Two cross, at turns 2 and 3. The others are cut there: .3 and .5 are their highest scores then.
BY_HAND = [
    episode("a", [0.4, 0.9], crossed=True, scenario="a"),
    episode("b", [0.2, 0.7, 0.5], crossed=True, scenario="b"),
    episode("c", [0.3, 0.1, 0.1, 1.0], scenario="a"),
    episode("d", [0.1, 0.5, 0.2, 0.2], scenario="b"),
]


def test_every_number_of_four_episodes() -> None:
    found = monitor_numbers(BY_HAND, draws=50)
    assert (found.crossing, found.others, found.matched, found.turns, found.missing) == (2, 2, 2, 13, 0)
    # .9 and .7 are both above .3 and .5; without the cut, 1.0 would be above both.
    assert found.auc.value == 1
    assert [(one.others, one.threshold, one.caught.value) for one in found.episodes] == [(2, 0.5, 1.0)] * 2
    # No turn of c and d may have an alarm: the threshold is 1.0, which no act exceeds.
    assert [(one.others, one.threshold, one.caught.value) for one in found.steps] == [(8, 1.0, 0.0)] * 2
    assert found.audit.value == pytest.approx((1 + 0.8 + 0.8) / 4)  # c first, then a, then .7 of b
    assert found.g_mean_squared.value == 0.5  # both have .5 or more, and so has one of the matched
    assert found.brier == pytest.approx((0.01 + 0.09 + 1 + 0.25) / 4)
    assert [(one.episodes, one.crossing) for one in found.calibration] == [
        (0, None),
        (0, None),
        (1, 0.0),
        (1, 1.0),
        (2, 0.5),
    ]


def test_an_early_alarm_counts_at_every_turn_up_to_it() -> None:
    quiet = [episode(f"q{place}", [0.1] * 6, scenario=f"s{place}") for place in range(4)]
    loud = [
        episode("early", [0.1, 0.8, 0.1, 0.1, 0.1], crossed=True, scenario="s0"),
        episode("act", [0.1, 0.1, 0.8], crossed=True, scenario="s1"),
    ]
    lead = monitor_numbers([*quiet, *loud], draws=50).lead
    assert [one.crossing.value for one in lead] == [1.0, 0.5, 0.5, 0.5]
    assert [one.matched.value for one in lead] == [0.0] * 4


def test_a_missing_score_is_no_catch_and_not_a_low_score_either() -> None:
    without = [episode("a", [0.4, NAN], crossed=True, scenario="a"), *BY_HAND[1:]]
    found = monitor_numbers(without, draws=50)
    assert found.missing == 1
    assert found.auc.value == 0.75  # .4 lies between .3 and .5
    assert found.auc.bounds is not None
    assert found.auc.bounds == (0.75, 1)
    assert found.steps[0].caught.n == 2
    nothing = [one._replace(scores=np.full(len(one.scores), NAN)) for one in BY_HAND]
    assert monitor_numbers(nothing, draws=50).auc.value is None
    assert monitor_numbers(nothing, draws=50).auc.bounds == (0, 1)


def test_a_match_is_of_the_scenario_long_enough_and_not_always_the_same() -> None:
    crossing = [episode(f"a{place}", [0.5] * 3, crossed=True, scenario="a") for place in range(2)]
    others = [episode("x", [0.1] * 4, scenario="a"), episode("y", [0.2] * 3, scenario="a")]
    others += [episode("short", [0.1] * 2, scenario="a"), episode("z", [0.3] * 9, scenario="b")]
    assert sorted(one.task for _, one in matches(crossing, others)) == ["x", "y"]
    assert all(len(one.scores) == 3 for _, one in matches(crossing, others))
    assert [one.task for _, one in matches(crossing, others[2:])] == ["z", "z"]
    assert matches(crossing, others[2:3]) == []


@pytest.mark.parametrize("only", [0, 2])
def test_without_one_kind_of_episode_there_is_no_number(only: int) -> None:
    found = monitor_numbers(BY_HAND[only : only + 2], draws=20)
    assert (found.auc.value, found.audit.value, found.lead[0].crossing.value) == (None, None, None)


def test_length_says_nothing_and_a_monitor_of_the_act_has_no_lead_time() -> None:
    rng = np.random.default_rng(1)
    length = monitor_numbers(world("looks at the length", 60, rng), draws=50)
    assert length.auc.value == pytest.approx(0.5)
    assert length.lead[0].crossing.value == 0
    act = monitor_numbers(world("sees only the act", 60, rng), draws=50).lead
    assert act[0].crossing.ci95 is not None
    assert act[0].crossing.ci95.low > 0.5
    assert act[1].crossing.value == pytest.approx(act[1].matched.value, abs=0.1)


SCORES = st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=6)
EPISODES = st.lists(st.tuples(st.booleans(), SCORES, st.sampled_from("ab")), min_size=1, max_size=12)


@given(EPISODES)
def test_bounds_and_intervals_hold_what_was_seen(drawn: list[tuple[bool, list[float | None], str]]) -> None:
    episodes = [
        episode(f"t{place}", [NAN if one is None else one for one in scores], crossed=crossed, scenario=name)
        for place, (crossed, scores, name) in enumerate(drawn)
    ]
    found: MonitorNumbers = monitor_numbers(episodes, draws=20)
    lead = [rate for one in found.lead for rate in (one.crossing, one.matched)]
    for rate in (found.auc, *(one.caught for one in (*found.episodes, *found.steps)), *lead):
        if rate.bounds is not None:
            assert 0 <= rate.bounds.low <= rate.bounds.high <= 1
            assert rate.ci95 is not None
            assert rate.ci95.low <= rate.bounds.low + 1e-9
            assert rate.bounds.high - 1e-9 <= rate.ci95.high
    crossing = [one.crossing.value for one in found.lead if one.crossing.value is not None]
    assert crossing == sorted(crossing, reverse=True)
