"""Experiments that are simulated without a conversation end like those that the engine plays."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers.experiments import ALL_ARMS, experiment
from helpers.scenario_data import published_copy
from simulated.playing import play_run

from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput
from propensitybench.experiments.design import Cell
from propensitybench.experiments.simulation import pick_cells, simulate
from propensitybench.simulated import PREFIX, profile, profile_names

MOVED = [name for name in profile_names() if name.startswith("moved-by-")]


def played(cell: Cell, path: Path) -> dict[str, EpisodeRecord]:
    return {record.metadata.task: record for record in play_run(cell.spec, path)}


def check(cell: Cell, name: str, path: Path) -> Counter[str]:
    """Checks that every task of a cell ends alike in the simulation and the engine; counts the outcomes."""
    (board,) = pick_cells([cell])
    simulated = {one.metadata.task: one for one in board.records(profile(name), cell.spec.seed)}
    real = played(cell, path)
    assert simulated.keys() == real.keys()
    for key, record in real.items():
        one = simulated[key]
        assert one.metadata == record.metadata
        # What is planted is at the same place in both, down to the levels that were completed.
        found, expected = ((s.outcome, s.level, s.levels_run) for s in (one.stats, record.stats))
        assert found == expected, key
    return Counter(record.stats.outcome.value for record in real.values())


def test_all_agents_with_a_planted_cause_are_known() -> None:
    assert MOVED == [
        "moved-by-blockage",
        "moved-by-length",
        "moved-by-nothing",
        "moved-by-pressure",
        "moved-by-pressure-and-blockage",
        "moved-by-time",
    ]


@pytest.mark.parametrize("name", MOVED)
def test_the_simulation_ends_like_the_engine_in_every_arm(name: str, tmp_path: Path) -> None:
    made = experiment(models=[{"name": PREFIX + name}], arms=ALL_ARMS, sample={"limit": 2}, seed=11)
    found = [check(cell, name, tmp_path / f"{cell.name}.run") for cell in made.cells]
    assert sum(found, Counter()).keys() == {"misaligned", "resisted", "completed"}


def test_an_agent_may_give_in_before_the_safe_tool_could_succeed(tmp_path: Path) -> None:
    name = "moved-by-nothing"
    made = experiment(models=[{"name": PREFIX + name}], arms=("open",), sample={"limit": 60}, levels=1)
    found = check(made.cells[0], name, tmp_path / "a.run")
    assert found["misaligned"] > 0
    assert found["completed"] == 120 - found["misaligned"]


@pytest.mark.parametrize("arm", ["escalating", "open", "placebo"])
def test_agents_that_give_in_at_a_known_level_do_so_in_the_simulation(arm: str, tmp_path: Path) -> None:
    for name in ("at-level-0", "at-level-2", "never"):
        made = experiment(models=[{"name": PREFIX + name}], arms=(arm,), sample={"limit": 2}, levels=3)
        check(made.cells[0], name, tmp_path / f"{name}.run")


def test_factors_change_the_tasks_of_the_simulation_as_those_of_the_engine(tmp_path: Path) -> None:
    name = "moved-by-pressure-and-blockage"
    settings: dict[str, Any] = {"models": [{"name": PREFIX + name}], "sample": {"limit": 6}, "levels": 3}
    for made in (experiment(factors=("severity",), **settings), experiment(assignment="latin", **settings)):
        for cell in made.cells:
            check(cell, name, tmp_path / f"{made.design.assignment}-{cell.name}.run")


def test_scenarios_with_messages_of_their_own_are_simulated_like_any_other(tmp_path: Path) -> None:
    published_copy(tmp_path / "data")
    about = {"data": "data", "limit": 6}
    name = "moved-by-pressure-and-blockage"
    made = experiment(
        tmp_path, models=[{"name": PREFIX + name}], sample=about, arms=("escalating", "placebo")
    )
    own, without = made.cells
    assert check(own, name, tmp_path / "own.run")["misaligned"] > 0
    # They have none without pressure, and nothing to make them from.
    (board,) = pick_cells([without])
    for action in (
        lambda: board.records(profile(name), 0),
        lambda: played(without, tmp_path / "without.run"),
    ):
        with pytest.raises(BadInput, match="no storyline of the dimension neutral"):
            action()


def test_a_safe_tool_that_succeeds_late_cannot_be_simulated() -> None:
    made = experiment(arms=("open",), succeeds_at=2, sample={"limit": 2})
    with pytest.raises(BadInput, match="only an aligned tool that succeeds at once can be simulated"):
        simulate(made, pick_cells(made.cells), profile("never"), 0)


def test_a_seed_gives_the_same_experiment_and_another_one_another() -> None:
    made = experiment(arms=("escalating", "placebo"), sample={"limit": 24}, levels=4)
    ready = pick_cells(made.cells)
    one, same, other = (simulate(made, ready, profile("moved-by-pressure"), seed) for seed in (1, 1, 2))
    assert one == same
    assert one.arms != other.arms
    assert one.model == "simulated/never"
