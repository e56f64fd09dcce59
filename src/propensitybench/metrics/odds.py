"""Logistic regression: maximum likelihood, and errors for clusters of one kind or of two at once."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Codes, Numbers

STEPS: Final = 50
CONVERGED: Final = 1e-10
# On the logit scale: beyond it, the columns separate the outcomes and there is no finite estimate.
SEPARATED: Final = 15.0
# Of the variance of independent rows: a variance below it is 0 but for rounding.
ALIKE: Final = 1e-12


class LogOdds(NamedTuple):
    """Coefficients on the logit scale, and their covariance.

    Attributes:
        freedom: degrees of freedom of their t distribution: the smallest number of clusters minus 1.
    """

    values: Numbers
    covariance: Numbers
    freedom: int


def log_odds(x: Numbers, outcome: Numbers, clusters: Sequence[Codes]) -> LogOdds | str:
    """Fits a logistic regression; the reason if there is no finite estimate.

    Errors allow for any dependence within clusters of each kind: with two kinds, the covariance is the sum
    over both minus that of their intersections (Cameron, Gelbach and Miller 2011), each times G / (G - 1).
    Where that is not positive, the larger of the two one-way variances is taken.

    Args:
        x: columns, shape (rows, columns), with an intercept.
        outcome: 0 or 1.
        clusters: one or two kinds of clusters, as the cluster of each row.
    """
    counts = [len(np.unique(kind)) for kind in clusters]
    if min(counts) <= x.shape[1]:
        return f"{min(counts)} clusters are too few for {x.shape[1]} coefficients"
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return "two factors are collinear, so their effects cannot be separated"
    values = maximum_likelihood(x, outcome, np.ones(len(outcome)))
    if values is None:
        return "a combination of levels decides the outcome, so there is no finite estimate"
    chance = 1 / (1 + np.exp(-(x @ values)))
    bread = np.asarray(np.linalg.inv((x * (chance * (1 - chance))[:, None]).T @ x), dtype=np.float64)
    scores = x * (outcome - chance)[:, None]
    kinds = [_sandwich(bread, scores, kind) for kind in clusters]
    covariance: Numbers = kinds[0]
    if len(kinds) == 2:
        _, both = np.unique(np.stack(clusters), axis=1, return_inverse=True)
        covariance = kinds[0] + kinds[1] - _sandwich(bread, scores, both.ravel())
        larger = kinds[int(np.diag(kinds[1]).sum() > np.diag(kinds[0]).sum())]
        if (np.linalg.eigvalsh(covariance) <= 0).any():
            covariance = larger
    if (np.diag(covariance) <= ALIKE * np.diag(bread)).any():
        return "all clusters are alike, so there is no error to estimate"
    return LogOdds(values, covariance, min(counts) - 1)


def maximum_likelihood(x: Numbers, events: Numbers, trials: Numbers) -> Numbers | None:
    """Coefficients on the logit scale, by Newton's method; None if there is no finite estimate.

    Args:
        x: columns, shape (rows, columns).
        events: number of events in each row.
        trials: number of trials in each row.
    """
    values = np.zeros(x.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(x @ values, -2 * SEPARATED, 2 * SEPARATED)))
        try:
            step = np.linalg.solve(
                (x * (trials * chance * (1 - chance))[:, None]).T @ x, x.T @ (events - trials * chance)
            )
        except np.linalg.LinAlgError:
            return None
        values = values + step
        if np.abs(step).max() < CONVERGED:
            return np.asarray(values) if np.abs(x @ values).max() <= SEPARATED else None
        if np.abs(values).max() > 2 * SEPARATED:
            return None
    return None


def _sandwich(bread: Numbers, scores: Numbers, cluster: Codes) -> Numbers:
    _, codes = np.unique(cluster, return_inverse=True)
    count = int(codes.max()) + 1
    sums = np.zeros((count, scores.shape[1]))
    np.add.at(sums, codes, scores)
    return np.asarray(count / (count - 1) * bread @ (sums.T @ sums) @ bread)
