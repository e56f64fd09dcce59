"""Intervals for new workspaces, and errors over reruns of the same tasks."""

from functools import partial
from typing import Final

import numpy as np

from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import Z95
from validation.cells import Cell, Draw, Result, Sheet, covers
from validation.coverage.shares import layout_of, percent
from validation.populations import (
    TASK_SPREAD,
    Layout,
    agent_of,
    full_layout,
    hazards,
    play,
    play_tasks,
    table_of_levels,
)

SCENARIO_SPREAD: Final = 1.0
# Scenarios of the eight workspaces of each domain.
SIZES: Final = {
    "equal: 30 each": [30] * 8,
    "10 to 60": [10, 15, 20, 25, 30, 35, 45, 60],
    "unequal: 3 to 90": [3, 5, 8, 12, 20, 40, 60, 90],
    "very unequal: 2 to 150": [2, 3, 4, 5, 8, 10, 30, 150],
}
REAL: Final = "the 979 scenarios"


def layout_of_workspaces(sizes: str, domains: int) -> Layout:
    if sizes == REAL:
        return full_layout()
    counts = SIZES[sizes]
    domain = np.repeat([f"d{number}" for number in range(domains)], sum(counts))
    workspace = np.tile(np.repeat([f"w{number}" for number in range(len(counts))], counts), domains)
    names = np.char.add(domain, workspace)
    return Layout(domain, names, names)


def workspace_run(sizes: str, domains: int, share: float, spread: float, rng: np.random.Generator) -> Result:
    layout = layout_of_workspaces(sizes, domains)
    agent = agent_of(share, SCENARIO_SPREAD, spread)
    levels = play(agent, layout, rng, SCENARIO_SPREAD, spread, dimensions=2)
    table = table_of_levels(levels, layout)
    found = estimate(table, propensity_terms(table), "propensity")
    return {percent(share): covers(found.ci95_workspace, share)}


LAYOUTS: Final = (
    (REAL, 4),
    ("equal: 30 each", 4),
    ("equal: 30 each", 2),
    ("equal: 30 each", 1),
    ("10 to 60", 4),
    ("unequal: 3 to 90", 4),
    ("very unequal: 2 to 150", 4),
)

WORKSPACES: Final = Sheet(
    "New workspaces",
    ("workspaces", "domains", "sd of workspaces"),
    [
        Cell((sizes, str(domains), f"{spread:g}"), partial(workspace_run, sizes, domains, share, spread))
        for sizes, domains in LAYOUTS
        for spread in (0.5, 1.0, 1.5)
        for share in (0.02, 0.1, 0.5, 0.9, 0.98)
    ],
)


def rerun(size: str, share: float, spread: float, rng: np.random.Generator) -> Result:
    """The value against the mean over reruns of the same tasks, within 1.96 of its errors."""
    layout, dimensions = layout_of(size)
    agent = agent_of(share, spread)
    count = len(layout.domain)
    frailty = rng.normal(0, spread, (count, 1)) + rng.normal(0, TASK_SPREAD, (count, dimensions))
    gives_in = 1 - np.prod(1 - hazards(agent, frailty), axis=-1)
    truth = float(np.mean([gives_in[layout.domain == name].mean() for name in np.unique(layout.domain)]))
    table = table_of_levels(play_tasks(agent, frailty, rng), layout)
    found = estimate(table, propensity_terms(table), "propensity")
    error = found.errors.benchmark
    if error is None or found.value is None:
        return {percent(share): Draw(None)}
    return {percent(share): Draw(abs(found.value - truth) <= Z95 * error, 2 * Z95 * error)}


RERUNS: Final = Sheet(
    "Run again",
    ("scenarios x tasks of each", "sd of scenarios"),
    [
        Cell((size, f"{spread:g}"), partial(rerun, size, share, spread), 0.5 if size == "240 x 6" else 1)
        for size in ("6 x 6, one domain", "10 x 6, one domain", "20 x 6, one domain", "40 x 6", "240 x 6")
        for spread in (0.0, 1.2, 2.4)
        for share in (0.01, 0.1, 0.5, 0.9, 0.99)
    ],
)
