"""Two sets of labels on the same items, as of a judge that was told other consequences the second time."""

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Codes, Numbers
from propensitybench.metrics.clustered import Places, clustered_mean, clustered_share
from propensitybench.metrics.compare import FLIPS, flip_scenarios
from propensitybench.metrics.intervals import ComparedValue, Found, Interval, difference_interval


class Shift(msgspec.Struct, frozen=True):
    """The share of one category under the second labels minus that under the first, mean over domains.

    Attributes:
        first: the share under the first labels, on the items with both.
        second: likewise.
        difference: None if a domain has no item with both labels.
        ci95: 95 % interval for new scenarios.
        method: how ``ci95`` was computed, or why there is none.
        p: of the two-sided sign-flip test, in which the items of a scenario change sign together.
        bounds: lowest and highest difference that missing labels allow (Manski), on all items.
    """

    first: float | None
    second: float | None
    difference: float | None
    ci95: Interval | None
    method: str
    p: float | None
    bounds: Interval | None


class Relabelled(msgspec.Struct, frozen=True):
    """Two sets of labels on the same items.

    Attributes:
        items: number of items.
        first_missing: number of items without a first label.
        second_missing: likewise.
        changed: share of the items with both labels that have another one the second time, mean over domains:
            no share of a category differs by more.
        changed_ci95: 95 % interval for new scenarios.
        shifts: one for each category.
    """

    items: int
    first_missing: int
    second_missing: int
    changed: float | None
    changed_ci95: Interval | None
    shifts: list[Shift]


def relabelled(
    places: Places, labels: tuple[Codes, Codes], categories: int, rng: np.random.Generator, flips: int = FLIPS
) -> Relabelled:
    """Compares two sets of labels.

    Args:
        places: of the items.
        labels: codes of both sets from 0, or `propensitybench.metrics.judged.MISSING`.
        categories: number of categories.
        rng: of the random signs of the tests.
        flips: number of sign vectors, see `propensitybench.metrics.compare.sign_flip`.
    """
    first, second = labels
    both = ((first >= 0) & (second >= 0)).astype(np.float64)
    changed = clustered_share(places, both * (first != second), both)
    return Relabelled(
        items=len(first),
        first_missing=int((first < 0).sum()),
        second_missing=int((second < 0).sum()),
        changed=changed.value,
        changed_ci95=changed.found.interval,
        shifts=[_shift(places, labels, category, rng, flips) for category in range(categories)],
    )


def _shift(
    places: Places, labels: tuple[Codes, Codes], category: int, rng: np.random.Generator, flips: int
) -> Shift:
    before, after = ((codes == category).astype(np.float64) for codes in labels)
    missing = [(codes < 0).astype(np.float64) for codes in labels]
    both = (1 - missing[0]) * (1 - missing[1])
    first, second = (clustered_mean(places, both * own, both).value for own in (before, after))
    if first is None or second is None:
        return Shift(None, None, None, None, "none: no value", None, None)
    found = _interval(places, (both * before, both * after), both)
    rows, ones = both > 0, np.ones(len(both))
    pairs = Places(places.domain[rows], places.scenario[rows])
    p = flip_scenarios(pairs, (after - before)[rows], rng, flips)
    low, high = (
        clustered_mean(places, x, ones).value
        for x in (after - before - missing[0], after - before + missing[1])
    )
    bounds = None if low is None or high is None else Interval(low, high)
    return Shift(first, second, second - first, found.interval, found.method, p, bounds)


def _interval(places: Places, sides: tuple[Numbers, Numbers], both: Numbers) -> Found:
    """Newcombe's interval of the difference of two shares of the same items, the second minus the first."""
    shares = [clustered_share(places, x, both) for x in sides]
    spread = clustered_mean(places, sides[1] - sides[0], both).spread
    ends, errors = [], []
    for value, own, found in shares:
        if value is None or own is None or found.interval is None:
            return found
        ends.append(ComparedValue(value, found.interval))
        errors.append(own.error)
    return difference_interval((ends[0], ends[1]), (errors[0], errors[1]), spread.error if spread else 0.0)
