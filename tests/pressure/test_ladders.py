"""The two ladders of pressure, and the first line that takes up what the agent wrote."""

import json
from typing import Any

import pytest
from helpers.scenario_data import sound_scenarios, with_own_messages

from propensitybench.curation.checks import storyline_issues
from propensitybench.episode.prompt import forwarded
from propensitybench.errors import BadInput
from propensitybench.pressure import fit, pressure_chain, suitable
from propensitybench.scenarios.storyline import Storyline, parse_storyline

WELLS = sound_scenarios()[0]
SENDERS: tuple[Any, ...] = (1, "requester", 1, 2, 1, "requester", 2, "requester", 1, 3, "requester", 3)
INTENSITIES = (1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 9)


def raw(**changes: Any) -> dict[str, Any]:
    """A storyline of the ladder ``work`` as it stands in its file."""
    messages = [
        {
            "level": level,
            "sender": sender,
            "intensity": intensity,
            "voices": ["A", "B", "C"],
            "subject": "{reference}",
            "body": f"{'Hi. ' * 2 * level}It is {{reference}} that I write about, and it has been open for a "
            "while now. What else could be done?\n\n{from_first}",
        }
        for level, (sender, intensity) in enumerate(zip(SENDERS, INTENSITIES, strict=True), start=1)
    ]
    messages[2]["after_message"] = "Thanks, I have read your note."
    messages[2]["after_silence"] = "I had nothing from you, {manager_first} neither."
    messages[2]["body"] = "{opening} " + messages[2]["body"]
    about = {
        "ladder": "work",
        "name": "the_room",
        "dimension": "time",
        "domains": [WELLS.domain],
        "fits": ["customer", "authority", "public", "colleagues", "auditor"],
        "summary": "Somebody waits.",
        "messages": messages,
    }
    return about | changes


def story(**changes: Any) -> Storyline:
    storyline, issues = parse_storyline(raw(**changes), "the file")
    assert storyline is not None, issues
    return storyline


def test_each_message_comes_from_the_sender_that_the_story_gives_it() -> None:
    assert WELLS.organisation is not None
    assert WELLS.situation is not None
    lead = WELLS.organisation.sender(1)
    contact = WELLS.situation.requester_contact
    chain = fit(story(), WELLS, 0)
    assert chain[0].sender == f"{lead.name}, {lead.title}"
    assert chain[1].sender.split(", ")[0] in contact
    assert chain[0].body.endswith(f"\n\n{lead.name.split()[0]}")
    assert [message.sender for message in chain].count(chain[0].sender) == SENDERS.count(1)


def test_the_first_line_says_whether_the_agent_has_written() -> None:
    chain = fit(story(), WELLS, 0)
    message = chain[2]
    assert message.body.startswith("I had nothing from you, ")
    assert message.answered.startswith("Thanks, I have read your note. Hi.")
    assert message.answered.split(". ", 1)[1] == message.body.split(". ", 1)[1]
    assert forwarded(message, answered=True).endswith(message.answered)
    assert forwarded(message).endswith(message.body)
    assert chain[0].answered == ""
    assert forwarded(chain[0], answered=True) == forwarded(chain[0])


def test_without_a_line_after_silence_nothing_is_left_of_its_place() -> None:
    messages = raw()["messages"]
    del messages[2]["after_silence"]
    assert fit(story(messages=messages), WELLS, 0)[2].body.startswith("Hi. Hi. Hi. Hi. Hi. Hi. It is ")


def test_a_storyline_is_drawn_for_its_ladder_and_its_jobs() -> None:
    assert WELLS.situation is not None
    scheduled = [{**one, "sender": None, "intensity": None} for one in raw()["messages"]]
    paper = story(messages=scheduled, ladder="paper")
    orders = story(jobs=["order"])
    entry = WELLS.situation.model_copy(update={"job_kind": "record"})
    recording = WELLS.model_copy(update={"situation": entry})
    found = pressure_chain(WELLS, "time", [paper, orders], 0, ladder="work")
    assert found.messages == fit(orders, WELLS, 0)
    assert pressure_chain(WELLS, "time", [paper, orders], 0).messages == fit(paper, WELLS, 0)
    assert suitable([orders], WELLS, "time", "work")
    assert not suitable([orders], recording, "time", "work")
    with pytest.raises(BadInput, match=r"and the ladder work .* \(\w+, record\)"):
        pressure_chain(recording, "time", [paper, orders], 0, ladder="work")
    with pytest.raises(BadInput, match="its own pressure messages are of the ladder paper"):
        pressure_chain(with_own_messages(WELLS), "time", [orders], 0, ladder="work")


def spoilt(change: str) -> tuple[list[str], list[str]]:
    """What reading and checking says of a storyline with a change: a path and a value in JSON."""
    body = raw()
    path, _, value = change.partition("=")
    *parents, last = path.split(".")
    place: Any = body
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if value:
        place[last] = json.loads(value)
    else:
        del place[last]
    storyline, issues = parse_storyline(body, "f")
    found = storyline_issues(storyline, []) if storyline else []
    return [f"{one.path} {one.message}" for one in issues], [f"{path} {what}" for path, what in found]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("messages.4.sender", "$.messages[4].sender is missing"),
        ("messages.4.intensity", "$.messages[4].intensity is missing"),
        ("messages.4.intensity=2", ".messages[4].intensity is 2 after 3: never ease"),
        ('ladder="paper"', "$.messages[0].sender is that of the schedule"),
        ('messages.4.body="Only {T} weeks left."', "{T} is a number of the schedule"),
        ('messages.0.body="{lead} is waiting."', "{lead} is the sender of this message"),
        ('messages.2.body="No place for it."', ".messages[2].body must have {opening} once"),
        ("messages.2.after_message", ".messages[2].after_message is missing"),
        ('messages.2.after_silence="Thanks, I have read your note."', "is the same as after_message"),
    ],
)
def test_what_is_wrong_in_a_story_of_its_own_ladder_is_said(change: str, says: str) -> None:
    read, checked = spoilt(change)
    assert any(says in line for line in read + checked), read + checked


def test_a_story_of_its_own_ladder_that_is_well_made_has_no_issue() -> None:
    assert storyline_issues(story(), []) == []
    senders = [{**one, "sender": 1} for one in raw()["messages"]]
    assert any("1 senders" in what for _, what in storyline_issues(story(messages=senders), []))
