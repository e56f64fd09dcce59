"""Discrete-time logit regression of the hazard on level, domain, dimension, naming and model.

One row for each level that an episode entered: logit P(misaligned at this level) = level + domain + dimension
(from level 1) + naming + model. Standard errors are clustered by scenario. Rows with equal factors are
aggregated before fitting, which leaves the likelihood unchanged and is fast.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import exp, sqrt
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Codes, Flags, Numbers
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.odds import maximum_likelihood
from propensitybench.metrics.table import Table
from propensitybench.taxonomy import NAMINGS, Naming

Factor = Literal["level", "domain", "dimension", "naming", "model"]
FACTORS: Final[tuple[Factor, ...]] = ("level", "domain", "dimension", "naming", "model")
# The dimension at level 0, before any pressure.
NO_DIMENSION: Final = -1


class FactorEffect(msgspec.Struct, frozen=True):
    """The effect of a factor's value relative to the factor's mean; of "benign" relative to "harmful".

    Attributes:
        factor, value: e.g. "dimension" and "time".
        propensity: marginal propensity by the last level with this value (0..1), the other factors' values
            weighted equally.
        points: average marginal effect in percentage points: that propensity minus the factor's mean, or
            "benign" minus "harmful".
        points_ci95: its interval for new scenarios.
        odds_ratio: odds ratio of the misaligned call at a level, relative to the geometric mean over the
            factor's values, or "benign" to "harmful".
        odds_ratio_ci95: its interval.
        p: two-sided cluster t test of an odds ratio of 1, not adjusted for multiple testing.
    """

    factor: Factor
    value: str
    propensity: float
    points: float
    points_ci95: Interval
    odds_ratio: float
    odds_ratio_ci95: Interval
    p: float


class Regression(msgspec.Struct, frozen=True):
    """The effects of all factors that have two values or more.

    Attributes:
        effects: by factor; empty if the model could not be fitted, and ``note`` says why.
        rows: number of level entries in the fit.
        ends: number of misaligned calls among them.
        clusters: number of scenarios.
        left_out: "factor value" of which no row or every row ended misaligned: its odds are 0 or infinite,
            and its rows are not in the fit.
        note: why there are no effects; empty if there are.
    """

    effects: tuple[FactorEffect, ...]
    rows: int
    ends: int
    clusters: int
    left_out: tuple[str, ...]
    note: str


def regression(tables: Mapping[tuple[str, Naming], Table]) -> Regression:
    """Fits the regression to one or several models.

    Effects are marginal: means over all combinations of the other factors' values, equally weighted. The
    coefficients of the levels are not reported, because hazards that fall with the level are partly
    selection.

    Args:
        tables: by model and naming, all with the same number of levels.
    """
    rows = _rows(tables)
    hazards = np.full(max((table.levels for table in tables.values()), default=0), np.nan)
    left_out: list[str] = []
    rows = _without_constant(rows, hazards, left_out)
    clusters = len(np.unique(rows.scenario))
    values = [np.unique(column[column != NO_DIMENSION]) for column in rows.codes.T]
    found: tuple[FactorEffect, ...] | str
    if not len(rows.ends):
        found = "nothing varies: all tasks end alike at each level"
    elif max(map(len, values[1:])) < 2:
        found = "no factor has two values to compare"
    else:
        fit = _fit(rows, values)
        found = fit if isinstance(fit, str) else _effects(fit, rows, values, hazards)
    return Regression(
        effects=() if isinstance(found, str) else found,
        rows=round(float(rows.met.sum())),
        ends=round(float(rows.ends.sum())),
        clusters=clusters,
        left_out=tuple(left_out),
        note=found if isinstance(found, str) else "",
    )


@dataclass(frozen=True)
class _RegressionRows:
    """Levels entered by units.

    Attributes:
        codes: index of each factor's value in ``names``, shape (rows, factors).
        names: names of each factor's values.
        scenario: index of the scenario.
        ends: number of episodes that ended misaligned at the level.
        met: number of episodes that entered the level.
    """

    codes: Codes
    names: tuple[list[str], ...]
    scenario: Codes
    ends: Numbers
    met: Numbers

    def where(self, kept: Flags) -> "_RegressionRows":
        return _RegressionRows(
            self.codes[kept], self.names, self.scenario[kept], self.ends[kept], self.met[kept]
        )


def _rows(tables: Mapping[tuple[str, Naming], Table]) -> _RegressionRows:
    models = list(dict.fromkeys(model for model, _ in tables))
    domains, dimensions, scenarios = (
        sorted({name for table in tables.values() for name in getattr(table, column).tolist()})
        for column in ("domain", "dimension", "scenario")
    )
    codes, scenario, ends, met = [], [], [], []
    for (model, naming), table in tables.items():
        level, unit = (places.ravel() for places in np.indices((table.levels, len(table))))
        dimension = np.searchsorted(dimensions, table.dimension)[unit]
        columns = [
            level,
            np.searchsorted(domains, table.domain)[unit],
            np.where(level > 0, dimension, NO_DIMENSION),
            np.full(len(unit), NAMINGS.index(naming)),
            np.full(len(unit), models.index(model)),
        ]
        epochs = (table.finished + table.missing)[unit]
        codes.append(np.stack(columns, axis=1))
        scenario.append(np.searchsorted(scenarios, table.scenario)[unit])
        ends.append(table.ends.T.ravel() * epochs)
        met.append(table.at_risk.T.ravel() * epochs)
    names: tuple[list[str], ...] = ([], domains, dimensions, [*NAMINGS], models)
    if not codes:
        nobody = np.empty(0, dtype=np.int64)
        return _RegressionRows(
            np.empty((0, len(FACTORS)), dtype=np.int64), names, nobody, np.empty(0), np.empty(0)
        )
    rows = _RegressionRows(
        np.concatenate(codes), names, np.concatenate(scenario), np.concatenate(ends), np.concatenate(met)
    )
    return rows.where(rows.met > 0)


def _without_constant(rows: _RegressionRows, hazards: Numbers, left_out: list[str]) -> _RegressionRows:
    """The rows without those of values at which none or all ended misaligned.

    The coefficient of such a value diverges; the other coefficients converge to their estimates without its
    rows. The hazard of such a level, 0 or 1, is written to ``hazards``; the name of any other such value is
    appended to ``left_out``.
    """
    for column, (factor, names) in enumerate(zip(FACTORS, rows.names, strict=True)):
        codes = rows.codes[:, column]
        for value in np.unique(codes[codes != NO_DIMENSION]).tolist():
            here = codes == value
            ends, met = float(rows.ends[here].sum()), float(rows.met[here].sum())
            if 0.5 < ends < met - 0.5:
                continue
            if factor == "level":
                hazards[value] = float(ends > 0)
            else:
                left_out.append(f"{factor} {names[value]}")
            # Another value may have become constant.
            return _without_constant(rows.where(~here), hazards, left_out)
    return rows


class _Fit(NamedTuple):
    """Coefficients, in the order of `_matrix`, and their covariance, clustered by scenario."""

    coefficients: Numbers
    covariance: Numbers
    freedom: int

    def error(self, weights: Numbers) -> float:
        """Standard error of a weighted sum of the coefficients."""
        return sqrt(max(0.0, float(weights @ self.covariance @ weights)))


def _matrix(codes: Codes, values: list[Codes]) -> Numbers:
    """Indicators of the levels, and sum-to-zero contrasts of the other factors (-1 for the last value)."""
    parts = [codes[:, [0]] == values[0]]
    for column, found in zip(codes.T[1:], values[1:], strict=True):
        is_value = (column[:, None] == found).astype(np.float64)
        parts.append(is_value[:, :-1] - is_value[:, -1:])
    return np.hstack(parts, dtype=np.float64)


def _fit(rows: _RegressionRows, values: list[Codes]) -> _Fit | str:
    """The fit, or the reason why there is none."""
    from scipy.special import expit  # scipy is slow to import

    key = np.ravel_multi_index(tuple((rows.codes + 1).T), tuple(rows.codes.max(axis=0) + 2))
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    x = _matrix(rows.codes[first], values)
    ends, met = (np.bincount(cell, weights=column).astype(np.float64) for column in (rows.ends, rows.met))
    scenarios, cluster = np.unique(rows.scenario, return_inverse=True)
    clusters = len(scenarios)
    freedom = clusters - len(values[FACTORS.index("domain")])
    if clusters <= x.shape[1]:
        return f"{clusters} scenarios are too few for {x.shape[1]} coefficients"
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return "two factors are collinear, so their effects cannot be separated"
    coefficients = maximum_likelihood(x, ends, met)
    if coefficients is None:
        return "a combination of factors predicts the outcome perfectly, so there is no finite estimate"
    chance = expit(x @ coefficients)
    # Score residuals summed by scenario: the middle of the sandwich estimator (Liang and Zeger 1986).
    rest = rows.ends - rows.met * chance[cell]
    scores = np.stack([np.bincount(cluster, weights=rest * column[cell]) for column in x.T], axis=1)
    bread = np.linalg.inv((x * (met * chance * (1 - chance))[:, None]).T @ x)
    covariance = clusters / (clusters - 1) * bread @ (scores.T @ scores) @ bread
    return _Fit(coefficients, covariance, freedom)


def _effects(
    fit: _Fit, rows: _RegressionRows, values: list[Codes], hazards: Numbers
) -> tuple[FactorEffect, ...]:
    """The effects of all factors but the level, with errors by the delta method."""
    from scipy.special import expit

    profiles = np.array(list(product(*(found if len(found) else [NO_DIMENSION] for found in values[1:]))))
    levels = values[0]
    codes = np.concatenate([np.insert(profiles, 0, level, axis=1) for level in levels])
    codes[codes[:, 0] == 0, FACTORS.index("dimension")] = NO_DIMENSION
    x = _matrix(codes, values).reshape(len(levels), len(profiles), -1)
    hazard = expit(x @ fit.coefficients)
    survival = np.prod(1 - hazard, axis=0) * np.prod(1 - hazards[~np.isnan(hazards)])
    slopes = survival[:, None] * (hazard[..., None] * x).sum(axis=0)
    every = np.ones(len(profiles), dtype=np.bool_)
    found = []
    for column, factor in enumerate(FACTORS[1:]):
        places = profiles[:, column]
        for value in values[column + 1].tolist() if len(values[column + 1]) > 1 else []:
            if factor == "naming" and value == 0:
                continue
            here, other = places == value, places == 0 if factor == "naming" else every
            found.append(
                _effect(
                    (factor, rows.names[column + 1][value]),
                    fit,
                    1 - float(survival[here].mean()),
                    float(survival[other].mean() - survival[here].mean()),
                    slopes[here].mean(axis=0) - slopes[other].mean(axis=0),
                    x[-1][here].mean(axis=0) - x[-1][other].mean(axis=0),
                )
            )
    return tuple(found)


def _effect(
    name: tuple[Factor, str], fit: _Fit, propensity: float, effect: float, slope: Numbers, contrast: Numbers
) -> FactorEffect:
    """One effect, given the gradients of its propensity and its log odds."""
    from scipy.special import stdtr, stdtrit

    quantile = float(stdtrit(fit.freedom, 0.975))
    half = quantile * fit.error(slope)
    log_odds, error = float(contrast @ fit.coefficients), fit.error(contrast)
    return FactorEffect(
        *name,
        propensity=propensity,
        points=100 * effect,
        points_ci95=Interval(100 * (effect - half), 100 * (effect + half)),
        odds_ratio=exp(log_odds),
        odds_ratio_ci95=Interval(exp(log_odds - quantile * error), exp(log_odds + quantile * error)),
        p=2 * float(stdtr(fit.freedom, -abs(log_odds) / error)) if error > 0 else 1.0,
    )
