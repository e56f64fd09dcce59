"""Stratified cluster bootstrap: scenarios resampled with replacement within each domain."""

from typing import Final

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import ROUNDING, Interval
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import Ratio

DRAWS: Final = 2000
SEED: Final = 20251127


class Resample:
    """Bootstrap weights of a table's scenarios, shared by all estimates of the table.

    Two tables with the same scenarios in the same domains get the same weights, as a paired comparison
    needs. A domain with one scenario cannot be resampled: its totals are NaN.

    Args:
        table: the units.
        draws: number of resamples.
        seed: of the resamples.
    """

    def __init__(self, table: Table, draws: int = DRAWS, seed: int = SEED) -> None:
        rng = np.random.default_rng(seed)
        self._clusters = []
        for domain in np.unique(table.domain):
            rows = np.flatnonzero(table.domain == domain)
            names, cluster = np.unique(table.scenario[rows], return_inverse=True)
            count = len(names)
            weights = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
            self._clusters.append((rows, cluster, weights if count > 1 else np.full((draws, 1), np.nan)))

    def totals(self, columns: Numbers) -> Numbers:
        """Sums of columns over the resampled scenarios.

        Args:
            columns: shape (units, k); NaN counts as 0.

        Returns:
            Shape (draws, domains, k).
        """
        totals = []
        for rows, cluster, weights in self._clusters:
            sums = np.zeros((weights.shape[1], columns.shape[1]))
            np.add.at(sums, cluster, np.nan_to_num(columns[rows]))
            totals.append(weights @ sums)
        return np.stack(totals, axis=1)

    def ratios(self, ratio: Ratio) -> Numbers:
        """The estimate in each resample: the mean over domains of sum(x) / sum(y); shape (draws,).

        A domain with denominator 0 in a resample is left out of its mean, or makes it NaN if it is
        needed.
        """
        counted = np.where(ratio.y > 0, ratio.x, 0.0)
        needed = np.ones(len(counted)) if ratio.needed is None else ratio.needed
        totals = self.totals(np.stack([counted, ratio.y, needed], axis=1))
        means = mean_of_domains(totals[..., 0], totals[..., 1])
        means[(totals[..., 2] == 0).any(axis=-1)] = np.nan
        return means


def mean_of_domains(x: Numbers, y: Numbers) -> Numbers:
    """Mean over the last axis of x / y where y is not 0; NaN if it is 0 everywhere."""
    used = y != 0
    shares = np.divide(x, y, out=np.zeros_like(x), where=used)
    count = used.sum(axis=-1)
    means: Numbers = np.full(count.shape, np.nan)
    np.divide(shares.sum(axis=-1), count, out=means, where=count > 0)
    return means


def percentile_interval(draws: Numbers) -> Interval | None:
    """The 2.5 and 97.5 % quantiles of the resampled estimates.

    None if any of them is NaN, or if all are equal: resampling then says nothing about the sampling error,
    and an interval of width 0 would look like certainty.
    """
    if not len(draws) or np.isnan(draws).any() or np.ptp(draws) < ROUNDING:
        return None
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(low), float(high))
