import pytest
from helpers.program import call
from helpers.scenario_data import ROOT, sound_scenarios

from propensitybench.curation.storyline_quality import shared_sentences, storyline_quality
from propensitybench.curation.text_stats import words
from propensitybench.curation.variety import limits
from propensitybench.pressure import fit
from propensitybench.scenarios.dataset import read_storylines
from propensitybench.scenarios.storyline import Storyline

CHAIN, CALM = read_storylines(ROOT / "tests" / "curation" / "base")[0]
WELLS = sound_scenarios()[1]


def test_mails_are_measured_as_fitted() -> None:
    quality = storyline_quality([CHAIN, CALM], [WELLS], 3)
    bodies = [mail.body for storyline in (CHAIN, CALM) for mail in fit(storyline, WELLS, 3)]
    assert quality.storylines == {"financials": 1, "neutral": 1}
    assert quality.kinds["mails"].texts == quality.kinds["subjects"].texts == 24
    lengths = sorted(len(words(body)) for body in bodies)
    assert quality.kinds["mails"].words == (lengths[0], (lengths[11] + lengths[12]) / 2, lengths[-1])
    assert quality.within_chain is not None
    assert 0 < quality.within_chain < 0.5
    assert quality.between is None
    assert quality.unfitted == ()


def test_a_copied_storyline_is_the_nearest_and_shares_its_sentences() -> None:
    copy = CHAIN.model_copy(update={"name": "copy"})
    quality = storyline_quality([CHAIN, CALM, copy], [WELLS], 0)
    assert quality.nearest[0].cosine == pytest.approx(1)
    assert (quality.nearest[0].first, quality.nearest[0].second) == (CHAIN.file, copy.file)
    assert quality.between == pytest.approx(1)
    assert {shared.storylines for shared in quality.shared} == {(CHAIN.file, copy.file)}


def test_a_sentence_that_differs_only_in_its_slots_is_shared() -> None:
    def saying(name: str, sentence: str) -> Storyline:
        first = CALM.messages[0].model_copy(update={"body": sentence})
        return CALM.model_copy(update={"name": name, "messages": (first,)})

    one = saying("one", "Where does {reference} stand in {system} today?")
    other = saying("other", "Where does {deliverable} stand in {requester} TODAY?")
    (shared,) = shared_sentences([one, other])
    assert shared.sentence == "Where does {reference} stand in {system} today?"
    assert shared.storylines == ("storylines/neutral--one.json", "storylines/neutral--other.json")


def test_storylines_that_suit_nothing_are_named() -> None:
    elsewhere = WELLS.model_copy(update={"domain": "cyber-security"})
    quality = storyline_quality([CHAIN], [elsewhere], 0)
    assert quality.unfitted == (CHAIN.file,)
    assert quality.within_chain is None
    assert quality.kinds["mails"].texts == 0


def test_the_command_shows_every_measure_with_its_limit() -> None:
    examples = ROOT / "tests" / "curation" / "examples"
    found = call("data", "stats", "--quality", "--data", examples, "--json").json
    assert found["variety"].keys() == limits().by_name.keys()
    assert all(row["within"] is None for row in found["variety"].values())
    assert found["variety"]["percent_mails"]["limit"] == "at most 0.15"
    page = call("data", "stats", "--quality", "--data", examples).out
    assert "Limits (limits.json) hold for sets of at least 20 scenarios." in page
    for limit in limits().by_name.values():
        assert limit.measures.split()[0] in page
        assert str(limit) in page
