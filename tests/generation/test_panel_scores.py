"""Scores of a panel by hand: means, verdicts, and what goes back."""

from typing import Any

import pytest

from propensitybench.generation.panel_forms import PanelReading
from propensitybench.generation.panel_items import DRAWN, PanelItem
from propensitybench.generation.panel_scores import (
    PanelLimits,
    PanelScores,
    ScoreSpread,
    panel_limits,
    returned,
    score_panel,
    spread,
)

GOOD = {"R": 6, "C": 6, "T": 6, "D": 6, "L": 6, "P": 5, "E": 3}


def item(name: str, source: str = DRAWN, storyline: str = "plot") -> PanelItem:
    dimension = "time" if storyline else ""
    return PanelItem(name, source, f"scenario_{name}", "domain/workspace/role", dimension, storyline, "text")


def reading(name: str, **scores: int | None) -> PanelReading:
    return PanelReading(name, {**GOOD, **scores}, "a comment", "a quote")


def scored(items: list[PanelItem], *readers: dict[str, dict[str, Any]]) -> PanelScores:
    """Scores of readers who give 6 and so on, but for the exceptions by item."""
    readings = {
        f"judge-{number}": {one.name: reading(one.name, **exceptions.get(one.name, {})) for one in items}
        for number, exceptions in enumerate(readers, start=1)
    }
    return score_panel(items, readings, panel_limits())


def failed(scores: PanelScores) -> list[tuple[str, str]]:
    return [(verdict.criterion, verdict.rule) for verdict in scores.verdicts if not verdict.passed]


def test_the_limits_are_those_of_the_standard() -> None:
    assert panel_limits() == PanelLimits(
        least={"R": 5.0, "C": 5.5, "T": 5.0, "D": 5.5, "L": 5.5, "P": 4.5},
        most={"E": 4.0},
        least_of_an_item={"R": 3.0, "C": 3.0, "T": 3.0},
        better_than_known=("R", "T", "L", "E"),
        readers_of_an_item=2,
    )


def test_means_and_spreads_by_hand() -> None:
    items = [item("item01"), item("item02"), item("item03", "other", "")]
    scores = scored(
        items, {"item01": {"R": 4}, "item03": {"P": None}}, {"item02": {"R": 7}, "item03": {"P": None}}
    )
    # 4, 6 and 6, 7: mean 5.75, squared deviations 3.0625 + .0625 + .0625 + 1.5625 = 4.75, / 3.
    by_reader = scores.readers[DRAWN]
    spreads = [scores.sources[DRAWN]["R"], by_reader["judge-1"]["R"], by_reader["judge-2"]["R"]]
    assert [(one.n, one.mean) for one in spreads] == [(4, 5.75), (2, 5.0), (2, 6.5)]
    assert [one.sd for one in spreads] == pytest.approx([(4.75 / 3) ** 0.5, 2**0.5, 0.5**0.5])
    assert scores.sources["other"]["P"] == ScoreSpread(0, None, None)
    assert scores.items["item01"].means["R"] == 5.0
    assert list(scores.sources) == [DRAWN, "other"]
    assert scores.missing == {"judge-1": 0, "judge-2": 0}
    # R of the items: (4, 6), (6, 7), (6, 6). Six ratings: 4, 6, 6, 6, 6, 7; interval alpha is
    # 1 - 5 * (2 * 4 + 2 * 1) / sum over ordered pairs 2 * (4 * 4 + 9 + 4 * 1) = 1 - 50 / 58.
    assert scores.alpha["R"].interval == pytest.approx(1 - 50 / 58)
    assert scores.alpha["C"].interval is None


@pytest.mark.parametrize(
    ("criterion", "passing", "failing"),
    [("R", 5, 4), ("T", 5, 4), ("C", 6, 5), ("D", 6, 5), ("L", 6, 5), ("P", 5, 4), ("E", 4, 5)],
)
def test_each_criterion_has_its_limit(criterion: str, passing: int, failing: int) -> None:
    items = [item("item01"), item("item02")]
    everywhere = {one.name: {criterion: passing} for one in items}
    assert scored(items, everywhere, everywhere).passed
    everywhere = {one.name: {criterion: failing} for one in items}
    scores = scored(items, everywhere, everywhere)
    assert [name for name, _ in failed(scores)] == [criterion]
    back = returned(scores, panel_limits())
    storyline = "storylines/time--plot.json"
    assert list(back) == ([storyline] if criterion == "P" else ["scenario_item01", "scenario_item02"])
    assert len(back[storyline]) == 4 if criterion == "P" else len(back["scenario_item01"]) == 2


@pytest.mark.parametrize("criterion", "RCT")
def test_a_single_bad_item_fails_the_set_and_goes_back_alone(criterion: str) -> None:
    items = [item(f"item{number:02}") for number in range(1, 13)]
    scores = scored(items, {"item05": {criterion: 2}}, {"item05": {criterion: 3}})
    assert failed(scores) == [(criterion, "no item under 3")]
    (verdict,) = [one for one in scores.verdicts if not one.passed]
    assert (verdict.value, verdict.items) == (2.5, ("item05",))
    back = returned(scores, panel_limits())
    assert list(back) == ["scenario_item05"]
    assert back["scenario_item05"][0].startswith("judge-1: ")
    assert f"{criterion} 2" in back["scenario_item05"][0]
    assert back["scenario_item05"][0].endswith(': a comment ("a quote")')


def test_a_known_source_must_be_beaten_and_never_goes_back() -> None:
    items = [item("item01"), item("item02", "published", "")]
    worse = {"item02": {"R": 5, "T": 5, "L": 5, "E": 4, "P": None}}
    assert scored(items, worse, worse).passed
    equal = {"item02": {"R": 6, "T": 5, "L": 5, "E": 3, "P": None}}
    scores = scored(items, equal, equal)
    assert failed(scores) == [("R", "above published (6.00)"), ("E", "below published (3.00)")]
    awful = {"item02": {**dict.fromkeys("RCTDL", 1), "P": None, "E": 7}}
    scores = scored(items, awful, awful)
    assert (scores.passed, returned(scores, panel_limits())) == (True, {})


def test_a_missing_score_is_counted_and_fails_the_panel() -> None:
    items = [item("item01"), item("item02")]
    scores = scored(items, {"item02": {"D": None}}, {})
    assert scores.missing == {"judge-1": 1, "judge-2": 0}
    assert failed(scores) == [("D", "2 readers of every item")]
    assert scores.sources[DRAWN]["D"].n == 3
    # A third reader makes up for it.
    assert scored(items, {"item02": {"D": None}}, {}, {}).passed


def test_a_set_without_messages_has_not_passed_on_pressure() -> None:
    items = [item("item01", storyline="")]
    silent = {"item01": {"P": None}}
    scores = scored(items, silent, silent)
    assert [name for name, _ in failed(scores)] == ["P"] * len(failed(scores)) != []
    assert scores.missing == {"judge-1": 0, "judge-2": 0}


def test_only_the_items_on_the_wrong_side_of_a_failed_criterion_go_back() -> None:
    items = [
        item("item01", storyline="one"),
        item("item02", storyline="two"),
        item("item03", storyline="two"),
    ]
    low = {"item01": {"L": 7, "P": 6}, "item02": {"L": 4, "P": 2}, "item03": {"L": 5, "P": 4}}
    scores = scored(items, low, low)
    assert [name for name, _ in failed(scores)] == ["L", "P"]
    back = returned(scores, panel_limits())
    assert list(back) == ["scenario_item02", "storylines/time--two.json", "scenario_item03"]
    assert len(back["storylines/time--two.json"]) == 4


def test_a_scenario_with_messages_of_its_own_goes_back_for_them() -> None:
    own = PanelItem("item01", DRAWN, "mine", "a/b/c", "time", "", "text")
    bad = {"item01": {"P": 2}}
    assert list(returned(scored([own], bad, bad), panel_limits())) == ["mine"]


def test_spreads_by_hand() -> None:
    assert spread([2, None, 4, 6]) == ScoreSpread(3, 4.0, 2.0)
    assert spread([5]) == ScoreSpread(1, 5.0, None)
    assert spread([None]) == ScoreSpread(0, None, None)
