"""What the checks of single scenarios must leave alone; tests/curation/broken has what they must find."""

import pytest
from helpers.scenario_data import sound_scenarios

from propensitybench.curation.chain_checks import counts_match_lists, errors_are_one_story, values_are_clear
from propensitybench.curation.checks import scenario_issues
from propensitybench.curation.content import shared_ending, word_list
from propensitybench.curation.scenario_checks import keeps_its_secrets
from propensitybench.curation.task_checks import IDENTIFIER, task_could_wait, task_names_its_objects
from propensitybench.scenarios.issues import Located
from propensitybench.scenarios.model import Scenario
from propensitybench.taxonomy import taxonomy

WELLS = sound_scenarios()[1]


def with_task(task: str) -> Scenario:
    return WELLS.model_copy(update={"task": task})


def with_errors(*errors: str) -> Scenario:
    return WELLS.model_copy(update={"aligned": WELLS.aligned.model_copy(update={"errors": errors})})


def with_known(**values: object) -> Scenario:
    return WELLS.model_copy(update={"known": {**WELLS.known, **values}})


def test_a_sound_scenario_has_no_issue() -> None:
    located = [Located(scenario, "sound.json", "$") for scenario in sound_scenarios()]
    assert scenario_issues(located, taxonomy()) == []


@pytest.mark.parametrize(
    "text",
    [
        "The entries were prepared last week.",
        "The supplier may march on; it can wait.",
        "Use ceiling 2048 and file FC-2027-B.",
        "Rotate keys older than 90 days, within the 30-day window.",
        "Take the augustinian list.",
        "An overnight job at level 12 of 20.",
    ],
)
def test_a_task_without_date_and_urgency_is_left_alone(text: str) -> None:
    assert word_list("urgency").found_in(text) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Do it by Friday.", "Friday"),
        ("It ends in March.", "in March"),
        ("It ends on March 3.", "March 3"),
        ("The 2027 budget.", "2027"),
        ("At 14:30.", "14:30"),
        ("On 03.04.2027.", "03.04.2027"),
        ("Before the end of the month.", "end of the month"),
        ("ASAP.", "ASAP"),
        ("For Q3.", "Q3"),
        ("For next week.", "next week"),
    ],
)
def test_dates_and_urgency_are_found(text: str, word: str) -> None:
    assert word in word_list("urgency").found_in(text)


def test_a_task_has_40_to_160_words() -> None:
    assert [bool(list(task_could_wait(with_task("word " * n)))) for n in (39, 40, 160, 161)] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Close AF-3316 on bdb-07 (see vault/k2).", ["AF-3316", "bdb-07", "vault/k2"]),
        ("A 30-day window, 2 of 3, in well-known terms and/or so.", []),
        ("Cluster stf-eu-2.", ["stf-eu-2."]),
    ],
)
def test_identifiers_begin_with_a_letter_and_have_a_digit(text: str, found: list[str]) -> None:
    assert IDENTIFIER.findall(text) == found


def test_an_identifier_within_a_known_value_is_known() -> None:
    # "Compound R-27" is the value; the task may call it R-27.
    scenario = with_known(material="Compound R-27").model_copy(update={"task": "WELL-0417: take R-27."})
    assert list(task_names_its_objects(scenario)) == []


def test_errors_of_one_system_may_have_codes_and_name_what_the_agent_has_gathered() -> None:
    errors = tuple(f"broker ({code}): SLOT-3307 waits, connection refused." for code in range(500, 505))
    scenario = with_errors(*errors)
    assert list(errors_are_one_story(scenario)) == []
    assert list(keeps_its_secrets(scenario)) == []


def test_errors_without_a_prefix_share_the_name_of_their_system() -> None:
    errors = (
        "The broker is late.",
        "No answer of the broker.",
        "Broker: 3 wait.",
        "The broker waits.",
        "A broker is down.",
    )
    assert list(errors_are_one_story(with_errors(*errors))) == []


def test_a_value_within_a_longer_one_is_no_secret() -> None:
    scenario = WELLS.model_copy(update={"task": WELLS.task + " Note SLOT-33071."})
    assert list(keeps_its_secrets(scenario)) == []


def test_numbers_and_texts_that_read_the_same_are_confused() -> None:
    assert [path for path, _ in values_are_clear(with_known(x_count=7, y_code="7"))] == [".known.y_code"]
    assert list(values_are_clear(with_known(x_count=7, y_code="7a", flag=False, zero=0))) == []


def test_a_count_that_names_no_list_is_left_alone() -> None:
    assert list(counts_match_lists(with_known(tank_count=3))) == []
    assert list(counts_match_lists(with_known(inspector_pool_count=2))) == []
    assert list(counts_match_lists(with_known(desks=["a", "b"]))) == []
    told = with_known(desks=["a", "b"]).model_copy(update={"description": "Of both desks, 2 desks are open."})
    assert list(counts_match_lists(told)) == []


def test_the_shared_ending_of_two_descriptions() -> None:
    one = "Takes the pool; backs the new ceiling and closes the change."
    other = "Registers the pool, backs the new ceiling and closes the change."
    ending = shared_ending(one, other)
    assert " ".join(ending) == "the pool backs the new ceiling and closes the change"
    assert shared_ending("It closes the ticket.", "She closes the ticket.") == []


def test_a_huge_text_is_checked_in_linear_time() -> None:
    # With a pattern that backtracks this would not end.
    scenario = with_task("x" * 100_000 + " a. b" * 20_000 + " 1" * 20_000)
    issues = scenario_issues([Located(scenario, "huge.json", "$")], taxonomy())
    assert any("60001 words" in issue.message for issue in issues)
