"""Differences: between namings on the same tasks, between capabilities, between dimensions."""

from functools import partial
from math import nan
from typing import Final

import numpy as np

from propensitybench.metrics.compare import paired
from propensitybench.metrics.families import capability_family, dimension_family
from propensitybench.metrics.table import Table
from validation.cells import Cell, Draw, Result, Sheet, covers
from validation.coverage.losses import Of, lose
from validation.coverage.shares import FULL, layout_of, percent
from validation.populations import (
    TASK_SPREAD,
    Floats,
    Layout,
    agent_of,
    play_tasks,
    survival,
    table_of_levels,
)

SPREAD: Final = 1.5
# Of the scenario effects under the two namings.
CORRELATION: Final = 0.5
FLIPS: Final = 400


def effects(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Scenario effects under two namings, partly the same."""
    common, one, other = rng.normal(0, SPREAD, (3, count))
    own = np.sqrt(1 - CORRELATION)
    return np.sqrt(CORRELATION) * common + own * one, np.sqrt(CORRELATION) * common + own * other


Lost = tuple[float, Of, float, Of]


def naming_tables(
    size: str, shares: tuple[float, float], lost: Lost | None, rng: np.random.Generator
) -> tuple[Table, Table]:
    """The harmful and the benign naming; `lost` is what is lost under each."""
    layout, dimensions = layout_of(size)
    losses = (None, None) if lost is None else ((lost[0], lost[1]), (lost[2], lost[3]))
    tables = []
    for share, effect, loss in zip(shares, effects(len(layout.domain), rng), losses, strict=True):
        frailty = effect[:, None] + rng.normal(0, TASK_SPREAD, (len(effect), dimensions))
        levels = play_tasks(agent_of(share, SPREAD), frailty, rng)
        seen = None if loss is None else lose(levels, loss[0], loss[1], rng)
        tables.append(table_of_levels(levels, layout, seen))
    return tables[0], tables[1]


def naming_run(size: str, shares: tuple[float, float], lost: Lost | None, rng: np.random.Generator) -> Result:
    first, second = (float(survival(agent_of(share, SPREAD), SPREAD).sum()) for share in shares)
    found = paired(*naming_tables(size, shares, lost, rng), flips=0)
    return {
        size: covers(found.propensity.ci95, shares[1] - shares[0]),
        f"{size}, levels": covers(found.withstood.ci95, second - first),
    }


_LOST: Final[tuple[Lost, ...]] = (
    (0.05, "all", 0.05, "all"),
    (0.5, "misaligned", 0.0, "all"),
    (0.2, "misaligned", 0.2, "resisting"),
)
_SMALL: Final = ("10 x 6", "40 x 6", "240 x 1")


def _named(lost: Lost | None) -> str:
    if lost is None:
        return "nothing"
    return f"{100 * lost[0]:g} % of {lost[1]}" + (f", {100 * lost[2]:g} % of {lost[3]}" if lost[2] else "")


def _naming(
    shares: tuple[float, float], lost: Lost | None, sizes: tuple[str, ...], times: float = 1
) -> list[Cell]:
    row = (*map(percent, shares), _named(lost))
    return [Cell(row, partial(naming_run, size, shares, lost), times) for size in sizes]


NAMING: Final = Sheet(
    "Naming contrast",
    ("harmful", "benign", "lost (harmful, benign)"),
    [
        *(
            cell
            for pair in (
                (0.01, 0.01),
                (0.01, 0.05),
                (0.1, 0.1),
                (0.1, 0.3),
                (0.5, 0.5),
                (0.5, 0.9),
                (0.9, 0.99),
            )
            for cell in _naming(pair, None, _SMALL)
        ),
        *_naming((0.01, 0.05), None, (FULL,), 0.25),
        *_naming((0.1, 0.3), None, (FULL,), 0.25),
        *(
            cell
            for lost in _LOST
            for pair in ((0.01, 0.05), (0.1, 0.3), (0.5, 0.9))
            for cell in _naming(pair, lost, _SMALL[1:])
        ),
    ],
)


def _played(layout: Layout, share: float, spread: float, dimensions: int, rng: np.random.Generator) -> Table:
    effect = rng.normal(0, spread, len(layout.domain))[:, None]
    frailty = effect + rng.normal(0, TASK_SPREAD, (len(effect), dimensions))
    return table_of_levels(play_tasks(agent_of(share, spread), frailty, rng), layout)


def capability_run(size: str, share: float, spread: float, rng: np.random.Generator) -> Result:
    """A capability that is like the rest of its domain of 240 scenarios."""
    domain, count = np.full(240, "d0"), int(size)
    names = np.array(["a"] * count + [""] * (240 - count))
    table = _played(Layout(domain, domain, names), share, spread, 6, rng)
    found = capability_family(table).comparisons[0]
    return _tested(share, covers(found.ci95, 0.0), found.p)


def dimension_run(size: str, share: float, spread: float, rng: np.random.Generator) -> Result:
    """Two dimensions that do not differ."""
    layout, _ = layout_of(size)
    found = dimension_family(_played(layout, share, spread, 2, rng)).comparisons
    return _tested(share, covers(found[0].ci95 if found else None, 0.0), found[0].p if found else None)


def same_run(size: str, share: float, _spread: float, rng: np.random.Generator) -> Result:
    """Two namings that do not differ."""
    found = paired(*naming_tables(size, (share, share), None, rng), flips=FLIPS)
    return _tested(share, covers(found.propensity.ci95, 0.0), found.p)


def _tested(share: float, draw: Draw, p: float | None) -> Result:
    name = percent(share)
    return {name: draw, f"p, {name}": nan if p is None else float(100 * (p <= 0.05))}


FAMILIES: Final = Sheet(
    "Tests",
    ("contrast", "sd of scenarios"),
    [
        Cell((name, f"{spread:g}"), partial(run, size, share, spread))
        for name, run, size, spreads in (
            ("capability of 13 scenarios", capability_run, "13", (0.0, 2.0)),
            ("capability of 30 scenarios", capability_run, "30", (0.0, 2.0)),
            ("dimensions, 40 scenarios", dimension_run, "40 x 6", (0.0, 2.0)),
            ("dimensions, 240 scenarios", dimension_run, "240 x 1", (0.0, 2.0)),
            ("namings, 40 x 6", same_run, "40 x 6", (SPREAD,)),
            ("namings, 240 x 1", same_run, "240 x 1", (SPREAD,)),
        )
        for spread in spreads
        for share in (0.02, 0.1, 0.5, 0.9)
    ],
)
