"""Standard errors for other populations than new scenarios: reruns, and new storylines."""

from math import sqrt
from typing import Final

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import ROUNDING, ClusteredError
from propensitybench.metrics.sample import ClusteredSample, Parts, left_out_squares
from propensitybench.metrics.terms import Ratio

# Scenarios whose tasks differ that the error over reruns needs (docs/metrics.md, "Coverage").
MIN_MIXED: Final = 10


def benchmark_error(parts: Parts, noise: Numbers | None) -> float | None:
    """Standard error over reruns of the same tasks: from epochs, or from the dimensions of a scenario.

    The second takes differences between the dimensions of a scenario for noise and is conservative. None if
    a scenario was run only once, or if fewer than `MIN_MIXED` scenarios or units differ inside.

    Args:
        parts: the estimate.
        noise: variance of each unit's numerator over reruns, NaN where it is not known; None without epochs.
    """
    sample, counted = parts.sample, parts.y > 0
    rerun = np.zeros(sample.domains, dtype=bool)
    variance, mixed = 0.0, 0
    if noise is not None:
        rerun = sample.sums(counted & np.isnan(noise)) == 0
        own = np.where(counted & rerun[sample.domain], noise, 0.0)
        variance += float(parts.scale**2 @ sample.sums(own))
        mixed += int((own > 0).sum())
    rows = counted & ~rerun[sample.domain]
    if rows.any():
        cluster, rest = sample.cluster[rows], parts.residuals[rows]
        counts = np.bincount(cluster, minlength=len(sample.home))
        if (counts == 1).any():
            return None
        means = np.bincount(cluster, rest, len(counts)) / np.maximum(counts, 1)
        squares = np.bincount(cluster, (rest - means[cluster]) ** 2, len(counts))
        inside = squares / np.maximum(counts - 1, 1)
        variance += float(parts.scale[sample.home] ** 2 @ (counts * inside))
        mixed += int((inside > ROUNDING).sum())
    return sqrt(variance) if mixed >= MIN_MIXED else None


def crossed_error(
    parts: Parts, by_scenario: ClusteredError, storylines: ClusteredSample, units: ClusteredSample
) -> float | None:
    """Standard error for new scenarios and new storylines, which are crossed.

    The variance clustered by scenario, plus the one clustered by storyline within the dimensions, less that
    of single units, which is in both (Cameron, Gelbach and Miller 2011); at least that for new scenarios.
    None if a dimension has a single storyline.

    Args:
        parts: the estimate, clustered by scenario.
        by_scenario: its error.
        storylines: the same units within dimensions of their domains, clustered by storyline.
        units: the same, each a cluster.
    """
    extra = 0.0
    for sample, sign in (storylines, 1), (units, -1):
        within, scale = sample.parts(Ratio(parts.x, parts.y)), np.zeros(sample.domains)
        scale[sample.domain] = parts.scale[parts.sample.domain]
        squares = None if within is None else left_out_squares(within, scale)
        if squares is None:
            return None
        extra += sign * float(squares.sum())
    return sqrt(by_scenario.error**2 + max(extra, 0.0))
