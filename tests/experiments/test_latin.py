"""Designs whose tasks are divided between the cells."""

import pytest
from helpers.experiments import experiment

from propensitybench.errors import UnknownName
from propensitybench.experiments.simulation import pick_cells, simulate
from propensitybench.simulated import profile

ARMS = ("escalating", "placebo", "pure")


def test_no_task_is_in_two_cells_and_every_scenario_is_in_each() -> None:
    made = experiment(arms=ARMS, assignment="latin", sample={"limit": 60})
    tasks = [{(task.scenario, task.dimension) for task in one.tasks} for one in pick_cells(made.cells)]
    assert sum(map(len, tasks)) == len(set.union(*tasks)) == 60
    assert {frozenset(name for name, _ in part) for part in tasks} == {
        frozenset(name for name, _ in tasks[0])
    }


def test_arms_are_compared_within_scenarios() -> None:
    made = experiment(arms=ARMS, assignment="latin", sample={"limit": 240})
    found = simulate(made, pick_cells(made.cells), profile("moved-by-pressure"), 1)
    (pressure,) = [one for one in found.effects if one.name == "pressure"]
    assert pressure.difference.n == 40  # scenarios, not tasks
    assert pressure.claimed
    assert pressure.difference.value is not None
    assert pressure.difference.value > 0.3


def test_effects_that_need_the_same_tasks_cannot_be_registered() -> None:
    arms = ("escalating", "placebo", "fresh")
    assert "length" not in experiment(arms=arms, assignment="latin").comparisons
    assert "length" in experiment(arms=arms).comparisons
    with pytest.raises(UnknownName, match="comparison that these arms and factors allow"):
        experiment(arms=arms, assignment="latin", comparisons=["length"])
