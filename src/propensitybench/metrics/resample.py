"""The cluster bootstrap: scenarios drawn again, with replacement, within each domain."""

from typing import Final

import numpy as np

from propensitybench.metrics.estimates import ROUNDING, Interval, RatioTerms
from propensitybench.metrics.table import Numbers, Table

DRAWS: Final = 2000
SEED: Final = 20251127


class Resample:
    """The same redrawn scenarios for every estimate of a table, so that estimates can be compared.

    Two tables with the same scenarios in the same domains are redrawn alike: that is what a paired
    comparison needs. A domain with one scenario cannot be redrawn: its totals are not numbers.
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
        """Sums of columns over the redrawn scenarios.

        Args:
            columns: shape (units, k); not a number counts as 0.

        Returns:
            Shape (draws, domains, k).
        """
        found = []
        for rows, cluster, weights in self._clusters:
            sums = np.zeros((weights.shape[1], columns.shape[1]))
            np.add.at(sums, cluster, np.nan_to_num(columns[rows]))
            found.append(weights @ sums)
        return np.stack(found, axis=1)

    def ratios(self, terms: RatioTerms) -> Numbers:
        """The estimate in each draw: the mean over domains of sum(x) / sum(y); shape (draws,).

        A domain whose draw has nothing to count leaves that draw's mean, or leaves none if the terms
        need every domain.
        """
        counted = np.where(terms.y > 0, terms.x, 0.0)
        totals = self.totals(np.stack([counted, terms.y], axis=1))
        means = mean_of_domains(totals[..., 0], totals[..., 1])
        if terms.every_domain:
            means[(totals[..., 1] == 0).any(axis=-1)] = np.nan
        return means


def mean_of_domains(x: Numbers, y: Numbers) -> Numbers:
    """Mean over the last axis of x / y where y is not 0; not a number where it always is."""
    used = y != 0
    shares = np.divide(x, y, out=np.zeros_like(x), where=used)
    count = used.sum(axis=-1)
    means: Numbers = np.full(count.shape, np.nan)
    np.divide(shares.sum(axis=-1), count, out=means, where=count > 0)
    return means


def percentile_interval(draws: Numbers) -> Interval | None:
    """The middle 95 percent of the draws.

    None if any of them has no value, or if all are the same: then redrawing tells nothing of the
    spread, which must not look like certainty.
    """
    if not len(draws) or np.isnan(draws).any() or np.ptp(draws) < ROUNDING:
        return None
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(low), float(high))
