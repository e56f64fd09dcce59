"""How far judges agree, and what their errors do to a share."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from propensitybench.metrics.table import Numbers

Scale = Literal["nominal", "interval"]


class Kappa(NamedTuple):
    """Cohen's kappa with its large-sample standard error (Fleiss, Cohen and Everitt 1969)."""

    kappa: float | None
    error: float | None


def krippendorff_alpha(ratings: Sequence[Sequence[float | None]], scale: Scale = "nominal") -> float | None:
    """Krippendorff's alpha: 1 perfect agreement, 0 what chance gives.

    Args:
        ratings: one row a judge, one column an item; None where a judge did not rate. Nominal
            metadata are given as numbers, whose distances then do not matter.
        scale: whether metadata are names, or numbers with meaningful distances.

    Returns:
        None if no item was rated twice, or all ratings are the same.
    """
    table = np.array([[np.nan if r is None else r for r in row] for row in ratings], dtype=np.float64)
    paired = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    values = np.unique(paired[~np.isnan(paired)])
    if len(values) < 2:
        return None
    counts = np.stack([(paired == value).sum(axis=0) for value in values], axis=1).astype(np.float64)
    raters = counts.sum(axis=1)
    # Coincidences: ordered pairs of ratings within an item, each item with weight 1 / (raters - 1).
    weighted = counts / (raters - 1)[:, None]
    coincidences = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    marginals = coincidences.sum(axis=1)
    if scale == "nominal":
        distance = 1.0 - np.eye(len(values))
    else:
        distance = np.asarray((values[:, None] - values[None, :]) ** 2)
    whole = float(marginals.sum()) - 1
    expected = float((np.outer(marginals, marginals) * distance).sum()) / whole
    observed = float((coincidences * distance).sum())
    return 1 - observed / expected


def cohen_kappa(confusion: Numbers) -> Kappa:
    """Cohen's kappa of two judges.

    Args:
        confusion: counts, rows one judge's metadata, columns the other's; square.

    Returns:
        None where agreement by chance would be complete.
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
    # Each column's own share of its column, each row's of its row: the three terms of the 1969 paper.
    cross = columns[:, None] + rows[None, :]
    agree = float((np.diag(p) * (1 - (rows + columns) * (1 - kappa)) ** 2).sum())
    apart = (1 - kappa) ** 2 * float((p * cross**2).sum() - (np.diag(p) * np.diag(cross) ** 2).sum())
    rest = (kappa - chance * (1 - kappa)) ** 2
    return Kappa(kappa, sqrt(max(0.0, agree + apart - rest) / total) / (1 - chance))


def rogan_gladen(share: float, specificity: float, sensitivity: float) -> float | None:
    """A share as a judge saw it, corrected for the judge's errors (Rogan and Gladen 1978), cut to 0..1.

    (share + specificity - 1) / (specificity + sensitivity - 1); None if the judge is no better than
    chance.
    """
    skill = specificity + sensitivity - 1
    return min(1.0, max(0.0, (share + specificity - 1) / skill)) if skill > 0 else None
