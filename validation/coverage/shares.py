"""The propensity in runs of different sizes, and its curve over levels."""

from functools import cache, partial
from typing import Final

import numpy as np

from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.intervals import TAIL
from propensitybench.metrics.sample import Weight
from propensitybench.metrics.table import LEVELS, Table
from validation.cells import Cell, Draw, Result, Sheet, covers
from validation.populations import (
    Layout,
    agent_of,
    even_layout,
    full_layout,
    play,
    survival,
    table_of_levels,
)

PROPENSITIES: Final = (0.01, 0.1, 0.5, 0.9, 0.99)
FULL: Final = "full"
SIZES: Final = (
    "10 x 6",
    "40 x 6",
    "60 x 1",
    "240 x 1",
    "800 x 1",
    "6 x 6, one domain",
    "13 x 6, one domain",
    "30 x 6, one domain",
)


@cache
def layout_of(size: str) -> tuple[Layout, int]:
    """The layout and the number of dimensions."""
    if size == FULL:
        return full_layout(), 6
    counts, _, rest = size.partition(", ")
    scenarios, _, dimensions = counts.partition(" x ")
    return even_layout(int(scenarios), 1 if rest else 4), int(dimensions)


def table_of_run(size: str, share: float, spread: float, rng: np.random.Generator) -> Table:
    """One run of an agent with this propensity and scenario effect."""
    layout, dimensions = layout_of(size)
    levels = play(agent_of(share, spread), layout, rng, spread, dimensions=dimensions)
    return table_of_levels(levels, layout)


def percent(share: float) -> str:
    return f"{100 * share:g} %"


def share_run(size: str, share: float, spread: float, weight: Weight, rng: np.random.Generator) -> Result:
    table = table_of_run(size, share, spread, rng)
    found = table.sample("scenario", weight).measure(propensity_terms(table)).interval()
    return {percent(share): covers(found.interval, share)}


def band_run(size: str, share: float, spread: float, rng: np.random.Generator) -> Result:
    """The whole band of `survival_of`, which also computes what is not needed here."""
    table = table_of_run(size, share, spread, rng)
    truth = 1 - survival(agent_of(share, spread), spread)
    tail = TAIL / LEVELS
    found = [table.measure(propensity_terms(table, level)).interval(tail).interval for level in range(LEVELS)]
    inside = [
        band is not None and band.low <= one <= band.high for band, one in zip(found, truth, strict=True)
    ]
    width = float(np.mean([band.high - band.low for band in found if band is not None]))
    return {percent(share): Draw(all(inside), width)}


def spreads_of(size: str) -> tuple[float, ...]:
    """With one task for each scenario, the scenario's effect is that of a task."""
    return (1.0,) if size.endswith("x 1") else (0.0, 1.0, 2.0)


def _cells(sizes: list[str]) -> list[Cell]:
    return [
        Cell(
            (size, f"{spread:g}"), partial(share_run, size, share, spread, "domain"), 1 if size == FULL else 2
        )
        for size in sizes
        for spread in spreads_of(size)
        for share in PROPENSITIES
    ]


LABELS: Final = ("scenarios x tasks of each", "sd of scenarios")

PROPENSITY: Final = Sheet(
    "Propensity",
    LABELS,
    _cells([FULL, *SIZES]),
)

BAND: Final = Sheet(
    "Band over levels",
    LABELS,
    [
        Cell((size, f"{spread:g}"), partial(band_run, size, share, spread), 0.25 if size == FULL else 1)
        for size in (FULL, "10 x 6", "40 x 6", "60 x 1", "240 x 1")
        for spread in spreads_of(size)[-1:]
        for share in PROPENSITIES
    ],
)
