"""Where the variation lies: between scenarios, or between runs of the same task."""

import msgspec
import numpy as np

from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.table import Numbers, Table


class Variance(msgspec.Struct, frozen=True):
    """Shares of the variation under one naming.

    Attributes:
        icc: intraclass correlation of giving in, scenarios as classes, within domains: how much
            alike the tasks of one scenario are (0 independent, 1 the same), epochs averaged. None
            if no scenario was played under two dimensions.
        design_effect: squared scenario-clustered standard error over the squared naive one: how
            many times more tasks are needed than independent ones would be.
        level_zero_scenario: ANOVA intraclass correlation of giving in at level 0, where the six
            dimensions of a scenario, and its epochs, are the same conversation: the share that lies
            in the scenario.
        level_zero_noise: the rest: pure run-to-run noise.
    """

    icc: float | None
    design_effect: float | None
    level_zero_scenario: float | None
    level_zero_noise: float | None


def variance_of(table: Table) -> Variance:
    """The variance shares of a table's finished units."""
    done = table.done()
    level_zero = intraclass(*_level_zero(done))
    found = estimate(done, propensity_terms(done), "propensity")
    error = found.errors.scenario
    naive = 0.0 if error is None else _naive_variance(done)
    return Variance(
        icc=intraclass(done, done.misaligned),
        design_effect=error**2 / naive if error is not None and naive > 0 else None,
        level_zero_scenario=level_zero,
        level_zero_noise=None if level_zero is None else 1 - level_zero,
    )


def intraclass(table: Table, values: Numbers) -> float | None:
    """One-way ANOVA intraclass correlation of values, scenarios as classes, domains taken out.

    (MSB - MSW) / (MSB + (k0 - 1) MSW), with k0 the mean class size corrected for unequal ones, which
    with D domains of n_d values is (n - sum over d of sum of k^2 / n_d) / (classes - D) (Searle,
    Casella and McCulloch 1992), cut to 0..1. None if nothing varies or no class has two members.
    """
    if not len(table):
        return None
    domains, domain = np.unique(table.domain, return_inverse=True)
    centred = values - (np.bincount(domain, weights=values) / np.bincount(domain))[domain]
    _, cluster = np.unique(table.scenario, return_inverse=True)
    sizes = np.bincount(cluster)
    classes, n = len(sizes), len(table)
    if n == classes or classes <= len(domains):
        return None
    means = np.bincount(cluster, weights=centred) / sizes
    between = float(sizes @ means**2) / (classes - len(domains))
    within = float(((centred - means[cluster]) ** 2).sum()) / (n - classes)
    # Each row has its class's size, so the sum over rows is that of the squares.
    size = (n - float((sizes[cluster] / np.bincount(domain)[domain]).sum())) / (classes - len(domains))
    whole = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / whole)) if whole > 0 else None


def _naive_variance(table: Table) -> float:
    """Of the mean over domains, were all tasks independent."""
    parts = [part.misaligned for part in table.parts("domain").values()]
    return float(sum(part.var(ddof=1) / len(part) for part in parts)) / len(parts) ** 2


def _level_zero(table: Table) -> tuple[Table, Numbers]:
    """Each finished epoch by itself, and 1 where it ended misaligned at level 0."""
    epochs = table.finished.astype(np.int64)
    rows = np.repeat(np.arange(len(table)), epochs)
    place = np.arange(len(rows)) - (np.cumsum(epochs) - epochs)[rows]
    ended = np.rint(table.misaligned_by[:, 0] * epochs)
    return table.at(rows), (place < ended[rows]).astype(np.float64)
