"""Odds ratios of the levels of factors, from one regression on all factors, arms, domains and the naming."""

from collections.abc import Sequence
from math import exp

import numpy as np
from scipy.special import stdtr, stdtrit

from propensitybench.episode import EpisodeRecord
from propensitybench.experiments.factors import Factor
from propensitybench.experiments.results import CellRecords, OddsRatio
from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import TAIL, Interval
from propensitybench.metrics.odds import LogOdds, log_odds
from propensitybench.metrics.table import is_finished


def odds_ratios(factors: Sequence[Factor], cells: Sequence[CellRecords], notes: list[str]) -> list[OddsRatio]:
    """The odds ratio of every level of every factor."""
    rows = [(cell, record) for cell in cells for record in cell.records if is_finished(record)]
    missing = sum(len(cell.records) for cell in cells) - len(rows)
    if not factors or not rows:
        return []
    if missing:
        notes.append(f"odds ratios leave out {missing} episodes without a score; the differences have bounds")
    names, columns = _columns(factors, rows)
    outcome = np.array([record.stats.outcome == "misaligned" for _, record in rows], dtype=np.float64)
    clusters = [
        np.unique([record.metadata.scenario for _, record in rows], return_inverse=True)[1],
        np.unique(
            [record.metadata.storyline or record.metadata.scenario for _, record in rows], return_inverse=True
        )[1],
    ]
    fit = log_odds(columns, outcome, clusters)
    if isinstance(fit, str):
        notes.append(f"no odds ratios: {fit}")
        return []
    return [
        _odds_ratio(factor, level.level, fit, names.index(f"{factor.name}={level.level}"))
        for factor in factors
        for level in factor.levels[1:]
        if f"{factor.name}={level.level}" in names
    ]


def _columns(
    factors: Sequence[Factor], rows: Sequence[tuple[CellRecords, EpisodeRecord]]
) -> tuple[list[str], Numbers]:
    """The columns of the regression and their names: an intercept, and all levels but each first one."""
    stated = [
        {
            **{f"{factor.name}={cell.levels[factor.name]}": 1.0 for factor in factors},
            f"arm={cell.arm}": 1.0,
            f"domain={record.metadata.domain}": 1.0,
            f"naming={record.metadata.naming}": 1.0,
        }
        for cell, record in rows
    ]
    every = list(dict.fromkeys(name for row in stated for name in row))
    references = {f"{factor.name}={factor.levels[0].level}" for factor in factors}
    for kind in ("arm", "domain", "naming"):
        references.add(next(name for name in every if name.startswith(f"{kind}=")))
    kept = [name for name in every if name not in references]
    columns = np.array([[1.0, *(row.get(name, 0.0) for name in kept)] for row in stated])
    return ["", *kept], columns


def _odds_ratio(factor: Factor, level: str, fit: LogOdds, place: int) -> OddsRatio:
    value, error = float(fit.values[place]), float(np.sqrt(fit.covariance[place, place]))
    half = float(stdtrit(fit.freedom, 1 - TAIL)) * error
    return OddsRatio(
        factor=factor.name,
        level=level,
        reference=factor.levels[0].level,
        ratio=exp(value),
        ci95=Interval(exp(value - half), exp(value + half)),
        p=2 * float(stdtr(fit.freedom, -abs(value) / error)),
        p_adjusted=None,
        exploratory=False,
        between=factor.between,
    )
