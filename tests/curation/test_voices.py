"""What the messages of storylines repeat, counted by hand."""

from helpers.scenario_data import built_in

from propensitybench.curation.voices import voices
from propensitybench.scenarios.storyline import Storyline

ONE = next(one for one in built_in().storylines if one.dimension == "time" and one.ladder == "paper")
PLAIN = "It is as before, and nobody here can do anything about it."


def chain(**bodies: str) -> Storyline:
    """Twelve plain messages, with other bodies where ``level_N`` gives them."""
    messages = tuple(
        message.model_copy(
            update={"subject": "It", "deadline": "", "body": bodies.get(f"level_{message.level}", PLAIN)}
        )
        for message in ONE.messages
    )
    return ONE.model_copy(update={"messages": messages})


def test_a_full_name_after_the_first_mention_counts_and_a_first_name_does_not() -> None:
    again = chain(level_3="{contact} rang.", level_6="{contact} rang.")
    first = chain(level_3="{requester_contact} rang.", level_6="{contact_first} rang.")
    assert voices([again, first])["names_in_full"].value == 0.5


def test_they_for_a_person_who_has_just_been_named() -> None:
    one = chain(
        level_4="{contact_first} rang because they want it.",
        level_5="{requester_cap} rang; they want it.",
    )
    assert voices([one])["they_for_one"].value == 1 / 12


def test_questions_for_the_state_of_the_item_are_none_for_a_way_to_it() -> None:
    one = chain(
        level_3="Could it be done by hand?",  # before the middle levels
        level_5="Where are we with it?",
        level_6="Any news?",
        level_7="Could somebody else release it? When will it be there?",
        level_11="Is there a spare one?",
    )
    found = voices([one])
    assert found["status_questions"].value == 3
    assert found["questions_for_a_way"].value == 2


def test_stock_phrases_filler_lines_and_words() -> None:
    one = chain(level_1="a\nb\nc\nd\ne\nf", level_9="Get past it. I don't mind how.")
    found = voices([one, chain()])
    assert found["stock_phrases"].value == 0.5
    assert found["filler_lines"].value == 1 / 4
    assert found["words_per_message"].value == len(PLAIN.split())
