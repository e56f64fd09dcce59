"""The difference between two kinds of episodes of the same scenario, and what missing data allow."""

from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.estimates import Errors, Estimate
from propensitybench.metrics.intervals import ROUNDING, Interval
from propensitybench.metrics.sample import ClusteredSample
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import Ratio, Terms

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
    seen, ends = _weighted(_Split(*first[:2], *second[:2])), None
    if (first.missing + second.missing + sum(unknown)).any():
        high = _weighted(_most(first, second, unknown))
        # The least difference is the most with the two acts exchanged, with the other sign.
        other = _most(*(Cells(one.resisted, one.misaligned, one.missing) for one in (first, second, unknown)))
        ends = _weighted(_Split(other[1], other[0], other[3], other[2])), high
    # Without strata: every scenario is compared with itself.
    sample = ClusteredSample(np.zeros(len(rows), dtype=np.int64), np.arange(len(rows)))
    found = sample.measure(Terms(seen, ends, "coefficient", LIMITS))
    interval = found.interval()
    return Estimate(
        value=found.value,
        estimand="difference in the share misaligned within scenarios",
        weight="task",
        n=found.seen.n,
        clusters=found.seen.clusters,
        domains=len(np.unique(table.domain[rows[seen.y > 0]])),
        errors=Errors(None, found.spread.error if found.spread else None, None, None),
        ci95=interval.interval,
        method=interval.method,
        method_workspace="none: not computed",
        bounds=found.bounds,
    )


def _weighted(split: _Split) -> Ratio:
    """The terms w d and w of each scenario; see `difference_within`."""
    first = split.first_misaligned + split.first_resisted
    second = split.second_misaligned + split.second_resisted
    every = np.maximum(first + second, 1)
    x = (split.first_misaligned * second - split.second_misaligned * first) / every
    return Ratio(x, first * second / every)


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
        picks = [int(np.argmax(x - ratio * weight)) for x, weight, _ in weighted]
        both = np.array(
            [(x[pick], weight[pick]) for (x, weight, _), pick in zip(weighted, picks, strict=True)]
        )
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
