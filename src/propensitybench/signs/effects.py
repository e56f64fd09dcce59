"""Effects that signs are decided on: a value with its interval at any level, for any number of scenarios."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.capability_index import fisher_interval, spearman
from propensitybench.metrics.compare import difference_terms, matched
from propensitybench.metrics.estimates import RatioTerms, bounds_of, interval, propensity_terms, ratio
from propensitybench.metrics.families import by_scenario
from propensitybench.metrics.intervals import ComparedValue, Found, Interval, difference_interval
from propensitybench.metrics.judged import Judged, Resamples
from propensitybench.metrics.ppi import ppi_mean
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.table import Table
from propensitybench.signs.subject import IndexedModel

MIN_MODELS: Final = 30
# Fisher's standard error is 1 / sqrt(n - 3).
MIN_CORRELATED: Final = 4


class Effect(NamedTuple):
    """An effect as it was estimated.

    Attributes:
        value: a share, a difference of shares, or a correlation; None if it cannot be computed.
        bounds: lowest and highest value that lost episodes allow; both are the value without any. None if it
            cannot be computed.
        size: number of tasks, or of models.
        interval: the interval with a probability beyond each end, and how it was made or why there is none;
            it covers every value within the bounds. The second argument is for planning: what the interval
            would be with that many times the scenarios, all like those that were played, so that variances
            are divided by it.
        too_few: why no verdict is given although there is a value; empty if one is.
    """

    value: float | None
    bounds: Interval | None
    size: int
    interval: Callable[[float, float], Found]
    too_few: str = ""


def share(table: Table, terms: RatioTerms) -> Effect:
    """A share, or a difference of two shares on the same tasks."""
    value = ratio(table, terms)
    bounds = bounds_of(table, terms) if terms.ends else None if value is None else Interval(value, value)
    return Effect(value, bounds, len(table), lambda tail, times: interval(table, terms, tail, times=times))


def paired_difference(first: Table, second: Table) -> Effect:
    """The propensity of the second table minus that of the first, on the tasks that both have."""
    one, other = matched(first, second)
    return share(one, difference_terms(one, propensity_terms(one), propensity_terms(other)))


def group_difference(first: Table, second: Table) -> Effect:
    """The propensity of the second table minus that of the first, as of different scenarios."""
    values = [ratio(table, propensity_terms(table)) for table in (first, second)]
    ends = [propensity_terms(table).ends or (propensity_terms(table),) * 2 for table in (first, second)]
    pairs = [(ends[0][1], ends[1][0]), (ends[0][0], ends[1][1])]

    def apart(tail: float, times: float) -> Found:
        found = []
        for terms in pairs:
            sides = [
                _compared(table, one, (tail, times))
                for table, one in zip((first, second), terms, strict=True)
            ]
            if sides[0] is None or sides[1] is None:
                return Found(None, "none: a domain has a single scenario or no scored task")
            # No errors: the two sides are independent.
            both = difference_interval((sides[0], sides[1]), (0.0, 0.0), 0.0).interval
            assert both is not None
            found.append(both)
        return Found(Interval(found[0].low, found[1].high), "Newcombe, independent")

    low, high = (_minus(ratio(first, one), ratio(second, other)) for one, other in pairs)
    bounds = None if low is None or high is None else Interval(low, high)
    return Effect(_minus(*values), bounds, len(first) + len(second), apart)


def _compared(table: Table, terms: RatioTerms, at: tuple[float, float]) -> ComparedValue | None:
    value, found = ratio(table, terms), interval(table, terms, at[0], times=at[1]).interval
    return None if value is None or found is None else ComparedValue(value, found)


def _minus(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else second - first


def smallest(parts: Sequence[Effect]) -> Effect:
    """The smallest of several effects on the same tasks.

    It lies above its lower end with the probability of one of them, and below the smallest of the upper ends
    with that of any (Bonferroni).
    """
    return _chosen(parts, min, parts[0].size, lambda tail: (tail, tail / len(parts)))


def largest_difference(tables: Mapping[str, Table], difference: Callable[[Table, Table], Effect]) -> Effect:
    """The largest difference, by absolute value, between any two of several tables.

    Its upper end holds with the probability of one pair, its lower end with that of any (Bonferroni).
    """
    pairs = [_absolute(difference(*pair)) for pair in combinations(tables.values(), 2)]
    whole = sum(map(len, tables.values()))
    return _chosen(pairs, max, whole, lambda tail: (tail / len(pairs), tail))


def dimension_difference(first: Table, second: Table) -> Effect:
    """The difference between two dimensions of pressure.

    On the scenarios that were played under both if these are at least half of either's; otherwise as if no
    scenario were common, which widens the interval.
    """
    one, other = by_scenario(first), by_scenario(second)
    if 2 * len(matched(one, other)[0]) >= max(len(one), len(other)):
        return paired_difference(one, other)
    common = np.intersect1d(first.domain, second.domain)
    return group_difference(*(side.where(np.isin(side.domain, common)) for side in (first, second)))


def _absolute(effect: Effect) -> Effect:
    def interval_of(tail: float, times: float) -> Found:
        found = effect.interval(tail, times)
        return found._replace(interval=_distance(found.interval))

    value = None if effect.value is None else abs(effect.value)
    return effect._replace(value=value, bounds=_distance(effect.bounds), interval=interval_of)


def _distance(ends: Interval | None) -> Interval | None:
    """The range of the distance from 0 of what lies in a range."""
    if ends is None:
        return None
    return Interval(max(0.0, ends.low, -ends.high), max(abs(ends.low), abs(ends.high)))


def _chosen(
    parts: Sequence[Effect],
    choose: Callable[[list[float]], float],
    size: int,
    tails: Callable[[float], tuple[float, float]],
) -> Effect:
    """The smallest or the largest of several effects; ``tails`` are those of the lower and the upper ends."""

    def interval_of(tail: float, times: float) -> Found:
        below, above = ([part.interval(one, times) for part in parts] for one in tails(tail))
        low = [one.interval.low for one in below if one.interval is not None]
        high = [one.interval.high for one in above if one.interval is not None]
        if len(low) < len(parts) or len(high) < len(parts):
            return Found(None, next(one.method for one in (*below, *above) if one.interval is None))
        method = f"{below[0].method}, {'smallest' if choose is min else 'largest'} of {len(parts)}"
        return Found(Interval(choose(low), choose(high)), method)

    values = [part.value for part in parts if part.value is not None]
    bounds = [part.bounds for part in parts if part.bounds is not None]
    if len(values) < len(parts):
        return Effect(None, None, size, lambda *_: Found(None, "none: a part has no value"))
    whole = None
    if len(bounds) == len(parts):
        whole = Interval(choose([one.low for one in bounds]), choose([one.high for one in bounds]))
    return Effect(choose(values), whole, size, interval_of)


def labelled_shares(sample: Judged, scores: Sequence[Numbers]) -> list[Effect]:
    """Shares of tasks with certain labels, as of people's labels of a sample; see `ppi_mean`.

    Args:
        sample: the tasks.
        scores: for each share, 1 for each label that counts and 0 for the others.
    """
    resamples = Resamples(sample, np.random.default_rng(SEED))
    return [_labelled(resamples, one, int(sample.labelled.sum())) for one in scores]


def _labelled(resamples: Resamples, scores: Numbers, size: int) -> Effect:
    def interval_of(tail: float, times: float) -> Found:
        found = ppi_mean(resamples, scores, power=0.0, tail=tail).share
        if found.ci95_bounds is None or found.bounds is None:
            return Found(None, found.method)
        ends, bounds = found.ci95_bounds, found.bounds
        low = bounds.low - (bounds.low - ends.low) / sqrt(times)
        return Found(Interval(low, bounds.high + (ends.high - bounds.high) / sqrt(times)), found.method)

    found = ppi_mean(resamples, scores, power=0.0).share
    return Effect(found.value, found.bounds, size, interval_of)


def rank_correlation(models: Sequence[IndexedModel]) -> Effect:
    """The absolute rank correlation of an index with propensities over models; lost tasks are left out."""
    rho = spearman(*(np.array([getattr(one, name) for one in models]) for name in ("index", "propensity")))
    value = None if rho is None else abs(rho)

    def interval_of(tail: float, times: float) -> Found:
        if rho is None or len(models) < MIN_CORRELATED:
            why = "none: takes four models or more whose propensities and index values differ"
            return Found(None, why)
        return Found(_distance(fisher_interval(rho, len(models) * times, tail)), "Fisher")

    few = ""
    if len(models) < MIN_MODELS:
        few = f"a verdict needs at least {MIN_MODELS} models; here there are {len(models)}"
    bounds = None if value is None else Interval(value, value)
    return Effect(value, bounds, len(models), interval_of, few)
