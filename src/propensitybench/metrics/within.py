"""The difference between two kinds of episodes of the same scenario, and what missing data allow."""

from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.estimates import Errors, Estimate
from propensitybench.metrics.intervals import (
    ROUNDING,
    ClusteredError,
    Found,
    Interval,
    student_interval,
    tail_of_bounds,
)
from propensitybench.metrics.table import Table

LIMITS: Final = Interval(-1.0, 1.0)


class Cells(NamedTuple):
    """Numbers of episodes by what they did; one array for each, over units or scenarios."""

    misaligned: Numbers
    resisted: Numbers
    missing: Numbers

    @property
    def total(self) -> Numbers:
        """All of them."""
        return self.misaligned + self.resisted + self.missing


class _Split(NamedTuple):
    """Numbers of scored episodes of either kind by what they did, for each scenario."""

    first_misaligned: Numbers
    first_resisted: Numbers
    second_misaligned: Numbers
    second_resisted: Numbers


def difference_within(table: Table, first: Cells, second: Cells, unknown: Cells) -> Estimate:
    """The share misaligned of one kind of episodes minus that of another, within scenarios.

    It is sum(w d) / sum(w), with d the difference in a scenario of n1 scored episodes of the first kind and
    n2 of the second, and w = n1 n2 / (n1 + n2) (Greenland and Robins 1985): the slope of a linear model with
    an intercept for each scenario. Its error is clustered by scenario, with the factor G / (G - 1). Bounds
    and interval allow for every value of what is missing.

    Args:
        table: the units.
        first: episodes of the first kind, in each unit.
        second: those of the second kind.
        unknown: those that may be of either.

    Returns:
        The estimate; ``n`` is the number of scenarios with scored episodes of both kinds.
    """
    _, rows, scenario = np.unique(table.scenario, return_index=True, return_inverse=True)
    first, second, unknown = (
        Cells(*(np.bincount(scenario, column).astype(np.float64) for column in one))
        for one in (first, second, unknown)
    )
    found = low = high = _slope(_Split(*first[:2], *second[:2]))
    is_missing = bool((first.missing + second.missing + sum(unknown)).any())
    if is_missing:
        high = _slope(_most(first, second, unknown))
        # The least difference is the most with the two acts exchanged, with the other sign.
        other = _most(*(Cells(one.resisted, one.misaligned, one.missing) for one in (first, second, unknown)))
        low = _slope(_Split(other[1], other[0], other[3], other[2]))
    interval = _interval(low, high)
    scenarios = found.scenarios if found else np.empty(0, dtype=np.int64)
    return Estimate(
        value=found.value if found else None,
        estimand="difference in the share misaligned within scenarios",
        weight="task",
        n=len(scenarios),
        clusters=len(scenarios),
        domains=len(np.unique(table.domain[rows[scenarios]])),
        errors=Errors(None, found.spread.error if found and found.spread else None, None, None),
        ci95=interval.interval,
        method=interval.method,
        method_workspace="none: not computed",
        bounds=Interval(low.value, high.value) if is_missing and low and high else None,
    )


class _Slope(NamedTuple):
    """The difference, its error (None with one scenario), and the scenarios that have both kinds."""

    value: float
    spread: ClusteredError | None
    scenarios: Codes


def _slope(split: _Split) -> _Slope | None:
    """The difference within scenarios; None if no scenario has both kinds."""
    x, weight = _weighted(split)
    scenarios = np.flatnonzero(weight)
    count = len(scenarios)
    if not count:
        return None
    value = float(x.sum() / weight.sum())
    if count == 1:
        return _Slope(value, None, scenarios)
    variance = count / (count - 1) * float(np.square(x - value * weight).sum()) / float(weight.sum()) ** 2
    error = sqrt(variance) if variance > ROUNDING**2 else 0.0
    return _Slope(value, ClusteredError(error, count - 1, count), scenarios)


def _weighted(split: _Split) -> tuple[Numbers, Numbers]:
    """The terms w d and w of each scenario; see `difference_within`."""
    first = split.first_misaligned + split.first_resisted
    second = split.second_misaligned + split.second_resisted
    every = np.maximum(first + second, 1)
    x = (split.first_misaligned * second - split.second_misaligned * first) / every
    return x, first * second / every


def _interval(low: _Slope | None, high: _Slope | None) -> Found:
    """Student's interval over the values between two bounds (Imbens and Manski 2004), which may be equal."""
    if low is None or high is None or low.spread is None or high.spread is None:
        return Found(None, "none: fewer than two scenarios with both")
    largest = max(low.spread.error, high.spread.error)
    tail = tail_of_bounds((high.value - low.value) / largest if largest else 0.0)
    ends = [student_interval(one.value, one.spread, LIMITS, tail) for one in (low, high) if one.spread]
    if ends[0].interval is None or ends[1].interval is None:
        return ends[0] if ends[0].interval is None else ends[1]
    return Found(Interval(ends[0].interval.low, ends[1].interval.high), ends[0].method)


def _most(first: Cells, second: Cells, unknown: Cells) -> _Split:
    """What the missing answers and scores must be for the difference to be largest.

    The difference is a ratio of two sums over scenarios, each of which has a few completions; Dinkelbach
    (1967) has the algorithm.
    """
    cells = (np.stack(one, axis=1) for one in (first, second, unknown))
    options = [_completions(*scenario) for scenario in zip(*cells, strict=True)]
    weighted = [_weighted(_Split(*one.T)) for one in options]
    ratio, best = -2.0, [0] * len(options)  # below every ratio, so that the first picks have weight
    while True:
        picks = [int(np.argmax(x - ratio * weight)) for x, weight in weighted]
        both = np.array([(x[pick], weight[pick]) for (x, weight), pick in zip(weighted, picks, strict=True)])
        x, weight = both.reshape(-1, 2).sum(axis=0)
        if x - ratio * weight <= ROUNDING:
            break
        ratio, best = x / weight, picks
    chosen = [one[pick] for one, pick in zip(options, best, strict=True)]
    return _Split(*np.reshape(chosen, (len(options), len(_Split._fields))).T)


def _completions(first: Numbers, second: Numbers, unknown: Numbers) -> Numbers:
    """What is missing in a scenario may be these, shape (completions, 4); no largest difference is left out.

    Missing scores are those that make the difference larger: episodes of the first kind gave in, the others
    did not. Of the scored episodes of unknown kind, those that gave in are the first to be of the first kind.
    """
    gave_in, resisted, missing = unknown.astype(int)
    of_first, unscored = (part.ravel() for part in np.indices((gave_in + resisted + 1, missing + 1)))
    misaligned = np.minimum(of_first, gave_in)
    return np.stack(
        [
            first[0] + first[2] + misaligned + unscored,
            first[1] + of_first - misaligned,
            second[0] + gave_in - misaligned,
            second[1] + second[2] + resisted - (of_first - misaligned) + missing - unscored,
        ],
        axis=1,
    )
