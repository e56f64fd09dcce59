"""Inter-rater agreement, and the correction of a prevalence for a rater's errors.

Krippendorff's alpha is written out here because the package on PyPI that computes it is under the GPL, which
would bind whoever distributes this one. It is the oracle of a test.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers

Scale = Literal["nominal", "ordinal", "interval", "ratio"]


class Kappa(NamedTuple):
    """Cohen's kappa with its large-sample standard error (Fleiss, Cohen and Everitt 1969)."""

    kappa: float | None
    error: float | None


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], scale: Scale = "nominal") -> float | None:
    """Krippendorff's alpha (2004, chapter 11): 1 is perfect agreement, 0 agreement by chance.

    Args:
        ratings: one row for each rater, one column for each item; None where a rating is missing. Nominal
            labels are coded as numbers.
        scale: level of measurement of the ratings.

    Returns:
        None if no item has two ratings, or all ratings are equal.
    """
    table = np.array([[np.nan if r is None else r for r in row] for row in ratings], dtype=np.float64)
    paired = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    values = np.unique(paired[~np.isnan(paired)])
    if len(values) < 2:
        return None
    counts = np.stack([(paired == value).sum(axis=0) for value in values], axis=1).astype(np.float64)
    raters = counts.sum(axis=1)
    # Coincidence matrix: ordered pairs of ratings of an item, weighted by 1 / (raters - 1).
    weighted = counts / (raters - 1)[:, None]
    coincidences = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    marginals = coincidences.sum(axis=1)
    distance = _distance(scale, values, marginals)
    whole = float(marginals.sum()) - 1
    expected = float((np.outer(marginals, marginals) * distance).sum()) / whole
    observed = float((coincidences * distance).sum())
    return 1 - observed / expected


def _distance(scale: Scale, values: Numbers, marginals: Numbers) -> Numbers:
    """The squared difference of any two values (Krippendorff 2011, section B.4)."""
    if scale == "nominal":
        return 1.0 - np.eye(len(values))
    if scale == "ordinal":
        # Half of either rank and all between: the distance of the two mid-ranks.
        values = np.cumsum(marginals) - marginals / 2
    apart = values[:, None] - values[None, :]
    if scale == "ratio":
        whole = values[:, None] + values[None, :]
        apart = np.divide(apart, whole, out=np.zeros_like(apart), where=whole != 0)
    return np.asarray(apart**2)


def cohen_kappa(confusion: Numbers) -> Kappa:
    """Cohen's kappa of two raters.

    Args:
        confusion: square matrix of counts: one rater's labels in the rows, the other's in the columns.

    Returns:
        None where the expected agreement by chance is 1.
    """
    total = float(confusion.sum())
    if total == 0:
        return Kappa(None, None)
    p = confusion / total
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, chance = float(np.trace(p)), float(rows @ columns)
    if chance == 1:
        return Kappa(None, None)
    kappa = (observed - chance) / (1 - chance)
    # The three terms of the variance in Fleiss, Cohen and Everitt, equation 13.
    cross = columns[:, None] + rows[None, :]
    agree = float((np.diag(p) * (1 - (rows + columns) * (1 - kappa)) ** 2).sum())
    apart = (1 - kappa) ** 2 * float((p * cross**2).sum() - (np.diag(p) * np.diag(cross) ** 2).sum())
    rest = (kappa - chance * (1 - kappa)) ** 2
    return Kappa(kappa, sqrt(max(0.0, agree + apart - rest) / total) / (1 - chance))


def rogan_gladen(share: float, specificity: float, sensitivity: float) -> float | None:
    """The Rogan-Gladen (1978) estimate of a prevalence from the share that a rater labels positive.

    (share + specificity - 1) / (specificity + sensitivity - 1), clipped to 0..1; None if the rater is no
    better than chance.
    """
    skill = specificity + sensitivity - 1
    return min(1.0, max(0.0, (share + specificity - 1) / skill)) if skill > 0 else None
