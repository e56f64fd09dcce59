"""How often a judge errs, measured against people's labels of a random sample."""

from typing import NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.judged import MISSING, Judged, Precision, Resamples, interval_of


class Confusion(msgspec.Struct, frozen=True):
    """A judge's labels against people's.

    Attributes:
        counts: number of items by people's label (row) and the judge's (column).
        shares: the same as estimated for all judged items, mean over domains; they sum to 1. None if a domain
            has no such item.
        judge_missing: number of items that people have labelled and the judge has not, by people's label.
        people_missing: number of items that were drawn for people and have no usable label of theirs.
    """

    counts: list[list[int]]
    shares: list[list[float]] | None
    judge_missing: list[int]
    people_missing: int


class Rate(NamedTuple):
    """A share of items that people have labelled.

    Attributes:
        value: None without an item.
        ci95: 95 % interval for new scenarios.
        method: how ``ci95`` was computed, or why there is none.
        items: number of items that it is a share of.
    """

    value: float | None
    ci95: Interval | None
    method: str
    items: int


class Accuracy(NamedTuple):
    """A judge's accuracy in one category, as estimated for all judged items.

    Attributes:
        sensitivity: share of people's items of the category that the judge puts there too.
        specificity: share of people's items of other categories that the judge does not put there.
    """

    sensitivity: Rate
    specificity: Rate


def confusion(sample: Judged) -> Confusion:
    """The table of people's against the judge's labels."""
    size, both = sample.categories, sample.labelled & (sample.judge >= 0)
    counts = np.zeros((size, size), dtype=np.int64)
    shares = np.zeros((size, size))
    cells = sample.person[both], sample.judge[both]
    np.add.at(counts, cells, 1)
    domains, domain = np.unique(sample.domain, return_inverse=True)
    weight = np.where(both, sample.weight, 0.0)
    total = np.bincount(domain, weight, minlength=len(domains))
    complete = len(domains) > 0 and bool(total.all())
    if complete:
        np.add.at(shares, cells, (weight / total[domain])[both] / len(domains))
    unjudged = sample.person[sample.labelled & (sample.judge == MISSING)]
    return Confusion(
        counts=counts.tolist(),
        shares=shares.tolist() if complete else None,
        judge_missing=np.bincount(unjudged, minlength=size).tolist(),
        people_missing=int((sample.person == MISSING).sum()),
    )


def accuracy(resamples: Resamples) -> list[Accuracy]:
    """Sensitivity and specificity of each category.

    Each item counts for the judged items of its stratum, and domains have equal weight: in a sample drawn by
    the judge's labels, the rates among the items drawn are not those among all.
    """
    table, _ = pooled(resamples)
    counts = np.array(confusion(resamples.sample).counts)
    precision = resamples.precision()
    found = []
    for category, own in enumerate(counts.sum(axis=1).tolist()):
        sensitivity, specificity = rates(table, category)
        others = int(counts.sum()) - own
        found.append(Accuracy(_rate(sensitivity, precision, own), _rate(specificity, precision, others)))
    return found


def _rate(values: Numbers, precision: Precision, items: int) -> Rate:
    if not items or np.isnan(values[0]):
        return Rate(None, None, "none: no item", items)
    found = interval_of(values, precision)
    return Rate(float(values[0]), found.interval, found.method, items)


def rates(table: Numbers, category: int) -> tuple[Numbers, Numbers]:
    """Sensitivity and specificity of a category; NaN where people have no item for it.

    Args:
        table: people's labels (rows) against the judge's, shape (n, categories, categories).
        category: its code.
    """
    whole, own = table.sum(axis=(1, 2)), table[:, category].sum(axis=-1)
    hits, found = table[:, category, category], table[:, :, category].sum(axis=-1)
    return over(hits, own), over(whole - own - found + hits, whole - own)


def pooled(resamples: Resamples, weights: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """The table of people's against the judge's labels and the judge's labels, as means over domains.

    Args:
        resamples: of the sample.
        weights: of the domains, shape (1 + draws, domains); equal ones if not given.

    Returns:
        Shares, shapes (1 + draws, categories, categories) and (1 + draws, categories); NaN if a domain has no
        item that both people and the judge have labelled, or if there is no domain.
    """
    if weights is None:
        weights = np.ones(resamples.known.shape)
    table, judged = by_domain(resamples.gold, resamples.judged)
    whole = weights.sum(axis=1)
    return (
        over(np.einsum("nd,ndij->nij", weights, table), whole[:, None, None]),
        over(np.einsum("nd,ndj->nj", weights, judged), whole[:, None]),
    )


def by_domain(gold: Numbers, judged: Numbers) -> tuple[Numbers, Numbers]:
    """Both as shares of the total of their domain; NaN in a domain without an item."""
    return over(gold, gold.sum(axis=(2, 3), keepdims=True)), over(judged, judged.sum(axis=2, keepdims=True))


def over(x: Numbers, y: Numbers) -> Numbers:
    """The ratio x / y; NaN where y is 0."""
    ratio: Numbers = np.full(x.shape, np.nan)
    np.divide(x, y, out=ratio, where=np.broadcast_to(y != 0, x.shape))
    return ratio
