"""Shares of items in scenarios, with the interval of the propensity; domains have equal weight."""

from typing import NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Names, Numbers
from propensitybench.metrics.intervals import (
    TAIL,
    ClusteredError,
    Found,
    Interval,
    share_interval,
    tail_of_bounds,
)
from propensitybench.metrics.spreads import DomainTerms, clustered, value_of


class Places(NamedTuple):
    """Where items belong: one name of a domain and of a scenario for each. A scenario has one domain."""

    domain: Names
    scenario: Names


class Mean(NamedTuple):
    """A mean over domains, None if a domain has no item, and its standard error, None with one scenario."""

    value: float | None
    spread: ClusteredError | None


class ShareEstimate(NamedTuple):
    """A share and its interval."""

    value: float | None
    spread: ClusteredError | None
    found: Found


def clustered_mean(places: Places, x: Numbers, y: Numbers) -> Mean:
    """The mean over domains of sum(x) / sum(y).

    Args:
        places: of the items.
        x: numerators.
        y: 1 for the items that count, 0 for the others.
    """
    domains = []
    for name in np.unique(places.domain):
        every = np.flatnonzero(places.domain == name)
        rows = every[y[every] > 0]
        if not len(rows):
            return Mean(None, None)
        total = float(y[rows].sum())
        domains.append(DomainTerms(every, rows, x[rows], y[rows], total, float(x[rows].sum()) / total))
    scenario = np.unique(places.scenario, return_inverse=True)[1]
    return Mean(value_of(domains, "domain"), clustered(domains, scenario, "domain"))


def clustered_share(places: Places, x: Numbers, y: Numbers, tail: float = TAIL) -> ShareEstimate:
    """The mean over domains of the share of items.

    Args:
        places: of the items.
        x: 1 for items that are counted.
        y: 1 for items that they are a share of.
        tail: probability beyond each end of the interval.
    """
    value, spread = clustered_mean(places, x, y)
    if value is None:
        return ShareEstimate(None, None, Found(None, "none: no value"))
    if spread is None:
        return ShareEstimate(value, None, Found(None, "none: a domain has a single cluster"))
    return ShareEstimate(value, spread, share_interval(value, spread, int(y.sum()), tail))


def clustered_bounds(places: Places, low: Numbers, high: Numbers) -> tuple[Interval | None, Interval | None]:
    """The lowest and the highest share of all items, and an interval for all between (Imbens-Manski 2004).

    Args:
        places: of the items.
        low: 1 for items that are known to be counted.
        high: 1 for those and the items of which it is not known.
    """
    ones = np.ones(len(low))
    ends = [clustered_share(places, x, ones) for x in (low, high)]
    if ends[0].value is None or ends[1].value is None:
        return None, None
    bounds = Interval(ends[0].value, ends[1].value)
    if ends[0].spread is None or ends[1].spread is None:
        return bounds, None
    error = max(ends[0].spread.error, ends[1].spread.error)
    tail = tail_of_bounds((bounds.high - bounds.low) / error if error > 0 else 0.0)
    wide = [clustered_share(places, x, ones, tail).found.interval for x in (low, high)]
    return bounds, None if wide[0] is None or wide[1] is None else Interval(wide[0].low, wide[1].high)
