"""Simulated tables of known truth: agents with a hazard at each level, on the layout of the full data set."""

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from propensitybench.metrics.censoring import Episodes
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


def even_layout(scenarios: int, domains: int = 4) -> Layout:
    """So many scenarios in all, spread evenly over domains of eight workspaces each."""
    place = np.arange(scenarios)
    domain = np.array([f"d{number}" for number in place % domains])
    workspace = np.array([f"d{number % domains}w{number // domains % 8}" for number in place])
    return Layout(domain, workspace, np.full(scenarios, "c"))


@cache
def agent_of(share: float, *spreads: float) -> Agent:
    """The agent with this propensity, its hazards in the ratio of those of `O3_LIKE`."""

    def moved(shift: float) -> Agent:
        return Agent(O3_LIKE.first + shift, O3_LIKE.later + shift)

    return moved(brentq(lambda shift: propensity(moved(shift), *spreads) - share, -20, 30))


def hazards(agent: Agent, frailty: Floats) -> Floats:
    """The hazard at each level for each frailty; shape (..., 13)."""
    logits = np.array([agent.first] + [agent.later] * (LEVELS - 1))
    return np.asarray(1 / (1 + np.exp(-(logits + frailty[..., None]))))


@cache
def survival(agent: Agent, *spreads: float) -> Floats:
    """The superpopulation survival curve, given the standard deviations of the effects besides the task's."""
    spread = float(np.sqrt(sum(value**2 for value in spreads) + TASK_SPREAD**2))
    grid = np.linspace(-8, 8, 4001)
    weight = np.exp(-(grid**2) / 2)
    return np.asarray(weight @ np.cumprod(1 - hazards(agent, spread * grid), axis=-1) / weight.sum())


def propensity(agent: Agent, *spreads: float) -> float:
    """The superpopulation propensity, given the standard deviations of the effects besides the task's."""
    return float(1 - survival(agent, *spreads)[-1])


def play(
    agent: Agent,
    layout: Layout,
    rng: np.random.Generator,
    scenario_spread: float,
    workspace_spread: float = 0,
    dimensions: int = DIMENSIONS,
) -> NDArray[np.int64]:
    """Levels of the misaligned call, 13 for none; shape (scenarios, dimensions)."""
    count = len(layout.domain)
    names, workspace = np.unique(layout.workspace, return_inverse=True)
    frailty = rng.normal(0, scenario_spread, count) + rng.normal(0, workspace_spread, len(names))[workspace]
    return play_tasks(agent, frailty[:, None] + rng.normal(0, TASK_SPREAD, (count, dimensions)), rng)


def play_tasks(agent: Agent, frailty: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Levels of the misaligned call of tasks with these frailties, 13 for none."""
    # The level at which survival falls below a uniform number: faster than a draw for every level.
    survives = np.cumprod(1 - hazards(agent, frailty), axis=-1)
    return np.asarray((survives > rng.random((*frailty.shape, 1))).sum(axis=-1))


class Work(NamedTuple):
    """What the agent does besides; shape (scenarios, dimensions)."""

    terminations: Floats
    aligned: Floats
    competent: Floats


def table_of_levels(
    levels: NDArray[np.int64],
    layout: Layout,
    seen: NDArray[np.int64] | None = None,
    *,
    earliest: NDArray[np.int64] | None = None,
    work: Work | None = None,
    storyline: NDArray[np.str_] | None = None,
) -> Table:
    """A table with one epoch a unit.

    Args:
        levels: of the misaligned call, 13 for none; shape (scenarios, dimensions).
        layout: of the scenarios.
        seen: number of levels observed before the episode was lost, -1 where it was not; same shape.
        earliest: if given, lost episodes are unfinished ones, which may give in from this level on.
        work: what the agent does besides; by default, it is competent and does nothing.
        storyline: names of the same shape; by default, scenarios have messages of their own.
    """
    scenario, dimension = (place.ravel() for place in np.indices(levels.shape))
    level = levels.ravel().astype(np.float64)
    observed = np.full(len(level), -1) if seen is None else seen.ravel()
    lost = observed >= 0
    failed = ((level < LEVELS) & ~lost).astype(np.float64)
    entered = np.where(lost, observed, np.minimum(level + 1, LEVELS)).astype(np.float64)
    gave_in = np.where(failed > 0, level, np.inf)
    domain = layout.domain[scenario]
    stopped = lost & (earliest is not None)
    open_from = entered if earliest is None else earliest.ravel()
    steps = np.arange(LEVELS)
    ends = (gave_in[:, None] == steps).astype(np.float64)
    at_risk = (entered[:, None] > steps).astype(np.float64)
    zeros = np.zeros(len(level))
    unknown = np.where(lost, np.nan, 1.0)
    terminations, aligned, competent = (
        (zeros, zeros, unknown) if work is None else (column.ravel() for column in work)
    )
    return Table(
        domain=domain,
        workspace=layout.workspace[scenario],
        role=np.full(len(level), "role", dtype=np.str_),
        capability=layout.capability[scenario],
        dimension=dimension.astype(np.str_),
        scenario=np.array([str(number) for number in range(len(levels))])[scenario],
        storyline=np.full(len(level), "") if storyline is None else storyline.ravel(),
        finished=(~lost).astype(np.float64),
        blocked=zeros,
        truncated=zeros,
        errored=(lost & ~stopped).astype(np.float64),
        unfinished=stopped.astype(np.float64),
        episodes=Episodes(
            np.arange(len(level)),
            domain,
            gave_in,
            entered,
            np.where(lost, open_from, np.inf),
            (competent > 0) & ~lost,
            LEVELS,
        ),
        terminations=terminations * unknown,
        aligned=aligned * unknown,
        entered=entered * unknown,
        competent=competent * unknown,
        competent_misaligned=competent * failed * unknown,
        failure_level=np.where(failed > 0, level, 0.0),
        failure_aligned=np.where(failed > 0, aligned, 0.0),
        ends=ends,
        at_risk=at_risk,
        noise=np.full(len(level), np.nan),
    )
