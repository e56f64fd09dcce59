"""Multiple testing: adjusted p-values over families that are fixed before the data are seen."""

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, which control the family-wise error rate.

    The i-th smallest of m is multiplied by m - i + 1; adjusted values never decrease along that order.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return [float(value) for value in adjusted]


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's (1995) adjusted p-values, which control the false discovery rate.

    The i-th smallest of m is multiplied by m / i; adjusted values never decrease along that order.
    """
    values = np.asarray(p, dtype=np.float64)
    falling = np.argsort(-values, kind="stable")
    factors = len(values) / np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[falling] = np.minimum(1.0, np.minimum.accumulate(values[falling] * factors))
    return [float(value) for value in adjusted]
