"""Effects that signs are decided on: a value with its interval at any level, for any number of scenarios."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.capability_index import fisher_interval, spearman
from propensitybench.metrics.compare import matched, propensity_difference
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.families import by_scenario
from propensitybench.metrics.intervals import (
    ComparedValue,
    ConfidenceInterval,
    Interval,
    difference_interval,
)
from propensitybench.metrics.judged import Judged, Resamples
from propensitybench.metrics.ppi import ppi_mean
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.sample import Measurement
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import Terms
from propensitybench.signs.subject import IndexedModel

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
    """

    value: float | None
    bounds: Interval | None
    size: int
    interval: Callable[[float, float], ConfidenceInterval]


def measured(found: Measurement, size: int) -> Effect:
    """An estimate of the clustered sample, as of that many tasks."""
    bounds = found.bounds
    if found.ends is None and found.value is not None:
        bounds = Interval(found.value, found.value)
    return Effect(found.value, bounds, size, found.interval)


def share(table: Table, terms: Terms) -> Effect:
    """A share, or a difference of two shares on the same tasks."""
    return measured(table.measure(terms), len(table))


def paired_difference(first: Table, second: Table) -> Effect:
    """The propensity of the second table minus that of the first, on the tasks that both have."""
    one, other = matched(first, second)
    return measured(propensity_difference(one, other), len(one))


def group_difference(first: Table, second: Table) -> Effect:
    """The propensity of the second table minus that of the first, as of different scenarios."""
    tables = first, second
    terms = [propensity_terms(table) for table in tables]
    seen = [table.measure(own) for table, own in zip(tables, terms, strict=True)]
    (least, most), (low, high) = (
        [table.measure(Terms(end)) for end in own.ends or (own.seen, own.seen)]
        for table, own in zip(tables, terms, strict=True)
    )

    def interval_of(tail: float, times: float) -> ConfidenceInterval:
        below, above = (_independent(pair, tail, times) for pair in ((most, low), (least, high)))
        if below is None or above is None:
            return ConfidenceInterval(None, "none: a domain has a single scenario or no scored task")
        return ConfidenceInterval(Interval(below.low, above.high), "Newcombe, independent")

    ends = _minus(most, low), _minus(least, high)
    bounds = None if ends[0] is None or ends[1] is None else Interval(ends[0], ends[1])
    return Effect(_minus(*seen), bounds, len(first) + len(second), interval_of)


def _independent(pair: tuple[Measurement, Measurement], tail: float, times: float) -> Interval | None:
    """The interval of the second minus the first; errors of 0 make the two independent."""
    sides = []
    for one in pair:
        value, found = one.value, one.interval(tail, times).interval
        if value is None or found is None:
            return None
        sides.append(ComparedValue(value, found, 0.0))
    return difference_interval(sides[0], sides[1], 0.0).interval


def _minus(first: Measurement, second: Measurement) -> float | None:
    return None if first.value is None or second.value is None else second.value - first.value


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
    return group_difference(*(side.filter(np.isin(side.domain, common)) for side in (first, second)))


def _absolute(effect: Effect) -> Effect:
    def interval_of(tail: float, times: float) -> ConfidenceInterval:
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

    def interval_of(tail: float, times: float) -> ConfidenceInterval:
        below, above = ([part.interval(one, times) for part in parts] for one in tails(tail))
        low = [one.interval.low for one in below if one.interval is not None]
        high = [one.interval.high for one in above if one.interval is not None]
        if len(low) < len(parts) or len(high) < len(parts):
            return ConfidenceInterval(
                None, next(one.method for one in (*below, *above) if one.interval is None)
            )
        method = f"{below[0].method}, {'smallest' if choose is min else 'largest'} of {len(parts)}"
        return ConfidenceInterval(Interval(choose(low), choose(high)), method)

    values = [part.value for part in parts if part.value is not None]
    bounds = [part.bounds for part in parts if part.bounds is not None]
    if len(values) < len(parts):
        return Effect(None, None, size, lambda *_: ConfidenceInterval(None, "none: a part has no value"))
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
    def interval_of(tail: float, times: float) -> ConfidenceInterval:
        found = ppi_mean(resamples, scores, power=0.0, tail=tail).share
        if found.ci95_bounds is None or found.bounds is None:
            return ConfidenceInterval(None, found.method)
        ends, bounds = found.ci95_bounds, found.bounds
        low = bounds.low - (bounds.low - ends.low) / sqrt(times)
        return ConfidenceInterval(
            Interval(low, bounds.high + (ends.high - bounds.high) / sqrt(times)), found.method
        )

    found = ppi_mean(resamples, scores, power=0.0).share
    return Effect(found.value, found.bounds, size, interval_of)


def rank_correlation(models: Sequence[IndexedModel]) -> Effect:
    """The absolute rank correlation of an index with propensities over models; lost tasks are left out."""
    places = np.array([[one.capability, one.propensity] for one in models], dtype=np.float64)
    rho = spearman(places[:, 0], places[:, 1])
    value = None if rho is None else abs(rho)

    def interval_of(tail: float, times: float) -> ConfidenceInterval:
        if rho is None or len(models) < MIN_CORRELATED:
            why = "none: takes four models or more whose propensities and index values differ"
            return ConfidenceInterval(None, why)
        return ConfidenceInterval(_distance(fisher_interval(rho, len(models) * times, tail)), "Fisher")

    bounds = None if value is None else Interval(value, value)
    return Effect(value, bounds, len(models), interval_of)
