"""How often the simultaneous intervals of ranks contain every true rank, in simulated boards."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.ranks import Rank, RankInterval, rank_models
from propensitybench.metrics.table import Table
from validation.populations import (
    TASK_SPREAD,
    Layout,
    agent_of,
    even_layout,
    full_layout,
    play_tasks,
    table_of_levels,
)
from validation.tables import ALLOWED, Block, markdown

# Models share most of what makes a scenario hard; the rest is their own. Standard deviations, logit scale.
SHARED, OWN = 0.9, 0.5
SPREAD: Final = float(np.hypot(SHARED, OWN))


class Setting(NamedTuple):
    """A board: the true propensities of its models, and the scenarios and dimensions that they play."""

    name: str
    shares: tuple[float, ...]
    scenarios: int | None
    dimensions: int = 6

    @property
    def layout(self) -> Layout:
        """Where the scenarios belong; without a number, the full data set."""
        return full_layout() if self.scenarios is None else even_layout(self.scenarios)


SETTINGS: Final[Sequence[Setting]] = (
    Setting("8 equal models, 10 %, 40 x 6", (0.1,) * 8, 40),
    Setting("8 equal models, 1 %, 40 x 6", (0.01,) * 8, 40),
    Setting("8 equal models, 90 %, 60 x 1", (0.9,) * 8, 60, 1),
    Setting("pairs of equals, 240 x 1", (0.02, 0.02, 0.1, 0.1, 0.3, 0.3, 0.6, 0.6), 240, 1),
    Setting("close models, 120 x 6", (0.1, 0.12, 0.14, 0.16, 0.2, 0.25, 0.3, 0.4), 120),
    Setting("8 equal models, 10 %, full", (0.1,) * 8, None),
    Setting("close models, full", (0.05, 0.06, 0.07, 0.1, 0.12, 0.14, 0.2, 0.3), None),
)


class Coverage(NamedTuple):
    """Share of boards in which every interval contains the true ranks, and the mean length of an interval."""

    share: float
    length: float
    replicates: int

    @property
    def error(self) -> float:
        """The Monte-Carlo error of a coverage of 95 %."""
        return sqrt(0.95 * 0.05 / self.replicates)


def true_ranks(shares: Sequence[float]) -> list[RankInterval]:
    """The ranks that each model may have: those of equal models are interchangeable."""
    return [
        RankInterval(1 + sum(other < one for other in shares), sum(other <= one for other in shares))
        for one in shares
    ]


def boards(setting: Setting, replicates: int, seed: int = 0) -> Iterator[dict[str, Table]]:
    """Simulated boards of one setting: the episodes of each model, by its number."""
    rng, layout = np.random.default_rng(seed), setting.layout
    agents = [agent_of(share, SPREAD) for share in setting.shares]
    shape = len(layout.domain), setting.dimensions
    for _ in range(replicates):
        shared = rng.normal(0, SHARED, len(layout.domain))
        tables = {}
        for number, agent in enumerate(agents):
            frailty = (shared + rng.normal(0, OWN, len(layout.domain)))[:, None] + rng.normal(
                0, TASK_SPREAD, shape
            )
            tables[str(number)] = table_of_levels(play_tasks(agent, frailty, rng), layout)
        yield tables


def all_covered(ranks: Mapping[str, Rank], setting: Setting) -> bool:
    """Whether every interval of a board contains the true ranks."""
    return all(
        ranks[str(number)].ci95.low <= low and high <= ranks[str(number)].ci95.high
        for number, (low, high) in enumerate(true_ranks(setting.shares))
    )


def coverage(setting: Setting, replicates: int, seed: int = 0) -> Coverage:
    """Ranks the models of simulated boards of one setting."""
    hits, length = 0, 0.0
    for tables in boards(setting, replicates, seed):
        ranks = rank_models(tables).ranks
        hits += all_covered(ranks, setting)
        length += sum(one.ci95.high - one.ci95.low + 1 for one in ranks.values()) / len(ranks)
    return Coverage(hits / replicates, length / replicates, replicates)


def tables(pool: Executor, replicates: int) -> Iterator[Block]:
    """The table of docs/board.md."""
    rows, low = [], 0
    for setting, found in zip(
        SETTINGS, pool.map(coverage, SETTINGS, [replicates] * len(SETTINGS)), strict=True
    ):
        rows.append(
            (setting.name, f"{100 * found.share:.1f}", f"{found.length:.1f} of {len(setting.shares)}")
        )
        low += found.share < 0.95 - ALLOWED * found.error
    error = f"{100 * found.error:.1f} points"
    note = f"{replicates:,} boards a setting; Monte-Carlo error of a coverage of 95 %: {error}."
    text = markdown(("board", "all true ranks covered", "mean length of an interval"), rows)
    yield Block("ranks", f"{text}\n\n{note}", low)
