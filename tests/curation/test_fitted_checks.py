from collections.abc import Iterable
from itertools import pairwise

import pytest
from helpers.scenario_data import ROOT, built_in, built_in_sample, sound_scenarios
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.curation.fitted_checks import fitted_issues, fitted_scenarios, text_issues
from propensitybench.curation.text_stats import words
from propensitybench.pressure import fit, schedule, suitable
from propensitybench.pressure.fitting import COMPONENTS
from propensitybench.pressure.values import DEADLINE, ranges, unit_of_time
from propensitybench.scenarios.dataset import read_storylines
from propensitybench.scenarios.storyline import Storyline, StoryMessage
from propensitybench.taxonomy import DeclaredLists, taxonomy

SCENARIOS = built_in_sample(80)
CHAINS = [
    one
    for one in built_in().storylines[::7]
    if any(suitable([one], scenario, one.dimension, one.ladder) for scenario in SCENARIOS)
]
BASE = read_storylines(ROOT / "tests" / "curation" / "base", DeclaredLists())[0].own[0]
WELLS = sound_scenarios()[1]
BROKEN = BASE.messages[0].model_copy(update={"body": "the item is open. " * 6})
MINUTES = {"weeks": 7 * 24 * 60, "days": 24 * 60, "hours": 60, "minutes": 1}


def probe(dimension: str) -> Storyline:
    """A storyline that quotes every number of its dimension at every level."""
    messages = tuple(
        StoryMessage(
            level=step.level,
            subject="Probe",
            body=" ".join(
                ["T={T}"] + [f"{c}={{{c}}}" for c in COMPONENTS if (dimension, c, step.intensity) in ranges()]
            ),
        )
        for step in schedule()
    )
    return BASE.model_copy(update={"dimension": dimension, "messages": messages})


def numbers(bodies: Iterable[str]) -> list[dict[str, float]]:
    return [{k: float(v) for k, v in (part.split("=") for part in body.split())} for body in bodies]


@pytest.mark.parametrize("dimension", taxonomy().dimensions)
@pytest.mark.parametrize("seed", [0, 7])
def test_fitted_numbers_are_in_the_range_of_their_cell_and_never_ease(dimension: str, seed: int) -> None:
    found = numbers(message.body for message in fit(probe(dimension), WELLS, seed))
    for values, step in zip(found, schedule(), strict=True):
        for letter, value in values.items():
            component = DEADLINE if letter == "T" else (dimension, letter)
            cell = ranges()[*component, step.intensity]
            assert cell.low <= value <= cell.high
    for (before, first), (after, second) in pairwise(zip(found, schedule(), strict=True)):
        for letter in before.keys() & after.keys():
            component = DEADLINE if letter == "T" else (dimension, letter)
            if first.intensity == second.intensity:
                worse = ranges()[*component, first.intensity].worse
                eased = (
                    after[letter] < before[letter] if worse == "higher" else after[letter] > before[letter]
                )
                assert not eased


def test_the_time_that_remains_falls_at_every_level() -> None:
    left = [
        values["T"] * MINUTES[unit_of_time(step.level)]
        for values, step in zip(
            numbers(message.body for message in fit(probe("financials"), WELLS, 0)), schedule(), strict=True
        )
    ]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == len(left)


@pytest.mark.parametrize(
    "text",
    [
        "The file is open. It stays open.",
        "Hello,\n\nthe file is open.",
        "bdb-07 is late. svc_export is late too. vault/billing is not.",
        'He asked: "Is it there?" and I said no.',
        "> The order is late, e.g. the pumps, says Dr. Osei.\n> I had had enough of that that week.",
        "An hour, a one-off, a European rule, an honest mistake, a unit.",
        "It waits ... and waits.",
        "It is the A-33 order. SR 6118/A is next, so do DO 61-14 first. For Bodeum IT it's late.",
        "It says this:\n\n> queue: not moving.\n\nand nothing else.\n\np.p. Ana Silva",
    ],
)
def test_sound_texts_have_no_issue(text: str) -> None:
    assert list(text_issues(text)) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("The file is open. it stays open.", "i"),
        ("the file is open.", "t"),
        ("Open.\n\nthe file is late.", "t"),
        ("Open: our the file.", "our the"),
        ("Open: The the file.", "The the"),
        ("It is is open.", "is is"),
        ("It is an file.", "an file"),
        ("It is a open file.", "a open"),
        ("It is {open}.", "{"),
        ("It is , open.", " ,"),
        ("It is  open.", "s  o"),
        ("It is open..", ".."),
        ("It is {open_cap.", "{"),
    ],
)
def test_what_is_broken_is_found_and_pointed_at(text: str, at: str) -> None:
    wrong = next(iter(text_issues(text)))
    assert text[wrong.start : wrong.end] == at


def test_an_issue_of_many_scenarios_is_reported_once_with_their_number() -> None:
    storyline = BASE.model_copy(update={"messages": (BROKEN, *BASE.messages[1:])})
    scenarios = [WELLS.model_copy(update={"name": f"wells_{i}"}) for i in range(3)]
    ((path, message),) = fitted_issues(storyline, fitted_scenarios(scenarios))
    assert path == ".messages[0].body"
    assert message.endswith("in wells_0 and 2 more")


BREAKS = ("the ", "a ", "an ", " ,", "..", "  ", "{", "open open ", "our ", ". and ", "\n", "")


@given(st.data())
def test_nothing_that_a_full_reading_finds_is_taken_to_be_in_order(data: st.DataObject) -> None:
    """Text put anywhere into a message, or a cut, breaks messages of some scenarios; none is passed over."""
    storyline = data.draw(st.sampled_from(CHAINS))
    index = data.draw(st.integers(0, 11))
    message = storyline.messages[index]
    field = data.draw(st.sampled_from(("subject", "body")))
    text = getattr(message, field)
    # Not within a slot.
    cuts = [place for place in range(len(text) + 1) if "{" not in text[:place].rpartition("}")[2]]
    start = data.draw(st.sampled_from(cuts))
    end = data.draw(st.sampled_from([cut for cut in cuts if start <= cut <= start + 12]))
    text = text[:start] + data.draw(st.sampled_from(BREAKS)) + text[end:]
    messages = list(storyline.messages)
    messages[index] = message.model_copy(update={field: text})
    broken = storyline.model_copy(update={"messages": tuple(messages)})
    suiting = [one for one in SCENARIOS if suitable([storyline], one, storyline.dimension, storyline.ladder)]
    for scenario in data.draw(st.lists(st.sampled_from(suiting), min_size=1, max_size=4)):
        found = [path for path, _ in fitted_issues(broken, fitted_scenarios([scenario]))]
        fitted = fit(broken, scenario, 0)
        wrong = [
            f".messages[{place}].{field}"
            for place, message in enumerate(fitted)
            for field, text in (("subject", message.subject), ("body", message.body))
            for _ in text_issues(text)
        ]
        lengths = [
            f".messages[{i}].body"
            for i, message in enumerate(fitted)
            if not 15 <= len(words(message.body)) <= 110
        ]
        assert set(wrong + lengths) <= set(found)


def test_only_scenarios_that_the_storyline_suits_are_fitted() -> None:
    broken = BASE.model_copy(update={"messages": (BROKEN, *BASE.messages[1:])})
    elsewhere = WELLS.model_copy(update={"domain": "cyber-security"})
    assert list(fitted_issues(broken, fitted_scenarios([elsewhere]))) == []
    assert fitted_scenarios([WELLS.model_copy(update={"organisation": None})]) == []
