"""The propensity where episodes were lost."""

from functools import partial
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.table import LEVELS
from validation.cells import Cell, Result, Sheet, covers
from validation.coverage.shares import FULL, PROPENSITIES, layout_of, percent
from validation.populations import agent_of, play, table_of_levels

Levels = NDArray[np.int64]
Of = Literal["all", "misaligned", "resisting"]


def lose(levels: Levels, share: float, of: Of, rng: np.random.Generator) -> Levels:
    """Levels observed before an error, -1 for none; it strikes at a random one of the levels entered."""
    eligible = {"all": levels <= LEVELS, "misaligned": levels < LEVELS, "resisting": levels == LEVELS}[of]
    strikes = rng.integers(0, np.minimum(levels, LEVELS - 1) + 1)
    return np.where(eligible & (rng.random(levels.shape) < share), strikes, -1)


def loss_run(size: str, share: float, lost: float, of: Of, rng: np.random.Generator) -> Result:
    layout, dimensions = layout_of(size)
    levels = play(agent_of(share, 1.0), layout, rng, 1.0, dimensions=dimensions)
    table = table_of_levels(levels, layout, lose(levels, lost, of, rng))
    return {percent(share): covers(table.measure(propensity_terms(table)).ci95, share)}


_LOSSES: Final[tuple[tuple[float, Of], ...]] = (
    (0.05, "all"),
    (0.2, "all"),
    (0.05, "misaligned"),
    (0.2, "misaligned"),
    (0.5, "misaligned"),
    (0.05, "resisting"),
    (0.2, "resisting"),
)

LOSSES: Final = Sheet(
    "Lost episodes",
    ("lost", "scenarios x tasks of each"),
    [
        Cell((f"{100 * lost:g} % of {of}", size), partial(loss_run, size, share, lost, of))
        for lost, of in _LOSSES
        for size in ("40 x 6", "240 x 1")
        for share in PROPENSITIES
    ]
    + [
        Cell(("50 % of misaligned", FULL), partial(loss_run, FULL, share, 0.5, "misaligned"), 0.25)
        for share in PROPENSITIES
    ],
)
