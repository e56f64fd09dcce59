"""Differences: between namings on the same tasks, between capabilities, between dimensions."""

from functools import partial
from math import nan
from typing import Final

import numpy as np
from helpers.coverage.cells import Cell, Result, Sheet, covers
from helpers.coverage.losses import Of, lose
from helpers.coverage.shares import FULL, layout_of, percent
from helpers.populations import TASK_SPREAD, Floats, Layout, agent_of, play_tasks, table_of_levels

from propensitybench.metrics.compare import paired
from propensitybench.metrics.families import capability_family, dimension_family
from propensitybench.metrics.table import Table

SPREAD: Final = 1.5
# Of the scenario effects under the two namings.
CORRELATION: Final = 0.5
FLIPS: Final = 400


def effects(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Scenario effects under two namings, partly the same."""
    common, one, other = rng.normal(0, SPREAD, (3, count))
    own = np.sqrt(1 - CORRELATION)
    return np.sqrt(CORRELATION) * common + own * one, np.sqrt(CORRELATION) * common + own * other


def naming_run(
    size: str, shares: tuple[float, float], lost: tuple[float, Of, float, Of] | None, rng: np.random.Generator
) -> Result:
    """The benign minus the harmful naming; `lost` is what is lost under the harmful and the benign one."""
    layout, dimensions = layout_of(size)
    tables = []
    for number, (share, effect) in enumerate(zip(shares, effects(len(layout.domain), rng), strict=True)):
        frailty = effect[:, None] + rng.normal(0, TASK_SPREAD, (len(effect), dimensions))
        levels = play_tasks(agent_of(share, SPREAD), frailty, rng)
        seen = None if lost is None else lose(levels, lost[2 * number], lost[2 * number + 1], rng)
        tables.append(table_of_levels(levels, layout, seen))
    same = shares[0] == shares[1] and lost is None and size != FULL
    found = paired(*tables, flips=FLIPS if same else 0)
    return {
        "covers": covers(found.propensity.ci95, shares[1] - shares[0]),
        "p <= .05": nan if found.p is None else float(100 * (found.p <= 0.05)),
    }


_PAIRS: Final = ((0.01, 0.01), (0.01, 0.05), (0.1, 0.1), (0.1, 0.3), (0.5, 0.5), (0.5, 0.9), (0.9, 0.99))
_LOST: Final[tuple[tuple[float, Of, float, Of], ...]] = (
    (0.05, "all", 0.05, "all"),
    (0.5, "misaligned", 0.0, "all"),
    (0.2, "misaligned", 0.2, "resisting"),
)


def _named(lost: tuple[float, Of, float, Of]) -> str:
    return f"{100 * lost[0]:g} % of {lost[1]}; {100 * lost[2]:g} % of {lost[3]}"


NAMING: Final = Sheet(
    "Naming contrast",
    "Benign minus harmful on the same tasks; *lost* under the harmful and under the benign naming.",
    ("harmful", "benign", "scenarios x tasks of each", "lost"),
    [
        Cell((percent(pair[0]), percent(pair[1]), size, "nothing"), partial(naming_run, size, pair, None))
        for pair in _PAIRS
        for size in ("10 x 6", "40 x 6", "240 x 1", FULL)
        if size != FULL or pair in ((0.01, 0.05), (0.1, 0.3))
    ]
    + [
        Cell((percent(pair[0]), percent(pair[1]), size, _named(lost)), partial(naming_run, size, pair, lost))
        for lost in _LOST
        for pair in ((0.01, 0.05), (0.1, 0.3), (0.5, 0.9))
        for size in ("40 x 6", "240 x 1")
    ],
)


def _played(layout: Layout, share: float, spread: float, dimensions: int, rng: np.random.Generator) -> Table:
    effect = rng.normal(0, spread, len(layout.domain))[:, None]
    frailty = effect + rng.normal(0, TASK_SPREAD, (len(effect), dimensions))
    return table_of_levels(play_tasks(agent_of(share, spread), frailty, rng), layout)


def capability_run(count: int, share: float, spread: float, rng: np.random.Generator) -> Result:
    """A capability that is like the rest of its domain of 240 scenarios."""
    domain = np.full(240, "d0")
    names = np.array(["a"] * count + [""] * (240 - count))
    table = _played(Layout(domain, domain, names), share, spread, 6, rng)
    found = capability_family(table).comparisons[0]
    return {
        "covers": covers(found.ci95, 0.0),
        "p <= .05": float(100 * (found.p <= 0.05)),
    }


def dimension_run(size: str, share: float, spread: float, rng: np.random.Generator) -> Result:
    """Two dimensions that do not differ."""
    layout, _ = layout_of(size)
    found = dimension_family(_played(layout, share, spread, 2, rng)).comparisons
    if not found:
        return {"covers": covers(None, 0.0), "p <= .05": nan}
    return {"covers": covers(found[0].ci95, 0.0), "p <= .05": float(100 * (found[0].p <= 0.05))}


FAMILIES: Final = Sheet(
    "Families",
    "Without any difference: a capability against the rest of its domain of 240 scenarios, and two "
    "dimensions on the same scenarios. `p <= .05` is the share of false findings in percent.",
    ("contrast", "propensity", "sd of scenarios"),
    [
        Cell(
            (f"capability of {count}", percent(share), f"{spread:g}"),
            partial(capability_run, count, share, spread),
        )
        for count in (13, 30)
        for share in (0.02, 0.1, 0.5, 0.9)
        for spread in (0.0, 2.0)
    ]
    + [
        Cell(
            (f"dimensions, {size.split(' ')[0]} scenarios", percent(share), f"{spread:g}"),
            partial(dimension_run, size, share, spread),
        )
        for size in ("40 x 6", "240 x 1", "800 x 1")
        for share in (0.02, 0.1, 0.5, 0.9)
        for spread in (0.0, 2.0)
    ],
)
