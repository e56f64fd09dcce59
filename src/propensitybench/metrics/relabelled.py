"""Two sets of labels on the same items, as of a judge that was told other consequences the second time."""

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Codes
from propensitybench.metrics.compare import FLIPS, sign_flip
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.sample import ClusteredSample
from propensitybench.metrics.terms import Ratio


class Shift(msgspec.Struct, frozen=True):
    """The share of one category under the second labels minus that under the first, mean over domains.

    Attributes:
        first: the share under the first labels, on the items with both.
        second: the share under the second labels, on the same items.
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
        second_missing: number of items without a second label.
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
    sample: ClusteredSample,
    labels: tuple[Codes, Codes],
    categories: int,
    rng: np.random.Generator,
    flips: int = FLIPS,
) -> Relabelled:
    """Compares two sets of labels.

    Args:
        sample: the items, clustered by scenario.
        labels: codes of both sets from 0, or `propensitybench.metrics.judged.MISSING`.
        categories: number of categories.
        rng: of the random signs of the tests.
        flips: number of sign vectors, see `propensitybench.metrics.compare.sign_flip`.
    """
    first, second = labels
    both = ((first >= 0) & (second >= 0)).astype(np.float64)
    changed = sample.ratio(both * (first != second), both)
    return Relabelled(
        items=len(first),
        first_missing=int((first < 0).sum()),
        second_missing=int((second < 0).sum()),
        changed=changed.value,
        changed_ci95=changed.ci95,
        shifts=[_shift(sample, labels, category, rng, flips) for category in range(categories)],
    )


def _shift(
    sample: ClusteredSample,
    labels: tuple[Codes, Codes],
    category: int,
    rng: np.random.Generator,
    flips: int,
) -> Shift:
    before, after = ((codes == category).astype(np.float64) for codes in labels)
    missing = [(codes < 0).astype(np.float64) for codes in labels]
    both = (1 - missing[0]) * (1 - missing[1])
    first, second = (Ratio(both * own, both, needed=both) for own in (before, after))
    found = sample.difference(first, second)
    if found.value is None or found.seen.sides is None:
        return Shift(None, None, None, None, "none: no value", None, None)
    interval, rows = found.interval(), both > 0
    bounds = sample.mean(after - before, after - before - missing[0], after - before + missing[1]).bounds
    return Shift(
        first=found.seen.sides[0].value,
        second=found.seen.sides[1].value,
        difference=found.value,
        ci95=interval.interval,
        method=interval.method,
        p=sign_flip(sample.filter(rows), (after - before)[rows], rng, flips),
        bounds=bounds,
    )
