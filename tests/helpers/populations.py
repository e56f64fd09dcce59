"""Simulated tables of known truth: agents with a hazard at each level, on the layout of the full data set."""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.censoring import Episodes, endings
from propensitybench.metrics.table import LEVELS, Table
from propensitybench.taxonomy import taxonomy

DIMENSIONS: Final = 6
# Standard deviation of tasks around their scenario, on the logit scale.
TASK_SPREAD: Final = 0.5
Floats = NDArray[np.float64]


class Agent(NamedTuple):
    """Hazards on the logit scale: at level 0, and at each later level."""

    first: float
    later: float


# Near the published overall propensities under the harmful naming.
O3_LIKE: Final = Agent(-5.0, -6.1)
GEMINI_LIKE: Final = Agent(-0.6, -1.1)


class Layout(NamedTuple):
    """Domain, workspace and capability of each scenario, as in the published allocation."""

    domain: NDArray[np.str_]
    workspace: NDArray[np.str_]
    capability: NDArray[np.str_]


def full_layout() -> Layout:
    """The 979 scenarios of the allocation."""
    slots = taxonomy().allocation
    columns = (
        [slot.domain for slot in slots],
        [slot.workspace for slot in slots],
        [slot.capability for slot in slots],
    )
    return Layout(*(np.array(column, dtype=np.str_) for column in columns))


def hazards(agent: Agent, frailty: Floats) -> Floats:
    """The hazard at each level for each frailty; shape (..., 13)."""
    logits = np.array([agent.first] + [agent.later] * (LEVELS - 1))
    return np.asarray(1 / (1 + np.exp(-(logits + frailty[..., None]))))


def propensity(agent: Agent, *spreads: float) -> float:
    """The superpopulation propensity, given the standard deviations of the effects besides the task's."""
    spread = float(np.sqrt(sum(value**2 for value in spreads) + TASK_SPREAD**2))
    grid = np.linspace(-8, 8, 4001)
    weight = np.exp(-(grid**2) / 2)
    survives = np.prod(1 - hazards(agent, spread * grid), axis=-1)
    return float(1 - (weight @ survives) / weight.sum())


def play(
    agent: Agent,
    layout: Layout,
    rng: np.random.Generator,
    scenario_spread: float,
    workspace_spread: float = 0,
) -> NDArray[np.int64]:
    """Levels of the misaligned call, 13 for none; shape (scenarios, 6)."""
    count = len(layout.domain)
    names, workspace = np.unique(layout.workspace, return_inverse=True)
    frailty = rng.normal(0, scenario_spread, count) + rng.normal(0, workspace_spread, len(names))[workspace]
    return play_tasks(agent, frailty[:, None] + rng.normal(0, TASK_SPREAD, (count, DIMENSIONS)), rng)


def play_tasks(agent: Agent, frailty: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Levels of the misaligned call of tasks with these frailties, 13 for none."""
    fails = rng.random((*frailty.shape, LEVELS)) < hazards(agent, frailty)
    return np.where(fails.any(axis=-1), fails.argmax(axis=-1), LEVELS)


def table_of_levels(
    levels: NDArray[np.int64],
    layout: Layout,
    seen: NDArray[np.int64] | None = None,
    *,
    ignorable: bool = False,
) -> Table:
    """A table with one epoch a unit.

    Args:
        levels: of the misaligned call, 13 for none; shape (scenarios, dimensions).
        layout: of the scenarios.
        seen: number of levels observed before the episode was lost, -1 where it was not; same shape.
        ignorable: whether lost episodes are unfinished ones, not errored ones.
    """
    scenario, dimension = (place.ravel() for place in np.indices(levels.shape))
    level = levels.ravel().astype(np.float64)
    observed = np.full(len(level), -1) if seen is None else seen.ravel()
    lost = observed >= 0
    failed = ((level < LEVELS) & ~lost).astype(np.float64)
    entered = np.where(lost, observed, np.minimum(level + 1, LEVELS)).astype(np.float64)
    gave_in = np.where(failed > 0, level, np.inf)
    domain = layout.domain[scenario]
    episodes = Episodes(np.arange(len(level)), domain, gave_in, entered, LEVELS)
    censored = lost & (not ignorable)
    low = replace(episodes, entered=np.where(censored, LEVELS, entered))
    high = replace(
        episodes,
        gave_in=np.where(censored, entered, gave_in),
        entered=np.where(censored, entered + 1, entered),
    )
    ends = (gave_in[:, None] == np.arange(LEVELS)).astype(np.float64)
    at_risk = (entered[:, None] > np.arange(LEVELS)).astype(np.float64)
    zeros = np.zeros(len(level))
    unknown = np.where(lost, np.nan, 1.0)
    return Table(
        domain=domain,
        workspace=layout.workspace[scenario],
        role=np.full(len(level), "role", dtype=np.str_),
        capability=layout.capability[scenario],
        dimension=dimension.astype(np.str_),
        scenario=scenario.astype(np.str_),
        finished=(~lost).astype(np.float64),
        blocked=zeros,
        truncated=zeros,
        errored=censored.astype(np.float64),
        unfinished=(lost & ignorable).astype(np.float64),
        seen=endings(episodes),
        low=endings(low),
        high=endings(high),
        terminations=zeros * unknown,
        aligned=zeros * unknown,
        entered=entered * unknown,
        competent=unknown,
        competent_misaligned=failed * unknown,
        failure_level=np.where(failed > 0, level, 0.0),
        failure_aligned=zeros,
        ends=ends,
        at_risk=at_risk,
        survived=at_risk - ends,
        noise=np.full(len(level), np.nan),
    )
