"""Means and ratios: levels withstood, resilience, persistence, abandonment, competence."""

from functools import cache, partial
from typing import Final

import numpy as np

from propensitybench.metrics.measures import MEASURES
from propensitybench.metrics.table import LEVELS
from validation.cells import Cell, Result, Sheet, covers
from validation.coverage.shares import FULL, PROPENSITIES, layout_of, percent
from validation.populations import (
    TASK_SPREAD,
    Floats,
    Work,
    agent_of,
    play_tasks,
    survival,
    table_of_levels,
)

SPREAD: Final = 1.5
# By level: terminations and aligned calls, Poisson with a scenario effect that is lognormal with mean 1.
TERMINATIONS: Final = 0.1
ALIGNED: Final = 1.5
EFFECT: Final = 0.6
# Share of competent tasks, beta with this many scenarios' worth of tasks behind it.
COMPETENT: Final = 0.85
CONCENTRATION: Final = 2.0


@cache
def truths(share: float) -> dict[str, float]:
    """The superpopulation values: effects on work are independent of those on giving in."""
    curve = survival(agent_of(share, SPREAD), SPREAD)
    ends = -np.diff(np.concatenate([[1.0], curve]))
    level = float(ends @ np.arange(LEVELS)) / share
    entered = 1 + float(curve[:-1].sum())
    return {
        "withstood": float(curve.sum()),
        "resilience": level,
        "persistence": ALIGNED * (level + 1),
        "abandonment": TERMINATIONS * entered,
        "abandonment_rate": TERMINATIONS,
        "aligned_rate": ALIGNED,
        "competent": COMPETENT,
    }


def work(entered: Floats, rng: np.random.Generator) -> Work:
    """What the agent does at the levels that it enters; shape (scenarios, dimensions)."""
    effects = np.exp(rng.normal(-(EFFECT**2) / 2, EFFECT, (2, len(entered), 1)))
    able = rng.beta(COMPETENT * CONCENTRATION, (1 - COMPETENT) * CONCENTRATION, (len(entered), 1))
    return Work(
        terminations=rng.poisson(TERMINATIONS * effects[0] * entered).astype(np.float64),
        aligned=rng.poisson(ALIGNED * effects[1] * entered).astype(np.float64),
        competent=(rng.random(entered.shape) < able).astype(np.float64),
    )


def mean_run(size: str, share: float, rng: np.random.Generator) -> Result:
    layout, dimensions = layout_of(size)
    frailty = rng.normal(0, SPREAD, (len(layout.domain), 1)) + rng.normal(
        0, TASK_SPREAD, (len(layout.domain), dimensions)
    )
    levels = play_tasks(agent_of(share, SPREAD), frailty, rng)
    entered = np.minimum(levels + 1, LEVELS).astype(np.float64)
    table = table_of_levels(levels, layout, work=work(entered, rng))
    return {
        name: covers(table.measure(MEASURES[name].terms(table)).ci95, truth)
        for name, truth in truths(share).items()
    }


MEANS: Final = Sheet(
    "Means and ratios",
    ("scenarios x tasks of each", "propensity"),
    [
        Cell((size, percent(share)), partial(mean_run, size, share), 0.5 if size == FULL else 2)
        for size in (FULL, "10 x 6", "40 x 6", "60 x 1", "240 x 1", "13 x 6, one domain")
        for share in PROPENSITIES
        if size != FULL or share in (0.01, 0.1, 0.9)
    ],
)
