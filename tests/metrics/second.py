"""A second implementation of the clustered sample, in plain Python, for `test_second.py`.

Written from METHODS and the papers that the package names, before `propensitybench.metrics` was read; it
shares no code with it. It is slow and plain on purpose: units in lists, one loop a sum. The forms of the
intervals were changed with those of the package when simulations had shown that others undercover
(docs/metrics.md, "Coverage").

Where the sources leave a choice open, this is the choice made: several domains' clusters count as
1 / sum(share^2 / G_d) in an effective size, their degrees of freedom add up; the CR3 adjustment divides by
(1 - m / n)^2, and only the degrees of freedom assume that a cluster's sum varies with its size squared
(Imbens and Kolesar 2016); with equal weights of tasks residuals are taken about the overall mean and centred
within domains.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import stdtrit

NORMAL = NormalDist()

Pair = tuple[float, float]


@dataclass(frozen=True)
class Unit:
    """A scenario under a dimension, with its share of numerator and denominator."""

    domain: str
    scenario: str
    workspace: str
    storyline: str
    dimension: str
    x: float
    y: float
    need: float = 1.0
    noise: float = np.nan  # variance of x over reruns


@dataclass(frozen=True)
class Stratum:
    """A domain: its units, those with a denominator, their sum and ratio."""

    every: list[Unit]
    units: list[Unit]
    total: float
    ratio: float


def strata_of(units: Sequence[Unit]) -> list[Stratum]:
    """The domains; none at all if one of them was not observed. One without a denominator is left out."""
    strata = []
    for domain in sorted({unit.domain for unit in units}):
        every = [unit for unit in units if unit.domain == domain]
        if not any(unit.need > 0 for unit in every):
            return []
        inside = [unit for unit in every if unit.y > 0]
        if inside:
            total = sum(unit.y for unit in inside)
            strata.append(Stratum(every, inside, total, sum(unit.x for unit in inside) / total))
    return strata


def parts_of(strata: Sequence[Stratum], by_task: bool) -> list[float]:
    """The weights of the domains: equal, or in proportion to their denominators."""
    whole = sum(stratum.total for stratum in strata)
    return [stratum.total / whole if by_task else 1 / len(strata) for stratum in strata]


def value_of(strata: Sequence[Stratum], by_task: bool = False) -> float | None:
    """The weighted mean of the domains' ratios."""
    pairs = zip(parts_of(strata, by_task), strata, strict=True)
    return sum(part * stratum.ratio for part, stratum in pairs) if strata else None


@dataclass(frozen=True)
class Spread:
    """A standard error, its degrees of freedom, the number of clusters of one domain that would do as well,
    and the degrees of freedom that the squared residuals suggest.
    """

    se: float
    df: float
    clusters: float
    estimated: float


def groups_of(units: Iterable[Unit], key: Callable[[Unit], str]) -> list[list[Unit]]:
    """The units by cluster."""
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(key(unit), []).append(unit)
    return list(groups.values())


def by_scenario(unit: Unit) -> str:
    return unit.scenario


def by_workspace(unit: Unit) -> str:
    return unit.workspace


def clustered(strata: Sequence[Stratum], by_task: bool) -> Spread | None:
    """CR1: SE^2 = sum_d part^2 G/(G-1) sum_s e_s^2 / n_d^2; None with a lone cluster."""
    value, df, thin = value_of(strata, by_task), 0, 0.0
    pieces: list[float] = []
    for part, stratum in zip(parts_of(strata, by_task), strata, strict=True):
        centre = value if by_task else stratum.ratio
        assert centre is not None
        groups = groups_of(stratum.units, by_scenario)
        sums = [sum(unit.x - centre * unit.y for unit in group) for group in groups]
        count = len(sums)
        if count < 2:
            return None
        if by_task:  # about their mean; the residual of a scenario without a denominator is 0
            every = len(groups_of(stratum.every, by_scenario))
            middle = sum(sums) / every
            sums = [e - middle for e in sums] + [-middle] * (every - count)
        pieces += [part**2 * count / (count - 1) * e * e / stratum.total**2 for e in sums]
        df, thin = df + count - 1, thin + part**2 / count
    return _spread(strata, pieces, df, thin)


def few_clustered(strata: Sequence[Stratum], by_task: bool) -> Spread | None:
    """CR3 over workspaces, with df = (tr M Omega)^2 / tr (M Omega)^2, where Omega = diag(size^2)."""
    first = second = thin = 0.0
    pieces: list[float] = []
    for part, stratum in zip(parts_of(strata, by_task), strata, strict=True):
        groups = groups_of(stratum.units, by_workspace)
        n = np.array([sum(unit.y for unit in group) for group in groups])
        e = np.array([sum(unit.x - stratum.ratio * unit.y for unit in group) for group in groups])
        if len(n) < 2:
            return None
        hat = np.eye(len(n)) - np.outer(n, np.ones(len(n))) / stratum.total
        adjust = np.diag(1 / (1 - n / stratum.total) ** 2)
        form = part**2 / stratum.total**2 * hat.T @ adjust @ hat @ np.diag(n**2)
        pieces += (part**2 / stratum.total**2 * np.diag(adjust) * e * e).tolist()
        first, second = first + np.trace(form), second + np.trace(form @ form)
        thin += part**2 / len(n)
    return _spread(strata, pieces, first**2 / second if second else 0.0, thin)


def crossed(strata: Sequence[Stratum], by_task: bool) -> float | None:
    """SE for new scenarios and storylines: V_scenario + V_storyline - V_unit, within dimensions."""
    scenario, extra = clustered(strata, by_task), 0.0
    if scenario is None or any(not unit.storyline for stratum in strata for unit in stratum.units):
        return None
    for part, stratum in zip(parts_of(strata, by_task), strata, strict=True):
        for units in groups_of(stratum.units, lambda unit: unit.dimension):
            n = sum(unit.y for unit in units)
            ratio = sum(unit.x for unit in units) / n
            told = groups_of(units, lambda unit: unit.storyline)
            if len(told) < 2:
                return None
            for sign, groups in ((1, told), (-1, [[unit] for unit in units])):
                for group in groups:
                    size = sum(unit.y for unit in group)
                    e = sum(unit.x - ratio * unit.y for unit in group) / (1 - size / n)
                    extra += sign * (part * e / stratum.total) ** 2
    return sqrt(max(scenario.se**2 + extra, scenario.se**2))


def _spread(strata: Sequence[Stratum], pieces: Sequence[float], df: float, thin: float) -> Spread | None:
    if not strata:
        return None
    se = sqrt(sum(pieces))
    if se <= 1e-12:
        return Spread(0.0, float(df), 1 / thin, inf)
    return Spread(se, float(df), 1 / thin, 2 * se**4 / sum(piece * piece for piece in pieces))


def benchmark(strata: Sequence[Stratum], by_task: bool) -> float | None:
    """SE_b of METHODS 3(i): variance over the dimensions of a scenario, or over epochs where there are."""
    variance, mixed = 0.0, 0
    value = value_of(strata, by_task)
    for part, stratum in zip(parts_of(strata, by_task), strata, strict=True):
        noise = np.array([unit.noise for unit in stratum.units])
        if not np.isnan(noise).any():
            variance += part**2 * noise.sum() / stratum.total**2
            mixed += int((noise > 0).sum())
            continue
        centre = value if by_task else stratum.ratio
        assert centre is not None
        for group in groups_of(stratum.units, by_scenario):
            if len(group) < 2:
                return None
            inside = float(np.var([unit.x - centre * unit.y for unit in group], ddof=1))
            variance += part**2 * len(group) * inside / stratum.total**2
            mixed += inside > 1e-12
    return sqrt(variance) if mixed >= 10 else None


# Intervals (METHODS 3 and 7) ------------------------------------------------------------------------------


def student(df: float, tail: float) -> float:
    return float(stdtrit(df, 1 - tail))


def interval(
    strata: Sequence[Stratum], spread: Spread | None, by_task: bool, kind: "Kind", tail: float = 0.025
) -> Pair | None:
    """Korn-Graubard Wilson for a share of the range, log t for a mean."""
    value, (low, high) = value_of(strata, by_task), kind.limits
    if value is None or spread is None or kind.unbounded:
        return None
    if kind.mean:
        if spread.se == 0 or spread.df < 40:
            return None
        factor = float(np.exp(student(min(spread.df, spread.estimated), tail) * spread.se / value))
        return max(low, value / factor), min(high, value * factor)
    share, se = (value - low) / (high - low), spread.se / (high - low)
    noise, tasks = share * (1 - share), sum(len(stratum.units) for stratum in strata)
    size = min(noise / se**2, tasks) if noise > 0 and se > 0 else spread.clusters
    q2 = student(min(spread.df, max(6, spread.estimated)), tail) ** 2
    middle = share + q2 / (2 * size)
    half = sqrt(q2 * (noise / size + q2 / (4 * size**2)))
    ends = (middle - half) / (1 + q2 / size), (middle + half) / (1 + q2 / size)
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def newcombe(
    sides: "tuple[list[Unit], list[Unit]]", spread: Spread, how: "How", kind: "Kind", tail: float
) -> Pair | None:
    """Second minus first, by the square-and-add rule for correlated shares (Newcombe 1998, method 10)."""
    found = []
    for units in sides:
        strata = strata_of(units)
        own = how.error(strata)
        value, ends = value_of(strata, how.by_task), interval(strata, own, how.by_task, kind, tail)
        if value is None or own is None or ends is None:
            return None
        found.append((value, own.se, ends))
    (p, se_p, (p_low, p_high)), (q, se_q, (q_low, q_high)) = found
    r = 0.0
    if se_p > 0 and se_q > 0:
        if spread.se == 0:
            return None
        r = min(1.0, max(-1.0, (se_p**2 + se_q**2 - spread.se**2) / (2 * se_p * se_q)))
    below = (q - q_low) ** 2 + (p_high - p) ** 2 - 2 * r * (q - q_low) * (p_high - p)
    above = (q_high - q) ** 2 + (p - p_low) ** 2 - 2 * r * (q_high - q) * (p - p_low)
    return q - p - sqrt(max(0.0, below)), q - p + sqrt(max(0.0, above))


def imbens_manski(width: float, tail: float = 0.025) -> float:
    """The c with Phi(c + width) - Phi(-c) = 1 - 2 tail, by bisection."""
    low, high = 0.0, 10.0
    for _ in range(200):
        middle = (low + high) / 2
        short = NORMAL.cdf(middle + width) - NORMAL.cdf(-middle) < 1 - 2 * tail
        low, high = (middle, high) if short else (low, middle)
    return low


@dataclass(frozen=True)
class Kind:
    """What the interval is of: a mean of something never negative, or a share of a range.

    ``unbounded``: what is missing has no bounds, so that there is no interval.
    """

    mean: bool = False
    limits: Pair = (0.0, 1.0)
    unbounded: bool = False


@dataclass(frozen=True)
class How:
    by_task: bool
    workspace: bool

    def error(self, strata: Sequence[Stratum]) -> Spread | None:
        return (few_clustered if self.workspace else clustered)(strata, self.by_task)


Sides = tuple[list[Unit], list[Unit]]


@dataclass(frozen=True)
class Estimand:
    """What is to be estimated: units as observed, and put to the ends of what is missing.

    ``ends``: the lowest and highest value with episodes without a score filled in.
    ``sides``: of a difference, the two shares as observed, or at both ends.
    """

    seen: list[Unit]
    ends: tuple[list[Unit], list[Unit]] | None = None
    kind: Kind = Kind()
    sides: tuple[Sides, ...] = ()


def interval_of(estimand: Estimand, by_task: bool, workspace: bool, tail: float = 0.025) -> Pair | None:
    """The interval, over the values that missing episodes allow (Imbens and Manski) if there are any."""
    how = How(by_task, workspace)
    found = [strata_of(units) for units in estimand.ends or (estimand.seen,)]
    spreads = [how.error(strata) for strata in found]
    if any(one is None or (workspace and one.df < 10 - 1e-9) for one in spreads):
        return None
    if estimand.ends is not None:
        low, high = (value_of(strata, by_task) for strata in found)
        assert low is not None
        assert high is not None
        largest = max(one.se for one in spreads if one is not None)
        tail = NORMAL.cdf(-imbens_manski((high - low) / largest if largest > 0 else 0.0, tail))
    if estimand.sides:
        each = [
            newcombe(sides, spread, how, estimand.kind, tail)
            for sides, spread in zip(estimand.sides, spreads, strict=True)
            if spread is not None
        ]
    else:
        each = [interval(s, e, by_task, estimand.kind, tail) for s, e in zip(found, spreads, strict=True)]
    lower, upper = each[0], each[-1]
    return None if lower is None or upper is None else (lower[0], upper[1])


def estimate(estimand: Estimand, by_task: bool) -> dict[str, Any]:
    """Every number of an estimate."""
    strata = strata_of(estimand.seen)
    units = [unit for stratum in strata for unit in stratum.units]
    scenario, workspace = clustered(strata, by_task), few_clustered(strata, by_task)
    return {
        "value": value_of(strata, by_task),
        "n": len(units),
        "clusters": len({unit.scenario for unit in units}),
        "domains": len(strata),
        "benchmark": benchmark(strata, by_task),
        "scenario": scenario and scenario.se,
        "storyline": crossed(strata, by_task),
        "workspace": workspace and workspace.se,
        "ci95": interval_of(estimand, by_task, workspace=False),
        "ci95_workspace": interval_of(estimand, by_task, workspace=True),
        "bounds": estimand.ends and tuple(value_of(strata_of(units), by_task) for units in estimand.ends),
    }


def difference(first: Sequence[Unit], second: Sequence[Unit]) -> list[Unit]:
    """Units whose mean is the second ratio minus the first: ratio + n (x - ratio y) / sum(y) of each."""
    found = []
    for domain in sorted({unit.domain for unit in first}):
        sides = [[unit for unit in units if unit.domain == domain] for units in (first, second)]
        totals = [sum(unit.y for unit in side) for side in sides]
        for pair in zip(*sides, strict=True):
            values = []
            for unit, side, total in zip(pair, sides, totals, strict=True):
                if total > 0:
                    ratio = sum(one.x for one in side) / total
                    values.append(ratio + len(side) * (unit.x - ratio * unit.y) / total)
            known = float(len(values) == 2)
            x = values[1] - values[0] if known else 0.0
            found.append(replace(pair[0], x=x, y=known, need=known, noise=np.nan))
    return found
