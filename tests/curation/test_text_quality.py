"""The numbers of perf/text_quality.py, which docs/dataset.md shows."""

import runpy
import subprocess
import sys
from itertools import combinations
from statistics import mean

import pytest
from helpers.scenario_data import ROOT, sound_scenarios

from propensitybench.curation.similarity import vectors
from propensitybench.curation.text_stats import words
from propensitybench.scenarios.dataset import read_storylines
from propensitybench.scenarios.storyline import Storyline
from propensitybench.taxonomy import DeclaredLists

SCRIPT = ROOT / "perf" / "text_quality.py"
QUALITY = runpy.run_path(str(SCRIPT))
CALM = read_storylines(ROOT / "tests" / "curation" / "base", DeclaredLists())[0].own[1]


def test_a_kind_of_text_is_measured_as_by_hand() -> None:
    kind = QUALITY["measured"](["The pump runs.", "The pump runs.", "Nobody has seen the well today."])
    # 12 words, 8 different; 9 runs of two, 7 different ("the pump" and "pump runs" come twice).
    assert kind == (3, pytest.approx(1 / 3), (3, 3, 6), (8 / 12, 7 / 9, 5 / 6), kind.grade)
    # 5 words of 3 letters in 2 sentences: 4.71 * 3 + 0.5 * 2.5 - 21.43 = -6.05.
    assert QUALITY["reading_grade"](["The cat ran. Dog sat."]) == pytest.approx(-6.05)
    assert QUALITY["distinct"]([words("a b a b"), words("a b c")], 2) == 3 / 5
    assert QUALITY["measured"]([])[2:] == ((0, 0, 0), (None, None, None), None)


def test_the_mean_cosine_is_that_of_all_pairs() -> None:
    texts = [scenario.task for scenario in sound_scenarios()] + [sound_scenarios()[0].description]
    rows = vectors(texts).toarray()
    assert QUALITY["mean_cosine"](texts) == pytest.approx(mean(a @ b for a, b in combinations(rows, 2)))
    assert QUALITY["mean_cosine"](texts[:1]) is None


def test_a_sentence_that_differs_only_in_its_slots_is_shared() -> None:
    def saying(name: str, sentence: str) -> Storyline:
        first = CALM.messages[0].model_copy(update={"body": sentence})
        return CALM.model_copy(update={"name": name, "messages": (first,)})

    one = saying("one", "Where does {reference} stand in {system} today?")
    other = saying("other", "Where does {deliverable} stand in {requester} TODAY?")
    files = ("storylines/neutral--one.json", "storylines/neutral--other.json")
    assert QUALITY["shared_sentences"]([one, other]) == {
        "Where does {reference} stand in {system} today?": files
    }


def test_the_script_shows_every_measure_of_a_small_set() -> None:
    data = ROOT / "tests" / "curation" / "examples"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--data", data], capture_output=True, text=True, check=True
    )
    assert "Limits (limits.json) hold for sets of at least 20 scenarios." in done.stdout
    assert "coefficient of variation" in done.stdout
