"""Variance components: between scenarios, and between runs of the same task."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Names, Numbers
from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.table import Table

Codes = NDArray[np.int64]


class Variance(msgspec.Struct, frozen=True):
    """Variance components under one naming.

    Attributes:
        icc: intraclass correlation of the misaligned ends of a scenario's units, within domains (0
            independent, 1 identical), epochs averaged. None if no scenario was run under two dimensions, or
            if there is no propensity.
        design_effect: ratio of the scenario-clustered to the naive variance of the propensity: by what
            factor clustering raises the number of tasks needed.
        level_zero_scenario: intraclass correlation of misaligned ends at level 0, where all dimensions and
            epochs of a scenario are the same conversation: the variance share of the scenario.
        level_zero_noise: the rest, the variance between reruns of a conversation.
    """

    icc: float | None
    design_effect: float | None
    level_zero_scenario: float | None
    level_zero_noise: float | None


def variance_of(table: Table) -> Variance:
    """The variance components of a table's scored units."""
    done = table.scored_only()
    # Epochs are weighted as in the whole table, where those without a score count.
    misaligned = table.misaligned[table.finished > 0]
    level_zero = _level_zero(table)
    found = estimate(table, propensity_terms(table), "propensity")
    error = found.errors.scenario
    naive = 0.0 if error is None else _naive_variance(done, misaligned)
    return Variance(
        icc=None if found.value is None else intraclass(done.domain, done.scenario, misaligned),
        design_effect=error**2 / naive if error is not None and naive > 0 else None,
        level_zero_scenario=level_zero,
        level_zero_noise=None if level_zero is None else 1 - level_zero,
    )


def intraclass(domain: Names | Codes, scenario: Names | Codes, values: Numbers) -> float | None:
    """One-way ANOVA intraclass correlation with scenarios as classes, after removing the domain means.

    (MSB - MSW) / (MSB + (k0 - 1) MSW), clipped to 0..1. k0 is the mean class size corrected for unequal
    sizes: (n - sum over d of sum of k^2 / n_d) / (classes - D) for D domains of n_d values (Searle, Casella
    and McCulloch 1992). None if nothing varies or no class has two members.
    """
    if not len(values):
        return None
    stratum, cluster = _codes(domain), _codes(scenario)
    domains = int(stratum.max()) + 1
    centred = values - (np.bincount(stratum, weights=values) / np.bincount(stratum))[stratum]
    sizes = np.bincount(cluster)
    classes, n = len(sizes), len(values)
    if n == classes or classes <= domains:
        return None
    means = np.bincount(cluster, weights=centred) / sizes
    between = float(sizes @ means**2) / (classes - domains)
    within = float(((centred - means[cluster]) ** 2).sum()) / (n - classes)
    # Summing a class's size over its rows gives the square.
    size = (n - float((sizes[cluster] / np.bincount(stratum)[stratum]).sum())) / (classes - domains)
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else None


def _naive_variance(table: Table, values: Numbers) -> float:
    """Variance of the mean over domains of values if all tasks were independent."""
    parts = [values[table.domain == domain] for domain in np.unique(table.domain)]
    return float(sum(part.var(ddof=1) / len(part) for part in parts)) / len(parts) ** 2


def _level_zero(table: Table) -> float | None:
    """The intraclass correlation of whether an epoch that was observed at level 0 ended misaligned there."""
    epochs = table.finished + table.missing
    observed = np.rint(table.at_risk[:, 0] * epochs).astype(np.int64)
    rows = np.repeat(np.arange(len(table)), observed)
    place = np.arange(len(rows)) - (np.cumsum(observed) - observed)[rows]
    ended = np.rint(table.ends[:, 0] * epochs)
    misaligned = (place < ended[rows]).astype(np.float64)
    return intraclass(_codes(table.domain)[rows], _codes(table.scenario)[rows], misaligned)


def _codes(names: Names | Codes) -> Codes:
    """A number from 0 for each different name."""
    return np.unique(names, return_inverse=True)[1]
