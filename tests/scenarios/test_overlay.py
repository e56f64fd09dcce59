"""Overlays, and the Latin square that divides tasks among the cells of an experiment."""

from collections import Counter

import msgspec
import pytest
from helpers.scenario_data import small_layout, sound_scenarios
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.engine import RunSpec
from propensitybench.episode import built_in_template
from propensitybench.errors import BadInput
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.overlay import Append, Become, Change, Overlay, Prepend, Replace, Where
from propensitybench.scenarios.selection import Selection, latin, spread, tasks
from propensitybench.taxonomy import taxonomy

STIPENDS, WELLS = sound_scenarios()
DIMENSIONS = tuple(taxonomy().dimensions)
PLACES: tuple[Where, ...] = (
    "policy.role",
    "policy.duties",
    "policy.prohibitions",
    "acknowledgement",
    "consequences",
    "task",
)
SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=4)
SOME_DIMENSIONS = st.lists(st.sampled_from(DIMENSIONS), min_size=1, unique=True)


def text_at(scenario: Scenario, where: Where) -> str:
    policy, tool = scenario.policy, scenario.misaligned
    return {
        "policy.role": policy.role,
        "policy.duties": policy.duties,
        "policy.prohibitions": policy.prohibitions,
        "acknowledgement": tool.acknowledgement,
        "consequences": tool.consequences,
        "task": scenario.task,
    }[where]


def overlay(*changes: Change) -> Overlay:
    return Overlay("factor", "level", changes=changes)


@pytest.mark.parametrize("where", PLACES)
def test_a_change_is_made_where_it_says_and_nowhere_else(where: Where) -> None:
    old = text_at(STIPENDS, where)
    first = old.split()[0]
    for change, new in (
        (Append(where, " More."), old + " More."),
        (Prepend(where, "Before. "), "Before. " + old),
        (Replace(where, first, "Thing"), old.replace(first, "Thing")),
        (Become(where, "All else."), "All else."),
    ):
        changed = overlay(change).on_scenario(STIPENDS)
        assert text_at(changed, where) == new
        assert overlay(Become(where, old)).on_scenario(changed) == STIPENDS
        assert overlay(change).on_template("The template.") == "The template."


def test_every_occurrence_is_replaced() -> None:
    scenario = overlay(Become("task", "a b a")).on_scenario(STIPENDS)
    assert overlay(Replace("task", "a", "c")).on_scenario(scenario).task == "c b c"
    assert overlay(Replace("task", "a ", "")).on_scenario(scenario).task == "b a"


@pytest.mark.parametrize("where", PLACES)
def test_decider_stands_for_whoever_may_decide_there(where: Where) -> None:
    for scenario, decider in (STIPENDS, "the trustees"), (WELLS, "the programme manager"):
        changed = overlay(Append(where, " Ask {decider}, only {decider}.")).on_scenario(scenario)
        assert text_at(changed, where).endswith(f" Ask {decider}, only {decider}.")


def test_in_a_template_a_decider_is_left_to_the_template() -> None:
    changed = overlay(Append("template", "{{ decider }}")).on_template("Ask ")
    assert changed == "Ask {{ decider }}"


def test_changes_are_made_in_order() -> None:
    changes = Become("task", "one"), Append("task", " two"), Prepend("task", "zero ")
    assert overlay(*changes).on_scenario(STIPENDS).task == "zero one two"
    assert overlay(*changes[::-1]).on_scenario(STIPENDS).task == "one"


def test_a_text_that_is_not_there_is_named_with_its_place() -> None:
    change = Replace("policy.role", "no such words", "others")
    with pytest.raises(BadInput) as caught:
        overlay(change).on_scenario(STIPENDS)
    assert str(caught.value) == (
        "weaving_school_stipends: policy.role has no 'no such words', which an overlay replaces"
    )
    with pytest.raises(BadInput, match="factor=level: template has no 'no such words'"):
        overlay(Replace("template", "no such words", "others")).on_template("Some text.")


def test_a_change_makes_no_text_that_a_run_file_could_not_hold() -> None:
    with pytest.raises(BadInput, match="an overlay gives task 33000 characters; 1 to 32768 are allowed"):
        overlay(Become("task", "x" * 33_000)).on_scenario(WELLS)


def test_an_overlay_takes_the_severities_it_names() -> None:
    assert (STIPENDS.severity, WELLS.severity) == (3, 2)
    low, high = Overlay("f", "low", severities=(1, 2)), Overlay("f", "high", severities=(3, 4))
    assert [low.takes(one) for one in (STIPENDS, WELLS)] == [False, True]
    assert [high.takes(one) for one in (STIPENDS, WELLS)] == [True, False]
    assert all(overlay().takes(one) for one in (STIPENDS, WELLS))
    assert not low.takes(STIPENDS.model_copy(update={"severity": None}))


def template_of(*overlays: Overlay, template: str = "{{ policy.role }} {{ consequences }}") -> str:
    return RunSpec("simulated/never", template=template, overlays=overlays).overlaid_template


def test_a_run_has_the_template_of_its_overlays() -> None:
    added = Overlay("cue", "there", changes=(Append("template", " Added."),))
    unnamed = Overlay("policy", "forbids-act", template="unnamed")
    assert template_of() == "{{ policy.role }} {{ consequences }}"
    assert template_of(added) == "{{ policy.role }} {{ consequences }} Added."
    assert template_of(unnamed) == built_in_template("unnamed")
    assert template_of(overlay(Append("task", " More."))) == "{{ policy.role }} {{ consequences }}"


def test_a_template_is_chosen_before_it_is_changed_whatever_the_order() -> None:
    added = Overlay("cue", "there", changes=(Append("template", " Added."),))
    unnamed = Overlay("policy", "forbids-act", template="unnamed")
    expected = built_in_template("unnamed") + " Added."
    assert template_of(added, unnamed) == template_of(unnamed, added) == expected


def test_the_digest_is_that_of_the_content() -> None:
    def level(**about: object) -> Overlay:
        plain = {
            "factor": "f",
            "level": "l",
            "changes": [{"change": "append", "where": "task", "text": "a"}],
            "severities": [1],
        }
        return msgspec.convert({**plain, **about}, Overlay)

    others = [
        level(factor="g"),
        level(level="m"),
        level(template="unnamed"),
        level(severities=[]),
        level(severities=[1, 2]),
        level(changes=[]),
        level(changes=[{"change": "append", "where": "task", "text": "b"}]),
        level(changes=[{"change": "prepend", "where": "task", "text": "a"}]),
        level(changes=[{"change": "become", "where": "task", "text": "a"}]),
        level(changes=[{"change": "append", "where": "consequences", "text": "a"}]),
        level(changes=[{"change": "append", "where": "task", "text": "a"}] * 2),
    ]
    assert len({level().digest, *(one.digest for one in others)}) == len(others) + 1
    assert level(template="").digest == level().digest


def in_parts(sizes: list[int], dimensions: list[str], parts: int, limit: int | None) -> list[list[object]]:
    pairs = spread(small_layout(sizes), dimensions, seed=0)
    return [list(latin(pairs, Selection(limit=limit, part=(index, parts)))) for index in range(parts)]


@given(SIZES, SOME_DIMENSIONS, st.integers(1, 9), st.none() | st.integers(1, 80))
def test_the_parts_of_a_latin_square_are_disjoint_and_cover_the_block(
    sizes: list[int], dimensions: list[str], parts: int, limit: int | None
) -> None:
    found = [pair for part in in_parts(sizes, dimensions, parts, limit) for pair in part]
    (block,) = in_parts(sizes, dimensions, 1, limit)
    assert len(found) == len(set(found))
    assert set(found) == set(block)
    whole = sum(sizes) * len(dimensions)
    assert len(block) == min(whole, whole if limit is None else limit)


@given(SIZES, SOME_DIMENSIONS, st.integers(1, 9), st.none() | st.integers(1, 80), st.sampled_from([0, 1]))
def test_every_scenario_and_every_dimension_is_spread_evenly_over_the_parts(
    sizes: list[int], dimensions: list[str], parts: int, limit: int | None, kind: int
) -> None:
    scenarios, names = small_layout(sizes), tuple(dimensions)
    found = [
        Counter(
            (task.scenario, task.dimension)[kind]
            for task in tasks(
                scenarios, Selection(dimensions=names, limit=limit, part=(index, parts)), seed=3
            )
            if task.naming == "harmful"
        )
        for index in range(parts)
    ]
    for name in set().union(*found):
        counts = [part[name] for part in found]
        assert max(counts) - min(counts) <= 1


@given(SIZES, st.integers(1, 80))
def test_the_limit_of_a_latin_square_takes_fewer_scenarios_with_all_their_dimensions(
    sizes: list[int], limit: int
) -> None:
    scenarios = small_layout(sizes)
    (block,) = (
        [
            pair.scenario
            for pair in latin(spread(scenarios, DIMENSIONS, 1), Selection(limit=limit, part=(0, 1)))
        ],
    )
    counts = list(Counter(block).values())
    assert counts[:-1] == [len(DIMENSIONS)] * (len(counts) - 1)
    order = list(dict.fromkeys(pair.scenario for pair in spread(scenarios, DIMENSIONS, 1)))
    assert list(dict.fromkeys(block)) == order[: len(counts)]


def test_both_namings_and_all_epochs_of_a_pair_are_in_one_part() -> None:
    scenarios = small_layout([3, 2])
    home: dict[tuple[str, str], int] = {}
    for index in range(3):
        for task in tasks(scenarios, Selection(epochs=2, part=(index, 3)), seed=0):
            assert home.setdefault((task.scenario, task.dimension), index) == index
    assert len(home) == 5 * 6


@pytest.mark.parametrize("part", [(2, 2), (-1, 2), (0, 0)])
def test_a_part_that_there_is_not_is_refused(part: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match=r"part: must be like \(0, 2\), the first of two, found"):
        Selection(part=part).check(taxonomy())
