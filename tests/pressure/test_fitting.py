"""Storylines fitted with the words of scenarios."""

import re
from itertools import pairwise

import pytest
from helpers.scenario_data import built_in, built_in_sample, sound_scenarios, with_own_messages
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.errors import BadInput
from propensitybench.pressure import fit, pressure_chain, schedule, suitable
from propensitybench.pressure.fitting import SLOT, SLOTS, Writer, without_slot
from propensitybench.pressure.values import ranges, unit_of_time
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.storyline import NEUTRAL, Storyline
from propensitybench.taxonomy import taxonomy

DIMENSIONS = tuple(taxonomy().dimensions)
STORYLINES = built_in().storylines
SCENARIOS = (*built_in_sample(12), *sound_scenarios())


def storyline(body: str, deadline: str = "", dimension: str = "time") -> Storyline:
    """A storyline of twelve equal messages."""
    messages = [
        {"level": level, "deadline": deadline, "subject": "{reference}", "body": body}
        for level in range(1, 13)
    ]
    return Storyline.model_validate(
        {
            "name": "equal",
            "dimension": dimension,
            "domains": ("self-proliferation",),
            "fits": ("customer", "authority"),
            "summary": "Twelve equal messages.",
            "messages": tuple(messages),
        }
    )


def bodies(body: str, deadline: str = "", dimension: str = "time", seed: int = 0) -> list[str]:
    chain = fit(storyline(body, deadline, dimension), sound_scenarios()[0], seed)
    return [message.body for message in chain]


@pytest.mark.parametrize("dimension", [*DIMENSIONS, NEUTRAL])
def test_every_scenario_has_a_chain_without_a_slot_left(dimension: str) -> None:
    for scenario in SCENARIOS:
        chain = pressure_chain(scenario, dimension, STORYLINES, 0)
        assert len(chain.messages) == 12
        assert chain.storyline in {one.name for one in STORYLINES if one.dimension == dimension}
        for message in chain.messages:
            assert not SLOT.search(message.subject + message.body)


@pytest.mark.parametrize(("body", "deadline"), [("{loss}" * 5000, ""), ("{deadline}" * 3000, "{loss}" * 200)])
def test_slots_in_slots_make_no_text_that_is_too_long(body: str, deadline: str) -> None:
    with pytest.raises(
        BadInput, match=r"time--equal\.json: gives a text of \d+ characters .*; 32768 are allowed"
    ):
        bodies(body, deadline)


def test_senders_have_the_ranks_of_the_schedule() -> None:
    scenario = sound_scenarios()[0]
    organisation = scenario.organisation
    assert organisation is not None
    chain = pressure_chain(scenario, "time", STORYLINES, 0)
    senders = [organisation.sender(step.rank or 0) for step in schedule()]
    expected = [str(Writer(one.name, one.title, one.system)) for one in senders]
    assert [message.sender for message in chain.messages] == expected
    assert expected[0] == "Grant Desk (automatic notification)"
    assert expected[-1] == "Board of Trustees, Finance Committee"


def test_the_words_of_the_situation_fill_the_slots_and_begin_sentences() -> None:
    (body, *_) = bodies("{system_cap} is slow; {system}. {from}, {title}, {org}, {requester_contact}")
    assert body == (
        "The fund ledger is slow; the fund ledger. Grant Desk, automatic notification, Lanternfield "
        "Foundation, Ingrid Solheim at the weaving school"
    )
    assert bodies("{from}")[3] == "Jonas Ekstrand"


def test_the_previous_sender_is_the_one_of_the_message_before() -> None:
    messages = list(storyline("x").messages)
    messages[3] = messages[3].model_copy(update={"body": "{from_previous}"})
    chain = fit(storyline("x").model_copy(update={"messages": tuple(messages)}), sound_scenarios()[0], 0)
    assert chain[3].body == "Mirela Kovac"


@given(st.integers(0, 2**32))
def test_numbers_lie_in_their_range_and_never_ease(seed: int) -> None:
    for letter in "ABCDE":
        steps = [step for step in schedule() if ("time", letter, step.intensity) in ranges()]
        last = {"lower": float("inf"), "higher": float("-inf")}
        before = 0
        for step in steps:
            messages = list(storyline("x").messages)
            place = step.level - 1
            messages[place] = messages[place].model_copy(update={"body": f"{{{letter}}}"})
            chain = fit(
                storyline("x").model_copy(update={"messages": tuple(messages)}), sound_scenarios()[0], seed
            )
            number, found = float(chain[place].body), ranges()["time", letter, step.intensity]
            assert found.low <= number <= found.high
            if step.intensity == before:  # within an intensity, where the unit is the same
                assert number <= last["lower"] if found.worse == "lower" else number >= last["higher"]
            last, before = {"lower": number, "higher": number}, step.intensity


def test_the_time_that_remains_falls_from_level_to_level() -> None:
    hours = {"weeks": 7 * 24, "days": 24, "hours": 1, "minutes": 1 / 60}
    left = [
        float(text) * hours[unit_of_time(level)]
        for level, text in enumerate(bodies("{T}", dimension="financials"), 1)
    ]
    assert all(one > other for one, other in pairwise(left))


def test_the_deadline_is_a_sentence_that_can_be_left_out() -> None:
    assert bodies("One. {deadline} Two.", "{T} left.")[0].startswith("One. ")
    assert re.fullmatch(r"One\. \d+ left\. Two\.", bodies("One. {deadline} Two.", "{T} left.")[0])
    assert bodies("One. {deadline} Two.")[0] == "One. Two."
    assert bodies("One.\n{deadline}\nTwo.")[0] == "One.\nTwo."
    assert bodies("{deadline}\n\nTwo.")[0] == "Two."
    assert bodies("{deadline} Two.")[0] == "Two."
    assert without_slot("One.\n\n{deadline} Two.\n\n{from}", "deadline") == "One.\n\nTwo.\n\n{from}"


def test_every_built_in_message_reads_on_without_its_deadline() -> None:
    for one in STORYLINES:
        for message in one.messages:
            body = without_slot(message.body, "deadline")
            assert "{deadline}" not in body
            assert not re.search(r"  |^ | $|\n\n\n", body), (one.name, message.level, body)


def test_a_slot_that_does_not_exist_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"storylines/time--equal.json: no value for the slot \{nobody\}"):
        bodies("{nobody}")


def test_a_scenario_with_messages_of_its_own_keeps_them() -> None:
    scenario = with_own_messages(sound_scenarios()[0], 4)
    assert scenario.messages is not None
    for dimension in DIMENSIONS:
        for seed in (0, 99):
            chain = pressure_chain(scenario, dimension, STORYLINES, seed)
            assert chain == ("", scenario.messages[dimension])


def test_the_choice_depends_on_seed_and_scenario_and_not_on_the_order_of_the_storylines() -> None:
    scenario = sound_scenarios()[0]
    forward = [pressure_chain(scenario, name, STORYLINES, 3) for name in DIMENSIONS]
    assert forward == [pressure_chain(scenario, name, STORYLINES[::-1], 3) for name in DIMENSIONS]
    drawn = {
        pressure_chain(one, "resource-deprivation", STORYLINES, seed).storyline
        for seed in range(20)
        for one in SCENARIOS
    }
    about = [one for one in STORYLINES if one.dimension == "resource-deprivation"]
    assert drawn <= {one.name for one in about if one.ladder == "paper"}
    assert len(drawn) > 12


def test_a_storyline_is_used_where_domain_and_requester_fit() -> None:
    scenario = sound_scenarios()[0]
    one = storyline("x")
    assert suitable([one], scenario, "time") == [one]
    assert suitable([one], scenario, "financials") == []
    assert suitable([one.model_copy(update={"domains": ("bio-security",)})], scenario, "time") == []
    other = one.model_copy(update={"fits": ("auditor",)})
    assert suitable([other], scenario, "time") == []
    with pytest.raises(
        BadInput, match=r"no storyline of the dimension time .* requester and job \(customer, "
    ):
        pressure_chain(scenario, "time", [other], 0)


def test_a_scenario_without_words_cannot_be_fitted() -> None:
    bare: Scenario = sound_scenarios()[0].model_copy(update={"situation": None})
    with pytest.raises(BadInput, match="no organisation and situation"):
        fit(storyline("x"), bare, 0)


def test_the_slots_are_those_of_the_situation_in_both_forms() -> None:
    assert {"deliverable_short", "deliverable_short_cap", "from_previous", "deadline", "T", "E"} <= SLOTS
    assert "requester_kind" not in SLOTS


def test_a_person_is_named_without_the_place() -> None:
    assert bodies("{contact} wrote.")[0] == "Ingrid Solheim wrote."
    for scenario in SCENARIOS:
        assert scenario.situation is not None
        (body, *_) = (message.body for message in fit(storyline("{contact}"), scenario, 0))
        assert scenario.situation.requester_contact.startswith(body)
        assert 1 < len(body.split()) < 6


def test_a_notice_is_an_error_without_the_sentences_that_give_away_an_unknown_value() -> None:
    scenario = sound_scenarios()[0]
    value = next(value for value in scenario.unknown.values() if isinstance(value, str))

    def notice(*errors: str, **unknown: object) -> str:
        aligned = scenario.aligned.model_copy(update={"errors": errors})
        changed = scenario.model_copy(update={"aligned": aligned, "unknown": {"a": value, **unknown}})
        return fit(storyline("{notice}"), changed, 0)[0].body

    assert notice("first: no reply yet", "then: no reply at all") == "then: no reply at all"
    assert notice("ledger: no reply yet", f"ledger: {value} waiting") == "ledger: no reply yet"
    assert notice(f"ledger: queue is stuck. {value} is in it. No place known.") == (
        "ledger: queue is stuck. No place known."
    )
    assert notice(f"Down. {value} waits.") == "No response from the fund ledger."
    assert notice("ledger: 12 are waiting", b=12) == "No response from the fund ledger."
    assert notice("ledger: 12 are waiting", b=1) == "ledger: 12 are waiting"
    assert notice("ledger: pen and ink wait", b=["quill", "ink"]) == "No response from the fund ledger."
