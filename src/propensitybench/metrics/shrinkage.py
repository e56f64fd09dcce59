"""Empirical Bayes shrinkage: the raw extremes of many small cells are mostly noise."""

from collections.abc import Mapping
from math import sqrt
from typing import Final

import msgspec
import numpy as np

from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.intervals import Z95, Interval

MIN_CELLS: Final = 4


class Shrunken(msgspec.Struct, frozen=True):
    """A cell's propensity, shrunken towards the mean of its domain.

    Attributes:
        raw: observed value.
        shrunken: weighted mean of ``raw`` and the mean of the cells.
        ci95: normal interval of ``shrunken``, with the error of the estimated mean and variance of the cells.
        pull: shrinkage factor (0 none, 1 complete).
    """

    raw: float
    shrunken: float
    ci95: Interval
    pull: float


def shrink(cells: Mapping[str, Estimate]) -> dict[str, Shrunken]:
    """Empirical Bayes over the cells of one domain, by the method of moments (Morris 1983).

    With k cell means y_i and sampling variances v_i, the variance between cells is
    t2 = max(0, var(y) - mean(v)), the pull B_i = (k - 3) / (k - 1) v_i / (v_i + t2), the shrunken value
    y_i - B_i (y_i - mean(y)), and its variance
    v_i (1 - (k - 1) / k B_i) + 2 / (k - 3) B_i^2 (mean(v) + t2) / (v_i + t2) (y_i - mean(y))^2.
    A cell without variance gets the v_i of one more success and one more failure; with 0 it would not be
    shrunken at all.

    Args:
        cells: the estimates of a domain's capabilities; those without a value are left out.

    Returns:
        By the cell's name; empty for fewer than `MIN_CELLS` cells, whose variance cannot be estimated.
    """
    known = {name: cell for name, cell in cells.items() if cell.value is not None and cell.clusters > 0}
    if len(known) < MIN_CELLS:
        return {}
    values = np.array([cell.value for cell in known.values()], dtype=np.float64)
    noise = np.array([_variance(cell) for cell in known.values()])
    spread = max(0.0, float(values.var(ddof=1) - noise.mean()))
    centre, k = float(values.mean()), len(values)
    found = {}
    for name, value, variance in zip(known, values.tolist(), noise.tolist(), strict=True):
        pull = (k - 3) / (k - 1) * variance / (variance + spread)
        middle = value - pull * (value - centre)
        estimated = 2 / (k - 3) * pull**2 * (float(noise.mean()) + spread) / (variance + spread)
        half = Z95 * sqrt(variance * (1 - (k - 1) / k * pull) + estimated * (value - centre) ** 2)
        found[name] = Shrunken(
            value, middle, Interval(max(0.0, middle - half), min(1.0, middle + half)), pull
        )
    return found


def _variance(cell: Estimate) -> float:
    error = cell.errors.scenario
    if error and error**2 > 0:
        return error**2
    value = ((cell.value or 0.0) * cell.clusters + 1) / (cell.clusters + 2)
    return value * (1 - value) / cell.clusters
