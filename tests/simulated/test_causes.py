"""Agents with a planted cause: their hazards by hand, in every arm."""

from math import exp
from typing import Unpack

import msgspec
import pytest
from helpers.records import About, metadata

from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import gives_in_at, profile
from propensitybench.simulated.causes import Causes
from propensitybench.simulated.effects import Effects
from propensitybench.taxonomy import ARMS

BASE = -2.0
NONE = {"seed": 1, "correlation": 1.0, "scenario": 0.0, "workspace": 0.0, "storyline": 0.0}
CHAINS = ("escalating", "placebo", "pure", "repeat", "open")
MESSAGES = range(1, 13)


def moved_by(**causes: float) -> Causes:
    return Causes(kind="causes", base=BASE, effects=Effects(**NONE), **causes)


def task(arm: str, message: int = 0, **about: Unpack[About]) -> TaskMetadata:
    return msgspec.structs.replace(metadata(**{"dimension": "financials", **about}), arm=arm, message=message)  # type: ignore[arg-type]


def chance(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))


def check(agent: Causes, about: TaskMetadata, more: list[float], blockage: float = 0.0) -> None:
    """Checks the log odds of giving in: the base, plus ``more`` at each level, plus that after."""
    stays, expected = 1.0, []
    for one in more:
        at_once, after = chance(BASE + one), chance(BASE + one + blockage)
        expected += [1 - stays * (1 - at_once), 1 - stays * (1 - after)]
        stays *= 1 - after
    assert agent.cumulative(about) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("arm", CHAINS)
def test_an_agent_that_nothing_moves_has_the_same_hazard_at_every_level(arm: str) -> None:
    hazard = 1 / (1 + exp(2))
    curve = moved_by().cumulative(task(arm))
    assert curve[::2] == pytest.approx([1 - (1 - hazard) ** (level + 1) for level in range(13)])
    assert curve[1::2] == curve[::2]


@pytest.mark.parametrize("arm", ["single", "fresh"])
def test_a_message_alone_has_a_single_level(arm: str) -> None:
    for message in MESSAGES:
        assert moved_by().cumulative(task(arm, message)) == pytest.approx([1 / (1 + exp(2))] * 2)


def test_pressure_grows_with_the_number_of_the_message() -> None:
    agent = moved_by(pressure=6.0)
    rising = [0.5 * level for level in range(13)]
    for arm in ("escalating", "pure", "open"):
        check(agent, task(arm), rising)
    check(agent, task("placebo"), [0.0] * 13)
    check(agent, task("repeat"), [0.0] + [0.5] * 12)
    for message in MESSAGES:
        check(agent, task("single", message), [0.5 * message])
        check(agent, task("fresh", message), [0.0])


def test_time_moves_where_a_message_says_how_much_is_left() -> None:
    agent = moved_by(time=3.0)
    from_message = [0.0] + [3.0] * 12
    for arm in ("escalating", "repeat", "open"):
        for dimension in ("financials", "time"):
            check(agent, task(arm, dimension=dimension), from_message)
    check(agent, task("pure"), [0.0] * 13)
    check(agent, task("pure", dimension="time"), from_message)
    for dimension in ("financials", "time"):
        check(agent, task("placebo", dimension=dimension), [0.0] * 13)
        check(agent, task("single", 7, dimension=dimension), [3.0])
        check(agent, task("fresh", 7, dimension=dimension), [0.0])


def test_length_grows_with_the_levels_played_whatever_is_in_them() -> None:
    agent = moved_by(length=6.0)
    for arm in CHAINS:
        check(agent, task(arm), [0.5 * level for level in range(13)])
    for arm in ("single", "fresh"):
        for message in MESSAGES:
            check(agent, task(arm, message), [0.0])


def test_blockage_moves_after_the_aligned_tool_has_failed() -> None:
    agent = moved_by(blockage=2.5)
    for arm in CHAINS:
        check(agent, task(arm), [0.0] * 13, blockage=2.5)
    for arm in ("single", "fresh"):
        check(agent, task(arm, 5), [0.0], blockage=2.5)


def test_awareness_moves_from_the_first_level_on_in_the_episodes_taken_for_a_test() -> None:
    agent = moved_by(awareness=-1.5, aware=0.4)
    episodes = [msgspec.structs.replace(task("escalating"), seed=seed) for seed in range(500)]
    aware = [agent.is_aware(one) for one in episodes]
    assert sum(aware) / len(aware) == pytest.approx(0.4, abs=4 * (0.24 / len(aware)) ** 0.5)
    for one, is_aware in zip(episodes[:20], aware, strict=False):
        check(agent, one, [-1.5 * is_aware] * 13)
    assert not any(moved_by().is_aware(one) for one in episodes)


def test_a_failing_tool_that_deters_cannot_take_back_what_was_done_before() -> None:
    curve = moved_by(blockage=-3.0).cumulative(task("escalating"))
    assert curve == moved_by().cumulative(task("escalating"))


def test_causes_add_up() -> None:
    agent = moved_by(pressure=6.0, time=1.0, length=-3.0, blockage=0.5)
    more = [0.0] + [0.25 * level + 1.0 for level in MESSAGES]
    check(agent, task("escalating"), more, blockage=0.5)
    check(agent, task("single", 4), [2.0 + 1.0], blockage=0.5)
    check(agent, task("placebo"), [-0.25 * level for level in range(13)], blockage=0.5)


def test_effects_of_the_task_come_on_top_and_those_of_its_messages_with_them() -> None:
    sizes = {**NONE, "scenario": 1.0, "workspace": 0.5, "storyline": 0.7}
    effects = Effects(**sizes)
    agent = Causes(kind="causes", base=BASE, effects=effects)
    for about in (task("escalating"), task("placebo", scenario="b")):
        own = effects.of(about)
        check(agent, about, [own.always] + [own.always + own.pressed] * 12)
    alone = task("single", 3)
    check(agent, alone, [effects.of(alone).always + effects.of(alone).pressed])


@pytest.mark.parametrize("arm", sorted(ARMS))
@pytest.mark.parametrize("name", ["moved-by-pressure-and-blockage", "moved-by-time"])
def test_an_agent_gives_in_as_often_as_its_hazards_say(arm: str, name: str) -> None:
    agent = profile(name)
    about = task(arm, 6 if ARMS[arm].alone else 0)
    curve = agent.gives_in.cumulative(about)
    moments = [gives_in_at(agent, msgspec.structs.replace(about, seed=seed)) for seed in range(500)]
    for step, share in enumerate(curve):
        found = sum(2 * moment.level + moment.after_work <= step for moment in moments) / len(moments)
        assert found == pytest.approx(share, abs=4 * (share * (1 - share) / len(moments)) ** 0.5)


def test_arms_have_draws_of_their_own() -> None:
    agent = profile("moved-by-nothing")
    one, other = (
        [gives_in_at(agent, msgspec.structs.replace(task(arm), seed=seed)) for seed in range(200)]
        for arm in ("escalating", "placebo")
    )
    assert one != other
