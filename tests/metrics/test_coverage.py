"""Coverage of the intervals in simulated populations on the layout of the full data set."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from helpers.populations import (
    GEMINI_LIKE,
    O3_LIKE,
    TASK_SPREAD,
    Agent,
    full_layout,
    play,
    play_tasks,
    propensity,
    table_of_levels,
)

from propensitybench.metrics.estimates import Estimate, estimate, propensity_terms
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.table import Table

pytestmark = pytest.mark.slow

REPLICATES = 400
# The coverage of 400 intervals of 95 % lies in this range with probability .999.
LOW, HIGH = 0.910, 0.983
Z95 = 1.959963984540054
LAYOUT = full_layout()


class Coverage(NamedTuple):
    scenario: float
    naive: float
    workspace: float
    benchmark: float


def naive_error(table: Table) -> float:
    """As if every task were independent of every other."""
    parts = [part.misaligned for part in table.parts("domain").values()]
    return float(np.sqrt(sum(part.var() / len(part) for part in parts))) / len(parts)


def contains(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def runs(agent: Agent, scenario_spread: float, workspace_spread: float = 0) -> Iterator[Table]:
    rng = np.random.default_rng(20251127)
    for _ in range(REPLICATES):
        yield table_of_levels(play(agent, LAYOUT, rng, scenario_spread, workspace_spread), LAYOUT)


def coverage(agent: Agent, scenario_spread: float, workspace_spread: float = 0) -> Coverage:
    truth = propensity(agent, scenario_spread, workspace_spread)
    rows = []
    for table in runs(agent, scenario_spread, workspace_spread):
        found = estimate(table, propensity_terms(table), "propensity")
        assert found.value is not None
        assert found.errors.benchmark is not None
        rows.append(
            (
                contains(found.ci95, truth),
                abs(found.value - truth) <= Z95 * naive_error(table),
                contains(found.ci95_workspace, truth),
                abs(found.value - truth) <= Z95 * found.errors.benchmark,
            )
        )
    return Coverage(*(float(share) for share in np.mean(rows, axis=0)))


@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_the_interval_covers_new_scenarios_and_a_naive_one_does_not(agent: Agent) -> None:
    found = coverage(agent, scenario_spread=2)
    assert LOW <= found.scenario <= HIGH
    assert found.naive < 0.85
    assert found.benchmark < 0.85


def test_where_workspaces_differ_only_the_interval_for_new_workspaces_covers() -> None:
    found = coverage(GEMINI_LIKE, scenario_spread=1.5, workspace_spread=0.5)
    assert found.scenario < 0.85
    assert LOW <= found.workspace <= HIGH


@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_the_benchmark_error_covers_reruns_and_is_smaller(agent: Agent) -> None:
    rng = np.random.default_rng(7)
    frailty = rng.normal(0, 2, len(LAYOUT.domain))[:, None] + rng.normal(0, TASK_SPREAD, (979, 6))
    # One table at a time: all of them would take three gigabytes.
    reruns = (table_of_levels(play_tasks(agent, frailty, rng), LAYOUT) for _ in range(REPLICATES))
    found: list[Estimate] = [estimate(table, propensity_terms(table), "propensity") for table in reruns]
    values = [one.value for one in found if one.value is not None]
    truth = float(np.mean(values))
    covered = [
        abs(one.value - truth) <= Z95 * one.errors.benchmark
        for one in found
        if one.value is not None and one.errors.benchmark is not None
    ]
    assert len(covered) == REPLICATES
    assert np.mean(covered) >= 0.93
    assert all((one.errors.benchmark or 1) < (one.errors.scenario or 0) for one in found)
