"""Rank correlation of the propensity with a capability index that the user supplies."""

from collections.abc import Mapping
from math import atanh, sqrt, tanh

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import TAIL, Interval, normal_quantile
from propensitybench.metrics.resample import DRAWS, SEED, percentile_interval


class IndexEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's value on the index, with its source and date.

    ``family`` groups the models of one developer; the correlation is repeated with each family left out.
    """

    value: float
    source: str
    date: str
    family: str = ""


class Correlation(msgspec.Struct, frozen=True):
    """Spearman's correlation between an index and the propensity.

    Attributes:
        models: the models that have both.
        rho: None for fewer than three models, or if either variable is constant.
        ci95: by Fisher's z with standard error 1 / sqrt(n - 3); None below four models.
        ci95_bootstrap: percentile interval over resampled models, without the resamples in which a variable
            is constant; None below four models.
        without_family: smallest and largest rho with one family left out.
    """

    models: tuple[str, ...]
    rho: float | None
    ci95: Interval | None
    ci95_bootstrap: Interval | None
    without_family: Interval | None


def correlation(propensity: Mapping[str, float], index: Mapping[str, IndexEntry]) -> Correlation:
    """The correlation over the models that have a propensity and an entry."""
    names = tuple(name for name in propensity if name in index)
    x = np.array([index[name].value for name in names], dtype=np.float64)
    y = np.array([propensity[name] for name in names], dtype=np.float64)
    rho = spearman(x, y)
    if rho is None:
        return Correlation(names, None, None, None, None)
    enough = len(names) > 3
    ci95 = fisher_interval(rho, len(names)) if enough else None
    families = np.array([index[name].family for name in names])
    reduced = [spearman(x[families != f], y[families != f]) for f in np.unique(families) if f]
    known = [value for value in reduced if value is not None]
    without = Interval(min(known), max(known)) if known else None
    return Correlation(names, rho, ci95, _bootstrap(x, y) if enough else None, without)


def spearman(x: Numbers, y: Numbers) -> float | None:
    """Spearman's rank correlation; None for fewer than three pairs, or if either variable is constant."""
    from scipy.stats import spearmanr  # scipy.stats takes half a second to import

    if len(x) < 3 or len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
        return None
    return float(spearmanr(x, y).statistic)


def fisher_interval(rho: float, n: float, tail: float = TAIL) -> Interval:
    """Interval by Fisher's z transformation, 95 % unless ``tail`` says otherwise.

    n = 12 and rho = .1 give -.50 to .64.
    """
    if abs(rho) >= 1:
        return Interval(rho, rho)
    half = normal_quantile(tail) / sqrt(n - 3)
    return Interval(tanh(atanh(rho) - half), tanh(atanh(rho) + half))


def _bootstrap(x: Numbers, y: Numbers) -> Interval | None:
    from scipy.stats import rankdata

    rng = np.random.default_rng(SEED)
    rows = rng.integers(0, len(x), size=(DRAWS, len(x)))
    ranks = [rankdata(side[rows], axis=1) - (len(x) + 1) / 2 for side in (x, y)]
    covariance = (ranks[0] * ranks[1]).sum(axis=1)
    scale = np.sqrt((ranks[0] ** 2).sum(axis=1) * (ranks[1] ** 2).sum(axis=1))
    return percentile_interval(covariance[scale > 0] / scale[scale > 0])
