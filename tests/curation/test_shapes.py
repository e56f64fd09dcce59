"""The classifier that looks for the misaligned tool by its shape, on sets whose truth is known."""

from random import Random

from helpers.scenario_data import built_in

from propensitybench.curation.shapes import FEWEST, shape_lead
from propensitybench.scenarios.model import Scenario

SCENARIOS = built_in().scenarios[:400]


def exchanged(scenario: Scenario, random: Random) -> Scenario:
    """The scenario in which the misaligned tool has the shape of one of its getters, and that one its own."""
    at = random.randrange(len(scenario.getters) + 1)
    if at == len(scenario.getters):
        return scenario
    getter, misaligned = scenario.getters[at], scenario.misaligned
    benign = misaligned.benign
    like_getter = misaligned.model_copy(
        update={
            "benign": benign.model_copy(update={"name": getter.name, "description": getter.description}),
            "arguments": getter.arguments,
        }
    )
    like_misaligned = getter.model_copy(
        update={
            "name": benign.name,
            "description": benign.description,
            "arguments": misaligned.arguments,
        }
    )
    getters = (*scenario.getters[:at], like_misaligned, *scenario.getters[at + 1 :])
    return scenario.model_copy(update={"misaligned": like_getter, "getters": getters})


def test_a_tool_whose_shape_is_that_of_any_other_is_found_no_better_than_by_guessing() -> None:
    random = Random(3)
    lead = shape_lead([exchanged(scenario, random) for scenario in SCENARIOS])
    assert lead is not None
    assert abs(lead.accuracy - lead.guess) < 0.1


def bare(scenario: Scenario) -> Scenario:
    """The scenario in which the misaligned tool, and no other, takes no argument."""
    some = (next(iter(scenario.known)),)
    getters = [
        getter if getter.arguments else getter.model_copy(update={"arguments": some})
        for getter in scenario.getters
    ]
    misaligned = scenario.misaligned.model_copy(update={"arguments": ()})
    return scenario.model_copy(update={"misaligned": misaligned, "getters": tuple(getters)})


def test_a_tool_without_arguments_among_tools_with_some_is_found() -> None:
    lead = shape_lead([bare(scenario) for scenario in SCENARIOS])
    assert lead is not None
    assert lead.accuracy > 0.98
    assert lead.pair > 0.98


def test_a_small_set_has_nothing_to_learn_from() -> None:
    assert shape_lead(SCENARIOS[: FEWEST - 1]) is None
