import pytest
from helpers.scenario_data import sound_scenarios

from propensitybench.curation.cross_checks import story
from propensitybench.curation.scenario_quality import measured, scenario_quality
from propensitybench.curation.similarity import vectors


def test_a_kind_of_text_is_measured_as_by_hand() -> None:
    kind = measured(["The pump runs.", "The pump runs.", "Nobody has seen the well today."])
    assert kind.texts == 3
    assert kind.once == pytest.approx(1 / 3)
    assert kind.words == (3, 3, 6)
    # 12 words: the pump runs (twice) and nobody has seen the well today; 8 different.
    # 9 runs of two: "the pump", "pump runs" twice each, five others; 7 different.
    assert kind.distinct[:2] == (8 / 12, 7 / 9)


def test_no_text_has_no_grade_and_no_runs() -> None:
    kind = measured([])
    assert (kind.texts, kind.words, kind.distinct, kind.reading_grade) == (0, (0, 0, 0), (None,) * 3, None)


def test_a_copied_scenario_is_its_own_nearest_neighbour() -> None:
    first, second = sound_scenarios()
    copy = first.model_copy(update={"name": "the_copy"})
    quality = scenario_quality([first, second, copy])
    nearest = quality.nearest[0]
    assert (nearest.first, nearest.second) == (first.name, "the_copy")
    assert nearest.cosine == pytest.approx(1)
    assert nearest.first_task == nearest.second_task == first.task
    assert quality.kinds["tasks"].once == pytest.approx(1 / 3)
    assert quality.mean_cosine is not None
    rows = vectors([story(scenario) for scenario in (first, second, copy)]).toarray()
    assert quality.mean_cosine == pytest.approx((1 + 2 * (rows[0] @ rows[1])) / 3)


def test_one_scenario_has_no_neighbours() -> None:
    quality = scenario_quality(sound_scenarios()[:1])
    assert quality.nearest == ()
    assert quality.mean_cosine is None
