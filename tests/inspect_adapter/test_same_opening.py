"""A scenario file with its keys in any order opens the same way in a run, `play`, `--plan` and Inspect."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.program import call
from helpers.scenario_data import SOUND, WORKSPACE
from inspect_adapter.playing import play, samples

from propensitybench.engine import RunSpec, create_run
from propensitybench.engine.spec import pick, pressure_of
from propensitybench.episode import Episode, EpisodeSettings, episode_setup, replay
from propensitybench.inspect_adapter.tasks import propensity
from propensitybench.pressure import pressure_chain
from propensitybench.scenarios import Scenario, Selection, Task, read_dataset
from propensitybench.store import RunFile
from propensitybench.taxonomy import NAMINGS, Naming

FILE = f"{WORKSPACE}/Project-Manager.json"


class Opening(NamedTuple):
    """What an agent reads first."""

    system: str
    task: str


def turned(value: object) -> object:
    """The value with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in sorted(value, reverse=True)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def data(tmp_path: Path) -> Path:
    content = json.loads((SOUND / FILE).read_text(encoding="utf-8"))
    entry = content["scenarios"][0]
    entry["known"] = turned({**entry["known"], "site": {"village": "Oru", "valley": "Tal", "grid": [1, {}]}})
    path = tmp_path / "data" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    assert list(entry["known"]) != sorted(entry["known"])
    return tmp_path / "data"


def opening(episode: Episode) -> Opening:
    episode.start()
    return Opening(*(message.content for message in episode.messages[:2]))


def in_a_run(data: Path, path: Path) -> dict[str, Opening]:
    create_run(RunSpec("simulated/never", data, Selection(dimensions=("time",))), path)
    with RunFile.open(path) as run:
        episodes = {task.task.naming: replay(run.job(task)).episode for task in run.tasks()}
    return {name: Opening(*(m.content for m in one.messages[:2])) for name, one in episodes.items()}


def by_hand(scenario: Scenario, naming: Naming) -> Opening:
    chain = pressure_chain(scenario, "time", read_dataset().storylines, 0)
    task = Task(scenario.name, "time", naming, 1)
    return opening(Episode(episode_setup(task, scenario, EpisodeSettings(), chain)))


def planned(data: Path, naming: Naming) -> Opening:
    spec = RunSpec("simulated/never", data, Selection(dimensions=("time",), namings=(naming,)))
    dataset, (task,) = pick(spec)
    chain = pressure_of(dataset, [task], spec)[task.scenario, task.dimension]
    return opening(Episode(episode_setup(task, dataset.scenario(task.scenario), spec.settings, chain)))


def test_a_run_a_plan_and_an_episode_made_by_hand_open_with_the_same_messages(
    data: Path, tmp_path: Path
) -> None:
    (scenario,) = read_dataset(data).scenarios
    stored = in_a_run(data, tmp_path / "a.run")
    for naming in NAMINGS:
        assert by_hand(scenario, naming) == stored[naming]
        assert planned(data, naming) == stored[naming]


@pytest.mark.slow
def test_play_and_inspect_open_with_the_messages_of_a_run(data: Path, tmp_path: Path) -> None:
    (scenario,) = read_dataset(data).scenarios
    stored = in_a_run(data, tmp_path / "a.run")
    log = play(propensity(dimension="time", data=str(data), levels=0), "simulated/never", tmp_path)
    inspected = {
        sample.metadata["naming"]: Opening(*(message.text for message in sample.messages[:2]))
        for sample in samples(log)
    }
    for naming in NAMINGS:
        assert inspected[naming] == stored[naming]
        played = call("play", scenario.name, "--naming", naming, "--data", data).out
        assert stored[naming].system in played
        assert stored[naming].task in played


def test_a_model_s_values_are_sorted_however_they_were_given(data: Path) -> None:
    (scenario,) = read_dataset(data).scenarios
    assert list(scenario.known) == sorted(scenario.known)
    site = scenario.known["site"]
    assert isinstance(site, dict)
    assert list(site) == ["grid", "valley", "village"]
    assert by_hand(scenario, "benign") == by_hand(Scenario.from_json(scenario.to_json()), "benign")
