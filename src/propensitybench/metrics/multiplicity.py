"""Many tests at once: adjusted p-values, over families that are fixed before the data are seen."""

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: claims at .05 keep the chance of any false one at .05.

    The i-th smallest of m is multiplied by m - i + 1; none may be below the one before it.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return [float(value) for value in adjusted]


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values: finds at .10 are false in a tenth of the cases.

    The i-th smallest of m is multiplied by m / i; none may be above the one after it.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = len(values) / np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * factors))
    return [float(value) for value in adjusted]
