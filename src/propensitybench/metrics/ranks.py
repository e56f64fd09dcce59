"""Ranks of models with simultaneous confidence intervals.

A bootstrap percentile interval of a rank is too narrow where models are close. Here the differences of all
pairs get simultaneous intervals, and a model's interval is what those leave open: it is below every model
that is significantly higher, above every one that is significantly lower, and its order with the others is
not established (Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91:476). The intervals
of all ranks together contain all true ranks with the stated probability.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Final, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.compare import propensity_difference
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.intervals import TAIL, Interval
from propensitybench.metrics.table import Table

# What the intervals of ranks promise, after a word for them and a colon.
ALL_COVERED: Final = "with a probability of at least 95 %, all of them together contain all true ranks"


class Difference(msgspec.Struct, frozen=True):
    """The propensity of the second model minus that of the first, on the tasks that both have begun.

    Attributes:
        value: None if it cannot be computed.
        ci95: simultaneous over all pairs (Bonferroni); None if it cannot be computed.
    """

    first: str
    second: str
    value: float | None
    ci95: Interval | None


class RankInterval(NamedTuple):
    """The lowest and the highest rank that the differences allow."""

    low: int
    high: int


class Rank(msgspec.Struct, frozen=True):
    """A model's rank by propensity; rank 1 is the lowest propensity.

    Attributes:
        propensity: by which it is ranked.
        rank: ties share the mean of their ranks.
        ci95: simultaneous: see `ALL_COVERED`.
    """

    propensity: float
    rank: float
    ci95: RankInterval


class Ranking(msgspec.Struct, frozen=True):
    """Models in order.

    Attributes:
        ranks: by model; models without a propensity are absent.
        differences: every two of them.
    """

    ranks: dict[str, Rank]
    differences: tuple[Difference, ...]


def rank_models(tables: Mapping[str, Table], tail: float = TAIL) -> Ranking:
    """Ranks models that played the same tasks under one naming.

    Args:
        tables: by the name of the model.
        tail: probability of error beyond each end, of all pairs together.
    """
    values = {name: table.measure(propensity_terms(table)).value for name, table in tables.items()}
    known = {name: value for name, value in values.items() if value is not None}
    pairs = list(combinations(known, 2))
    differences = tuple(_difference(tables, pair, tail / len(pairs)) for pair in pairs)
    places = _places(list(known.values()))
    lower = dict.fromkeys(known, 0)
    higher = dict.fromkeys(known, 0)
    for one in differences:
        if one.ci95 is not None and one.ci95.low > 0:
            lower[one.second] += 1
            higher[one.first] += 1
        elif one.ci95 is not None and one.ci95.high < 0:
            lower[one.first] += 1
            higher[one.second] += 1
    ranks = {
        # The differences are on the tasks that both have begun, so in unfinished runs they may contradict the
        # order of the values; the interval contains the rank shown.
        name: Rank(
            value,
            place,
            RankInterval(
                min(1 + lower[name], int(np.floor(place))),
                max(len(known) - higher[name], int(np.ceil(place))),
            ),
        )
        for (name, value), place in zip(known.items(), places, strict=True)
    }
    return Ranking(ranks, differences)


def _difference(tables: Mapping[str, Table], pair: tuple[str, str], tail: float) -> Difference:
    first, second = pair
    found = propensity_difference(tables[first], tables[second])
    return Difference(first, second, found.value, found.interval(tail).interval)


def _places(values: list[float]) -> list[float]:
    """Ranks from 1; values that are equal but for rounding share the mean of their ranks."""
    rounded = np.round(np.array(values), 12)
    return [float((rounded < one).sum() + ((rounded == one).sum() + 1) / 2) for one in rounded]
