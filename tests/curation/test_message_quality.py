from collections import Counter

import pytest
from helpers.scenario_data import built_in, built_in_sample, sound_scenarios

from propensitybench.curation.message_quality import MOST_USED, message_quality, repetition_issues, stock
from propensitybench.pressure import pressure_messages
from propensitybench.pressure.export import with_messages
from propensitybench.pressure.messages import compose
from propensitybench.scenarios.model import PressureMessage
from propensitybench.taxonomy import taxonomy

DIMENSIONS = tuple(taxonomy().dimensions)
SCENARIOS = built_in_sample(6)


def test_a_message_is_made_with_an_opening_a_deadline_its_fragments_and_a_call() -> None:
    for dimension in DIMENSIONS:
        for made in compose(SCENARIOS[0], dimension, 0):
            kinds = [wording.stock.split()[0] for wording in made.wordings]
            assert kinds[0] == "opening"
            assert made.wordings[1].stock.startswith("time A")
            assert kinds[-1] == "call"
            assert Counter(kinds)["bridge"] <= 1
            letters = {wording.stock.split()[1] for wording in made.wordings if dimension in wording.stock}
            assert letters == set("ABCDE")


def test_every_wording_that_a_message_names_is_of_the_stock() -> None:
    everything = set(stock())
    for dimension in DIMENSIONS:
        for made in compose(SCENARIOS[0], dimension, 0):
            assert {wording._replace(value="") for wording in made.wordings} <= everything


def test_uses_are_counted_over_all_messages_and_name_the_unused() -> None:
    found = message_quality(SCENARIOS[:1], 0).wordings
    assert {(use.stock, use.text) for use in found} == {(w.stock, w.text) for w in stock()}
    calls = sum(use.share for use in found if use.stock.startswith("call"))
    assert calls == pytest.approx(1)
    deadlines = sum(use.share for use in found if use.stock.startswith("time A"))
    assert deadlines == pytest.approx(1)
    assert [use.share for use in found] == sorted((use.share for use in found), reverse=True)
    assert found[-1].share == 0
    assert all(use.share == 0 for use in found if use.stock.endswith((" 0", " 10")))


@pytest.mark.slow
def test_the_built_in_messages_do_not_repeat_themselves_whatever_the_seed() -> None:
    # `data validate` looks at seed 0.
    assert list(repetition_issues(built_in().scenarios, 7)) == []


def test_a_chain_that_says_the_same_twice_is_found() -> None:
    scenario = with_messages(sound_scenarios()[0], 0)
    assert scenario.messages is not None
    first, second, *rest = scenario.messages["time"]
    half = " ".join(second.body.split()[: len(second.body.split()) // 3])
    echo = second._replace(body=f"{first.body} {half}")
    changed = scenario.model_copy(update={"messages": {**scenario.messages, "time": (first, echo, *rest)}})
    assert list(repetition_issues([scenario], 0)) == []
    (issue,) = repetition_issues([changed], 0)
    assert issue[0] == f"{scenario.name} time"
    assert issue[1].startswith("messages 1 and 2 share")


def test_a_few_scenarios_overuse_some_wordings_and_the_issue_names_them() -> None:
    issues = list(repetition_issues(sound_scenarios()[:1], 0))
    shares = {use.text: use.share for use in message_quality(sound_scenarios()[:1], 0).wordings}
    assert issues
    for place, text in issues:
        assert place in {wording.stock for wording in stock()}
        assert any(repr(wording) in text and share > MOST_USED for wording, share in shares.items())


def test_messages_of_two_scenarios_are_measured() -> None:
    quality = message_quality(sound_scenarios(), 0)
    assert quality.messages.texts == quality.subjects.texts == 2 * 6 * 12
    assert quality.within_chain is not None
    assert quality.between_scenarios is not None
    assert 0 < quality.within_chain < 1
    assert 0 < quality.between_scenarios < 1
    assert 0 < quality.most_shared < 0.5


def test_equal_messages_have_cosine_one_and_no_wording_of_ours() -> None:
    body = PressureMessage("Desk", "A note", "Please find the survey of the wells.")
    messages = dict.fromkeys(DIMENSIONS, (body,) * 12)
    scenarios = [
        scenario.model_copy(update={"messages": messages, "stakes": None}) for scenario in sound_scenarios()
    ]
    assert pressure_messages(scenarios[0], "time", 0) == (body,) * 12
    quality = message_quality(scenarios, 0)
    assert quality.within_chain == pytest.approx(1)
    assert quality.between_scenarios == pytest.approx(1)
    assert quality.most_shared == 1
    assert quality.messages.once == 0
    assert quality.wordings == ()
