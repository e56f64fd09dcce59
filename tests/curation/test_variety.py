import pytest
from helpers.scenario_data import sound_scenarios

from propensitybench.curation.limits import Limit, limits
from propensitybench.curation.variety import variety, variety_issues
from propensitybench.scenarios.model import Organisation, Scenario
from propensitybench.scenarios.storyline import Storyline, StoryMessage

STIPENDS, WELLS = sound_scenarios()


def with_tasks(*tasks: str) -> list[Scenario]:
    return [WELLS.model_copy(update={"task": task}) for task in tasks]


def organisation(name: str, *people: str) -> Organisation:
    assert WELLS.organisation is not None
    system, *others = WELLS.organisation.senders
    renamed = [
        sender.model_copy(update={"name": person}) for sender, person in zip(others, people, strict=False)
    ]
    return WELLS.organisation.model_copy(
        update={"name": name, "senders": (system, *renamed, *others[len(people) :])}
    )


def test_first_words_are_counted_with_all_identifiers_alike() -> None:
    found = variety(with_tasks("AF-3316 is open.", "REL-1207 is open.", "Please pay it.", "Pay it."), [])
    assert found["first_word"].value == 0.5
    assert found["first_word"].example == "identifier"
    assert found["first_three_words"].example == "identifier is open"


def test_sentence_counts_and_lengths_are_measured() -> None:
    found = variety(with_tasks("One two three. Four.", "One. Two.", "One two three four five six."), [])
    assert found["sentence_count"].value == pytest.approx(2 / 3)
    assert found["sentence_count"].example == "2 sentences"
    # Lengths 4, 2 and 6: mean 4, standard deviation sqrt(8/3).
    assert found["task_length_cv"].value == pytest.approx((8 / 3) ** 0.5 / 4)


def test_a_6_gram_counts_where_it_comes_from_another_role() -> None:
    phrase = "Kindly see to it that nothing is left over."
    own = WELLS.model_copy(update={"task": phrase})
    other = STIPENDS.model_copy(update={"task": phrase})
    assert variety([own, own, STIPENDS], [])["six_gram"].value == 0
    found = variety([own, own, other, STIPENDS], [])["six_gram"]
    assert found.value == 0.25
    assert found.example in phrase.lower()


def test_stock_names_and_repeated_names_are_shares() -> None:
    assert "Chen" in limits().stock_names
    one = WELLS.model_copy(update={"organisation": organisation("One", "Wei Chen", "Ana de Zubiri")})
    two = WELLS.model_copy(update={"organisation": organisation("Two", "Ana Ruz", "Dr. Ole de Brun")})
    found = variety([one, one, two], [])
    assert found["stock_names"].value == pytest.approx(1 / 10)  # five people in each of two organisations
    assert found["stock_names"].example == "Wei Chen"
    assert found["repeated_names"].value == 1
    assert found["repeated_names"].example not in ("de", "Dr.")


def test_mails_with_a_percentage_are_counted() -> None:
    messages = tuple(
        StoryMessage(level=level, subject="{reference}", body="It is 3 %." if level < 4 else "It is open.")
        for level in range(1, 13)
    )
    storyline = Storyline(
        name="probe",
        dimension="time",
        domains=("bio-security",),
        fits=("public",),
        summary="Three messages quote a percentage.",
        messages=messages,
    )
    assert variety([WELLS], [storyline])["percent_messages"].value == 0.25


def test_the_nearest_pair_is_named() -> None:
    copy = WELLS.model_copy(update={"name": "the_copy"})
    found = variety([STIPENDS, WELLS, copy], [])["nearest_pair"]
    assert found.value == pytest.approx(1)
    assert found.example == f"{WELLS.name} and the_copy"


def test_an_empty_set_has_nothing_to_measure() -> None:
    assert all(measure.value in (None, 0) for measure in variety([], []).values())


def test_every_measure_has_a_limit_and_every_limit_a_measure() -> None:
    assert variety([], []).keys() == limits().by_name.keys()
    for limit in limits().by_name.values():
        assert (limit.at_most is None) != (limit.at_least is None)


def test_a_limit_holds_at_its_bound() -> None:
    most, least = Limit("m", "a", at_most=0.2), Limit("m", "a", at_least=0.2)
    assert most.holds(0.2)
    assert least.holds(0.2)
    assert most.holds(None)
    assert not most.holds(0.21)
    assert not least.holds(0.19)


def test_only_a_set_of_some_size_is_held_to_the_limits() -> None:
    few = limits().fewest_scenarios - 1
    assert variety_issues([WELLS] * few, []) == []
    issues = {issue.path: issue.message for issue in variety_issues([WELLS] * (few + 1), [])}
    assert issues.keys() == {
        "$.first_word",
        "$.first_three_words",
        "$.sentence_count",
        "$.task_length_cv",
        "$.nearest_pair",
    }
    assert issues["$.first_word"] == (
        "share of tasks that begin with the same word is 1.00 (identifier), at most 0.15. "
        "Begin some with the item, the object or the state of things."
    )
