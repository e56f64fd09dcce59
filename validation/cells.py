"""Cells of coverage tables, and their simulation."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import isnan, nan, sqrt
from typing import NamedTuple
from zlib import crc32

import numpy as np

from propensitybench.metrics.intervals import Interval


class Draw(NamedTuple):
    """The interval of one simulated run: whether it covers the truth, None without one, and its width."""

    covered: bool | None
    width: float = nan


Result = Mapping[str, "Draw | float"]
Play = partial[Result]


class Cell(NamedTuple):
    """One simulated setting.

    Attributes:
        row: labels of its row; cells of a sheet with equal labels share the row.
        play: simulates one run, given a random generator; the result has an interval or a number for each of
            its columns.
        times: how many times the usual number of replicates: more where runs are small, fewer where large.
    """

    row: tuple[str, ...]
    play: Play
    times: float = 1


class Sheet(NamedTuple):
    """One table: its name, the names of its labels, its cells, and whether numbers are shares."""

    name: str
    labels: tuple[str, ...]
    cells: Sequence[Cell]
    shares: bool = False


class Found(NamedTuple):
    """What was found in a column.

    Attributes:
        replicates: number of simulated runs.
        shown: number of those with an interval, or with a number.
        mean: share of the intervals that cover the truth, or the mean of the numbers; NaN if none is shown.
        error: Monte-Carlo standard error of ``mean``.
        width: mean width of the intervals; NaN for numbers.
    """

    replicates: int
    shown: int
    mean: float
    error: float
    width: float = nan

    @property
    def is_coverage(self) -> bool:
        """Whether ``mean`` is a share of intervals."""
        return not isnan(self.width)


def covers(found: Interval | None, truth: float) -> Draw:
    """Whether an interval covers the truth."""
    if found is None:
        return Draw(None)
    return Draw(found.low <= truth <= found.high, found.high - found.low)


def simulate(cell: Cell, replicates: int) -> dict[str, Found]:
    """Plays a cell, always with the same seed, and summarises each of its columns."""
    rng = np.random.default_rng(crc32(repr((cell.row, cell.play.args)).encode()))
    results = [cell.play(rng) for _ in range(max(2, round(replicates * cell.times)))]
    return {name: _found([result[name] for result in results]) for name in results[0]}


def _found(column: Sequence[Draw | float]) -> Found:
    draws = [one for one in column if isinstance(one, Draw)]
    if draws:
        shown = [one for one in draws if one.covered is not None]
        if not shown:
            return Found(len(draws), 0, nan, nan, 0.0)
        share = float(np.mean([one.covered for one in shown]))
        # At 0 and 1 the error is that of one run more or less.
        error = sqrt(max(share * (1 - share), 1 / len(shown)) / len(shown))
        return Found(len(draws), len(shown), share, error, float(np.mean([one.width for one in shown])))
    numbers = np.array([one for one in column if not isinstance(one, Draw) and not isnan(one)])
    if not len(numbers):
        return Found(len(column), 0, nan, nan)
    error = float(numbers.std() / sqrt(len(numbers)))
    return Found(len(column), len(numbers), float(numbers.mean()), error)
