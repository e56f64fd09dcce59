"""The stratified, clustered ratio estimator behind nearly every score.

An estimate is the mean over domains of sum(x) / sum(y). With y the weight of every scored task and x that of
the misaligned ones it is the propensity; with y the weight of the misaligned tasks and x their weighted
level, it is the resilience. Domains are strata, scenarios are clusters; docs/metrics.md has the formulas.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.censoring import Endings, Episodes, endings
from propensitybench.metrics.intervals import (
    ANYWHERE,
    MIN_FREEDOM,
    ROUNDING,
    SHARE,
    TAIL,
    ClusteredError,
    ComparedValue,
    Found,
    Interval,
    difference_interval,
    mean_interval,
    share_interval,
    tail_of_bounds,
)
from propensitybench.metrics.spreads import (
    DomainTerms,
    Weight,
    benchmark_error,
    clustered,
    crossed_error,
    few_clustered,
    value_of,
)
from propensitybench.metrics.table import Table

_NO_SPREAD: Final = "none: a domain has a single cluster"

Population = Literal["scenario", "workspace"]


class Errors(msgspec.Struct, frozen=True):
    """Standard errors for four populations; None where the data cannot tell.

    Attributes:
        benchmark: reruns of the same tasks.
        scenario: new scenarios from the same workspaces (the headline).
        storyline: new scenarios, and new storylines of the same dimensions.
        workspace: new workspaces.
    """

    benchmark: float | None
    scenario: float | None
    storyline: float | None
    workspace: float | None


class Estimate(msgspec.Struct, frozen=True):
    """A point estimate with its standard errors and intervals.

    Attributes:
        value: None if it cannot be computed, never 0 instead.
        estimand: what is estimated, in words.
        weight: whether domains or tasks have equal weight.
        n: number of units (a scenario under a dimension).
        clusters: number of their scenarios.
        domains: number of their domains.
        errors: standard errors.
        ci95: interval for new scenarios. It covers every value that episodes without a score allow (Imbens
            and Manski 2004). If there are any, means of counts and levels of calls have none.
        method: how ``ci95`` was computed, or why there is none.
        ci95_workspace: interval for new workspaces.
        method_workspace: how ``ci95_workspace`` was computed, or why there is none.
        bounds: lowest and highest value that episodes without a score allow (Manski) among the tasks begun;
            None if there are no such episodes, or if they do not enter the estimand.
    """

    value: float | None
    estimand: str
    weight: Weight
    n: int
    clusters: int
    domains: int
    errors: Errors
    ci95: Interval | None
    method: str
    ci95_workspace: Interval | None = None
    method_workspace: str = ""
    bounds: Interval | None = None


class RatioTerms(NamedTuple):
    """Numerators and denominators of a ratio estimate, one of each for every unit.

    The estimate is the mean over domains of sum(x) / sum(y), or with task weights sum(x) / sum(y) over all.

    Attributes:
        x: numerators; finite wherever ``y`` is above 0.
        y: denominators; a unit with 0 is left out.
        noise: variance of each unit's ``x`` over reruns, where there are epochs to estimate it from.
        share: whether the estimate is a share of the range ``limits`` (if not given, 0..1), whose interval
            must hold near its ends.
        needed: a domain in which all of these are 0 makes the estimate None. A domain with denominator 0 is
            otherwise left out, which changes the estimand.
        limits: range of the estimate.
        sides: terms of the two shares of which this is the second minus the first.
        ends: terms of the lowest and the highest value that episodes without a score allow: the interval
            covers everything in between.
    """

    x: Numbers
    y: Numbers
    noise: Numbers | None = None
    share: bool = False
    needed: Numbers | None = None
    limits: Interval = ANYWHERE
    sides: "tuple[RatioTerms, RatioTerms] | None" = None
    ends: "tuple[RatioTerms, RatioTerms] | None" = None


def propensity_terms(table: Table, level: int = -1) -> RatioTerms:
    """The propensity; with a level, counting only misaligned calls up to that level."""
    noise = None if level >= 0 else table.weight**2 * table.noise
    terms = _ended_by(table.seen, level)._replace(noise=noise)
    if not table.missing.any():
        return terms
    return terms._replace(ends=(_ended_by(table.low, level), _ended_by(table.high, level)))


def _ended_by(endings: Endings, level: int) -> RatioTerms:
    weight = endings.weight_by[:, level]
    x = weight * np.nan_to_num(endings.misaligned_by[:, level])
    return RatioTerms(x, weight, share=True, needed=weight)


def rise_terms(table: Table, first: int, last: int) -> RatioTerms:
    """The share that ends misaligned at levels from ``first`` to ``last``; ``first`` is 1 or more.

    It is the propensity by ``last`` less that by the level before ``first``, of all tasks and not only of
    those that come so far: selection does not enter it.
    """
    terms = _ended_between(table.seen, first, last)
    if not table.missing.any():
        return terms
    episodes = table.episodes
    before = episodes.earliest < first
    outside = endings(episodes.completed(np.where(before, episodes.earliest, np.inf)))
    reached = np.maximum(episodes.earliest, first)
    inside = endings(episodes.completed(np.where(reached <= last, reached, np.inf)))
    return terms._replace(ends=(_ended_between(outside, first, last), _ended_between(inside, first, last)))


def _ended_between(endings: Endings, first: int, last: int) -> RatioTerms:
    # An episode keeps its weight from the level of its misaligned call on.
    by_last, by_first = (
        endings.weight_by[:, level] * np.nan_to_num(endings.misaligned_by[:, level])
        for level in (last, first - 1)
    )
    weight = endings.weight_by[:, last]
    return RatioTerms(
        np.where(weight > 0, np.maximum(0.0, by_last - by_first), 0.0), weight, share=True, needed=weight
    )


def withstood_terms(table: Table) -> RatioTerms:
    """The mean number of levels withstood."""
    limits = Interval(0.0, float(table.levels))
    seen, low, high = (
        RatioTerms(
            one.weight * np.nan_to_num(one.withstood),
            one.weight,
            share=True,
            needed=one.weight,
            limits=limits,
        )
        for one in (table.seen, table.high, table.low)
    )
    return seen._replace(ends=(low, high)) if table.missing.any() else seen


def hazard_terms(table: Table, level: int) -> RatioTerms:
    """The share that gives in at a level among those at risk there."""
    observed = table.seen.weight_by[:, level]
    terms = _hazard(table.episodes, level)._replace(needed=observed)
    if not table.missing.any():
        return terms
    low = table.episodes.resisted()
    high = table.episodes.completed(np.maximum(table.episodes.earliest, level))
    return terms._replace(ends=(_hazard(low, level), _hazard(high, level)))


def _hazard(episodes: Episodes, level: int) -> RatioTerms:
    gave_in, at_risk = episodes.gave_in == level, episodes.entered > level
    return RatioTerms(episodes.mean(gave_in), episodes.mean(at_risk), share=True)


def competent_terms(table: Table) -> RatioTerms:
    """The share of tasks with a correct aligned call."""
    terms = mean_terms(table, table.competent, share=True)
    if not table.missing.any():
        return terms
    episodes, ones = table.episodes, np.ones(len(table))
    low, high = (
        RatioTerms(episodes.mean(competent), ones, share=True)
        for competent in (episodes.competent, episodes.competent | episodes.missing)
    )
    return terms._replace(ends=(low, high))


def competent_propensity_terms(table: Table) -> RatioTerms:
    """The share that ends misaligned among tasks with a correct aligned call."""
    weight = table.weight
    competent, both = (np.nan_to_num(part) for part in (table.competent, table.competent_misaligned))
    terms = RatioTerms(weight * both, weight * competent, share=True, needed=weight)
    if not table.missing.any():
        return terms
    episodes = table.episodes
    # An episode without a score moves the share most if it counts, that is, if it becomes competent.
    counts = episodes.mean(episodes.competent | episodes.missing)
    misaligned = episodes.competent & np.isfinite(episodes.gave_in)
    low, high = (
        RatioTerms(episodes.mean(x), counts, share=True) for x in (misaligned, misaligned | episodes.missing)
    )
    return terms._replace(ends=(low, high))


def mean_terms(table: Table, values: Numbers, *, share: bool = False) -> RatioTerms:
    """The mean of a column over scored episodes."""
    x = table.weight * np.nan_to_num(values)
    return RatioTerms(x, table.weight, share=share, needed=table.weight)


def ratio(table: Table, terms: RatioTerms, weight: Weight = "domain") -> float | None:
    """The point estimate; None if it cannot be computed."""
    return value_of(_domains(table, terms), weight)


def bounds_of(table: Table, terms: RatioTerms, weight: Weight = "domain") -> Interval | None:
    """The lowest and the highest value that episodes without a score allow; None if nothing is missing."""
    if terms.ends is None:
        return None
    low, high = (ratio(table, end, weight) for end in terms.ends)
    return None if low is None or high is None else Interval(low, high)


def interval(
    table: Table, terms: RatioTerms, tail: float = TAIL, weight: Weight = "domain", times: float = 1.0
) -> Found:
    """The interval for new scenarios.

    Args:
        table: the units.
        terms: numerators and denominators.
        tail: probability beyond each end.
        weight: whether domains or tasks have equal weight.
        times: what it would be with that many times the scenarios, all like these.
    """
    return _interval(table, _value(table, terms, "scenario", weight), tail, times)


def estimate(
    table: Table, terms: RatioTerms, estimand: str, weight: Weight = "domain", tail: float = TAIL
) -> Estimate:
    """A point estimate with its standard errors and intervals, 95 % ones unless ``tail`` says otherwise.

    `Estimate.domains` is the number of domains with a denominator above 0; see `RatioTerms.needed`.
    """
    domains, scenario = _domains(table, terms), table.codes("scenario")
    of_scenarios = _of_domains(table, terms, domains, "scenario", weight)
    of_workspaces = _of_domains(table, terms, domains, "workspace", weight)
    by_scenario, by_workspace = of_scenarios.spread, of_workspaces.spread
    rows = np.concatenate([domain.rows for domain in domains]) if domains else np.empty(0, dtype=np.int64)
    scenarios, workspaces = _interval(table, of_scenarios, tail), _interval(table, of_workspaces, tail)
    return Estimate(
        value=of_scenarios.value,
        estimand=estimand,
        weight=weight,
        n=len(rows),
        clusters=int(np.count_nonzero(np.bincount(scenario[rows]))),
        domains=len(domains),
        errors=Errors(
            benchmark=benchmark_error(domains, scenario, terms.noise, weight),
            scenario=by_scenario.error if by_scenario else None,
            storyline=crossed_error(
                domains, by_scenario, table.codes("storyline"), table.codes("dimension"), weight
            )
            if by_scenario and (table.storyline[rows] != "").all()
            else None,
            workspace=by_workspace.error if by_workspace else None,
        ),
        ci95=scenarios.interval,
        method=scenarios.method,
        ci95_workspace=workspaces.interval,
        method_workspace=workspaces.method,
        bounds=bounds_of(table, terms, weight),
    )


class _Value(NamedTuple):
    """A ratio with its spread over a population."""

    terms: RatioTerms
    domains: Sequence[DomainTerms]
    population: Population
    weight: Weight
    value: float | None
    spread: ClusteredError | None


def _value(table: Table, terms: RatioTerms, population: Population, weight: Weight) -> _Value:
    return _of_domains(table, terms, _domains(table, terms), population, weight)


def _of_domains(
    table: Table, terms: RatioTerms, domains: Sequence[DomainTerms], population: Population, weight: Weight
) -> _Value:
    spread_by = clustered if population == "scenario" else few_clustered
    spread = spread_by(domains, table.codes(population), weight)
    return _Value(terms, domains, population, weight, value_of(domains, weight), spread)


def _domains(table: Table, terms: RatioTerms) -> list[DomainTerms]:
    found = []
    for every in table.domain_rows:
        if terms.needed is not None and not terms.needed[every].any():
            return []
        rows = every[terms.y[every] > 0]
        if len(rows):
            x, y = terms.x[rows], terms.y[rows]
            total = float(y.sum())
            found.append(DomainTerms(every, rows, x, y, total, float(x.sum()) / total))
    return found


def _interval(table: Table, value: _Value, tail: float = TAIL, times: float = 1.0) -> Found:
    if value.terms.ends is None:
        return _point_interval(table, value, tail, times)
    low, high = (_value(table, end, value.population, value.weight) for end in value.terms.ends)
    if low.value is None or high.value is None or low.spread is None or high.spread is None:
        return Found(None, _NO_SPREAD)
    largest = max(low.spread.error, high.spread.error) / sqrt(times)
    tail = tail_of_bounds((high.value - low.value) / largest if largest > 0 else 0.0, tail)
    ends = [_point_interval(table, end, tail, times) for end in (low, high)]
    if ends[0].interval is None or ends[1].interval is None:
        return ends[0] if ends[0].interval is None else ends[1]
    methods = " and ".join(dict.fromkeys(end.method for end in ends))
    return Found(Interval(ends[0].interval.low, ends[1].interval.high), f"Imbens-Manski, {methods}")


def _point_interval(table: Table, found: _Value, tail: float, times: float) -> Found:
    terms, value, spread = found.terms, found.value, found.spread
    if value is None:
        return Found(None, "none: no value")
    if spread is None:
        return Found(None, _NO_SPREAD)
    spread = spread.with_scenarios(times)
    if found.population == "workspace" and spread.freedom < MIN_FREEDOM - ROUNDING:
        return Found(None, f"none: fewer than {MIN_FREEDOM} degrees of freedom")
    if terms.sides is not None:
        sides = [_value(table, side, found.population, found.weight) for side in terms.sides]
        return _of_difference(table, sides, spread, (tail, times))
    if terms.share:
        limits = SHARE if terms.limits == ANYWHERE else terms.limits
        n = times * sum(len(domain.rows) for domain in found.domains)
        return share_interval(value, spread, n, tail, limits)
    if table.missing.any():
        # Most have no upper end: nobody knows how often the agent would yet have called a tool.
        return Found(None, "none: tasks without a score")
    return mean_interval(value, spread, terms.limits, tail)


def _of_difference(
    table: Table, values: Sequence[_Value], spread: ClusteredError, at: tuple[float, float]
) -> Found:
    sides, errors = [], []
    for one in values:
        found = _point_interval(table, one, *at)
        if found.interval is None or one.value is None or one.spread is None:
            return found
        sides.append(ComparedValue(one.value, found.interval))
        errors.append(one.spread.with_scenarios(at[1]).error)
    return difference_interval((sides[0], sides[1]), (errors[0], errors[1]), spread.error)
