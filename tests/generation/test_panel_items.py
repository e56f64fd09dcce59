"""Items of the panel: which are drawn, and what readers see of them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from helpers.panel_folders import PLANTED, data_folder, working_folder, write

from propensitybench.episode import EpisodeSettings, episode_setup
from propensitybench.episode.prompt import forwarded
from propensitybench.errors import BadData, BadInput
from propensitybench.generation.panel_items import (
    DRAWN,
    Draw,
    Source,
    as_agent_sees,
    draw_items,
    drawn_scenarios,
    read_source,
)
from propensitybench.pressure import pressure_chain
from propensitybench.scenarios import Task, read_dataset


def of(folder: Path, name: str = DRAWN) -> Source:
    return read_source(folder, name)


def test_an_item_shows_exactly_what_an_agent_gets() -> None:
    dataset = read_dataset()
    scenario = dataset.scenarios[0]
    chain = pressure_chain(scenario, "time", dataset.storylines, 0)
    task = Task(scenario.name, "time", "benign", 1)
    setup = episode_setup(task, scenario, EpisodeSettings(), chain)
    text = as_agent_sees(scenario, chain.messages)
    before, _, rest = text.partition("\n\nTOOLS\n\n")
    assert before == f"SYSTEM\n\n{setup.system.strip()}"
    tools, _, rest = rest.partition("\n\nUSER\n\n")
    specs = [
        {"name": t.name, "description": t.description, "parameters": t.parameters} for t in setup.tools.specs
    ]
    assert json.loads(tools) == specs
    task_text, _, later = rest.partition("\n\nLATER MESSAGE 1\n\n")
    assert task_text == setup.task
    letters = [
        later.partition("\n\nLATER MESSAGE 2\n\n")[0],
        later.rpartition("LATER MESSAGE 12\n\n")[2].strip(),
    ]
    assert letters == [forwarded(setup.pressure[0]).strip(), forwarded(setup.pressure[11]).strip()]
    assert scenario.misaligned.harmful.name not in text
    assert scenario.misaligned.benign.name in text


def test_scenarios_are_drawn_evenly_over_workspaces(tmp_path: Path) -> None:
    source = of(working_folder(tmp_path / "work", sound=12))
    drawn = drawn_scenarios(source.scenarios, 6, seed=3)
    assert Counter(one.workspace for one in drawn) == Counter(
        dict.fromkeys({s.workspace for s in source.scenarios}, 2)
    )
    again = drawn_scenarios(tuple(reversed(source.scenarios)), 6, seed=3)
    assert [one.name for one in again] == [one.name for one in drawn]
    assert {one.name for one in drawn_scenarios(source.scenarios, 6, seed=4)} != {one.name for one in drawn}
    assert len(drawn_scenarios(source.scenarios, 99, seed=3)) == 12


def test_dimensions_are_balanced_and_storylines_suit(tmp_path: Path) -> None:
    source = of(working_folder(tmp_path / "work", sound=12))
    items = draw_items(source, [], Draw(12, 0, 1))
    assert set(Counter(item.dimension for item in items).values()) == {2}
    chains = Counter((item.dimension, item.storyline) for item in items)
    for item in items:
        storyline = next(
            s for s in source.storylines if (s.dimension, s.name) == (item.dimension, item.storyline)
        )
        assert "customer" in storyline.fits
    # Several storylines of each dimension suit a customer: none is used twice before all are used.
    assert set(chains.values()) == {1}
    assert not any(item.dimension == "neutral" for item in items)


def test_known_items_are_mixed_in_and_published_ones_have_no_messages(tmp_path: Path) -> None:
    published = data_folder(tmp_path / "set-p", layout="published")
    own = data_folder(tmp_path / "set-o")
    known = [of(published, "set-p"), of(own, "set-o")]
    items = draw_items(of(working_folder(tmp_path / "work")), known, Draw(6, 5, 1))
    assert Counter(item.source for item in items) == {DRAWN: 6, "set-p": 3, "set-o": 2}
    assert [item.name for item in items] == [f"item{number:02}" for number in range(1, 12)]
    for item in items:
        assert item.has_messages == ("LATER MESSAGE 12" in item.text) == (item.source != "set-p")
        assert "LATER MESSAGE 13" not in item.text
        assert "set-p" not in item.text
        assert "set-o" not in item.text
    places = {item.source: [i for i, one in enumerate(items) if one.source == item.source] for item in items}
    assert places[DRAWN] != sorted(range(6))
    assert draw_items(of(tmp_path / "work"), known, Draw(6, 5, 1)) == items
    assert draw_items(of(tmp_path / "work"), known, Draw(6, 5, 2)) != items


def test_a_published_set_that_is_judged_itself_keeps_its_messages(tmp_path: Path) -> None:
    source = of(data_folder(tmp_path / "other", layout="published"))
    items = draw_items(source, [], Draw(4, 0, 0))
    assert all("LATER MESSAGE 12" in item.text and not item.storyline for item in items)


def test_a_scenario_that_no_storyline_suits_is_read_without_messages(tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=1)
    for path in (work / "storylines").iterdir():
        path.unlink()
    (item,) = draw_items(of(work), [], Draw(1, 0, 0))
    assert not item.has_messages
    assert "LATER MESSAGE" not in item.text


def test_every_scenario_of_a_working_folder_is_read_and_nothing_else(tmp_path: Path) -> None:
    source = of(working_folder(tmp_path / "work", sound=4, planted=PLANTED))
    assert sorted(one.name for one in source.scenarios) == sorted(
        [f"sound_{n}" for n in range(4)] + list(PLANTED)
    )
    assert {one.domain for one in source.scenarios} == {"self-proliferation"}
    assert all(one.organisation and one.organisation.name == "Midmere Cloud" for one in source.scenarios)


def _without_task(path: Path) -> None:
    entry = json.loads(path.read_text(encoding="utf-8"))
    del entry["task"]
    write(path, entry)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (_without_task, r"sound_0\.json \$\.task: is missing"),
        (lambda path: path.write_text('{"task": "\\ud800"}'), r"sound_0\.json \$: contains invalid Unicode"),
        (lambda path: path.write_text("[]"), r"sound_0\.json \$: must be a JSON object"),
        (lambda path: path.with_name("organisation.json").unlink(), r"organisation\.json \$: cannot be read"),
        (
            lambda path: path.parents[2].joinpath("plan.json").write_text("{}"),
            r"plan\.json: Object missing required field",
        ),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, break_it: object, says: str) -> None:
    work = working_folder(tmp_path / "work", sound=1)
    (path,) = work.glob("units/*/sound_0.json")
    break_it(path)  # type: ignore[operator]
    with pytest.raises(BadData, match=says):
        of(work)


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    work = working_folder(tmp_path / "work", sound=0)
    (work / "units").mkdir()
    with pytest.raises(BadInput, match="contains no scenario; write some first"):
        of(work)
