"""The messages of a task under each arm."""

import pytest
from helpers.scenario_data import built_in, built_in_sample, with_own_messages

from propensitybench.errors import BadInput
from propensitybench.pressure import fit, pressure_chain
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.storyline import NEUTRAL, Storyline
from propensitybench.taxonomy import ARMS, ArmName, taxonomy

STORYLINES = built_in().storylines
SCENARIOS = built_in_sample(8)
DIMENSIONS = tuple(taxonomy().dimensions)


def storyline(name: str, dimension: str, scenario: Scenario) -> Storyline:
    (found,) = [
        one
        for one in STORYLINES
        if (one.name, one.dimension) == (name, dimension) and scenario.domain in one.domains
    ]
    return found


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_placebo_has_the_senders_and_no_pressure(dimension: str) -> None:
    for scenario in SCENARIOS:
        rising = pressure_chain(scenario, dimension, STORYLINES, 3)
        neutral = pressure_chain(scenario, dimension, STORYLINES, 3, "placebo")
        written = storyline(neutral.storyline, NEUTRAL, scenario)
        assert [one.sender for one in neutral.messages] == [one.sender for one in rising.messages]
        assert not any(message.voices for message in written.messages)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_pure_pressure_lacks_the_sentence_of_the_deadline_and_nothing_else(dimension: str) -> None:
    for scenario in SCENARIOS:
        rising = pressure_chain(scenario, dimension, STORYLINES, 3)
        pure = pressure_chain(scenario, dimension, STORYLINES, 3, "pure")
        assert pure.storyline == rising.storyline
        for ours, without, written in zip(
            rising.messages,
            pure.messages,
            storyline(pure.storyline, dimension, scenario).messages,
            strict=True,
        ):
            assert without.sender == ours.sender
            if written.deadline:
                assert len(without.body.split()) < len(ours.body.split())
                assert set(without.body.split()) <= set(ours.body.split())
            else:
                assert without == ours


def test_repetition_is_the_mildest_message_twelve_times() -> None:
    scenario = SCENARIOS[0]
    rising = pressure_chain(scenario, "financials", STORYLINES, 3)
    assert pressure_chain(scenario, "financials", STORYLINES, 3, "repeat").messages == (
        (rising.messages[0],) * 12
    )


@pytest.mark.parametrize("arm", ["escalating", "single", "open"])
def test_the_other_arms_have_the_messages_of_the_published_method(arm: ArmName) -> None:
    for scenario in SCENARIOS:
        chain = pressure_chain(scenario, "time", STORYLINES, 3)
        assert pressure_chain(scenario, "time", STORYLINES, 3, arm) == chain
        assert chain.messages == fit(storyline(chain.storyline, "time", scenario), scenario, 3)


def test_single_and_fresh_messages_are_those_of_the_chains() -> None:
    scenario = SCENARIOS[0]
    assert pressure_chain(scenario, "time", STORYLINES, 3, "fresh") == pressure_chain(
        scenario, "time", STORYLINES, 3, "placebo"
    )


def test_messages_of_a_scenario_s_own_cannot_lose_a_sentence() -> None:
    scenario = with_own_messages(SCENARIOS[0])
    with pytest.raises(BadInput, match="no separate sentence with the deadline; leave out the arm pure"):
        pressure_chain(scenario, "time", (), 0, "pure")
    with pytest.raises(BadInput, match="no storyline of the dimension neutral"):
        pressure_chain(scenario.model_copy(update={"situation": None}), "time", (), 0, "placebo")


def test_every_arm_but_the_published_one_changes_one_thing() -> None:
    usual = ARMS["escalating"]._asdict()
    changes = {
        name: {field for field, value in arm._asdict().items() if value != usual[field]} - {"what"}
        for name, arm in ARMS.items()
    }
    assert changes.pop("escalating") == set()
    assert changes.pop("fresh") == {"neutral", "alone"}  # the placebo's counterpart to single
    assert all(len(changed) == 1 for changed in changes.values())
