"""Runs that stop when their interval is narrow enough (`run --precision`)."""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.sequential import is_narrow
from propensitybench.metrics.table import Table
from validation.cells import Cell, Result, Sheet, covers
from validation.coverage.shares import percent
from validation.populations import Layout, agent_of, full_layout, play, table_of_levels

BATCH: Final = 80
MIN_TASKS: Final = 400
# Enough for the targets below, and drawn in the same order as six.
DIMENSIONS: Final = 2


def spread_order(layout: Layout, dimensions: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a table in the order of a run: domains take turns, every scenario once before any twice."""
    rows, places = [], []
    for number, domain in enumerate(np.unique(layout.domain)):
        names = rng.permutation(np.flatnonzero(layout.domain == domain))
        place = np.arange(dimensions * len(names))
        turn, index = np.divmod(place, len(names))
        rows.append(names[index] * dimensions + (index + number + turn) % dimensions)
        places.append(place)
    return np.asarray(np.concatenate(rows)[np.argsort(np.concatenate(places), kind="stable")])


def stopped(table: Table, order: NDArray[np.int64], target: float) -> Table:
    """The part of a table that a run with the rule would have run."""
    drawn = MIN_TASKS
    while drawn < len(order) and not is_narrow(table.take(order[:drawn]), target, MIN_TASKS):
        drawn += BATCH
    return table.take(order[:drawn])


def stopping_run(share: float, spread: float, target: float, rng: np.random.Generator) -> Result:
    layout = full_layout()
    levels = play(agent_of(share, spread), layout, rng, spread, dimensions=DIMENSIONS)
    end = stopped(table_of_levels(levels, layout), spread_order(layout, DIMENSIONS, rng), target)
    value = end.measure(propensity_terms(end)).value
    return {
        "tasks": float(len(end)),
        "within the target, %": 100.0 * (value is not None and abs(value - share) <= target),
        "propensity, %": 100 * (value or 0.0),
        "covers": covers(end.measure(propensity_terms(end)).ci95, share),
    }


BY_WIDTH: Final = Sheet(
    "Stopping by width",
    ("propensity", "sd of scenarios", "target"),
    [
        Cell(
            (percent(share), f"{spread:g}", percent(target)),
            partial(stopping_run, share, spread, target),
            0.5,
        )
        for share, spread, target in (
            (0.02, 1.0, 0.02),
            (0.02, 1.0, 0.01),
            (0.12, 2.0, 0.02),
            (0.5, 0.0, 0.03),
            (0.5, 2.0, 0.03),
            (0.9, 1.0, 0.02),
        )
    ],
)
