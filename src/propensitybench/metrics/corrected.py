"""Shares of a judge's labels, and the same corrected for the judge's errors.

A share of labels is that of the judge, not of the category: a judge of sensitivity .8 and specificity .9
finds 17 % where there are 10 %.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.intervals import ROUNDING, TAIL, Interval
from propensitybench.metrics.judge_error import by_domain, over, pooled, rates
from propensitybench.metrics.judged import (
    MISSING,
    Judged,
    Precision,
    Resamples,
    bounds_interval,
    interval_of,
)
from propensitybench.metrics.sample import ClusteredSample

# Below, two categories are confused alike, and the correction divides by noise.
MIN_SINGULAR: Final = 1e-9

# Given the table of people's (rows) against the judge's labels and the judge's labels, both as shares, of
# shapes (n, k, k) and (n, k): the estimates, shape (n, m); NaN where they cannot be computed.
Estimator = Callable[[Numbers, Numbers], Numbers]


class LabelShare(msgspec.Struct, frozen=True):
    """The share of items that belong to a category, or the mean of a score, among those with labels.

    Attributes:
        value: None if it cannot be computed, never 0 instead.
        ci95: 95 % interval for new scenarios.
        method: how ``ci95`` was computed, or why there is none.
        bounds: lowest and highest value that the missing labels allow (Manski); both are the value if none is
            missing.
        ci95_bounds: interval that covers every value within the bounds (Imbens and Manski 2004).
        items: number of judged items.
        missing: number of those without a usable label of the judge.
        labelled: number of those that both people and the judge have labelled; None if people's labels are
            not used.
    """

    value: float | None
    ci95: Interval | None
    method: str
    bounds: Interval | None
    ci95_bounds: Interval | None
    items: int
    missing: int
    labelled: int | None = None


class Uncorrected(msgspec.Struct, frozen=True):
    """A share of the judge's labels: the mean over domains, and that of each domain."""

    share: LabelShare
    by_domain: dict[str, LabelShare]


class Bias(NamedTuple):
    """The uncorrected minus the corrected value, on the same items.

    Attributes:
        difference: None if there is no corrected value.
        ci95: 95 % interval for new scenarios. If it does not hold 0, the judge is biased.
        method: how ``ci95`` was computed, or why there is none.
    """

    difference: float | None
    ci95: Interval | None
    method: str


class Corrected(msgspec.Struct, frozen=True):
    """A share, or the mean of a score, corrected for the judge's errors.

    Attributes:
        share: the mean over domains.
        by_domain: that of each domain.
        bias: of the uncorrected mean over domains.
    """

    share: LabelShare
    by_domain: dict[str, LabelShare]
    bias: Bias


def misses(uncorrected: LabelShare, corrected: LabelShare) -> bool | None:
    """Whether the interval of the uncorrected share misses the corrected one: it is reported as biased.

    None without one of the two. The corrected share has an error of its own, so this happens by chance more
    often than in 5 % of unbiased shares; the interval of `Bias` allows for it.
    """
    if uncorrected.ci95 is None or corrected.value is None:
        return None
    return not uncorrected.ci95.low <= corrected.value <= uncorrected.ci95.high


def uncorrected_shares(sample: Judged) -> list[Uncorrected]:
    """The share of each of the judge's labels, with the interval of the propensity."""
    every = np.ones(len(sample.domain), bool)
    return [
        Uncorrected(
            _uncorrected(sample, category, every),
            {
                str(name): _uncorrected(sample, category, sample.domain == name)
                for name in np.unique(sample.domain)
            },
        )
        for category in range(sample.categories)
    ]


def _uncorrected(sample: Judged, category: int, rows: Flags) -> LabelShare:
    items, judge = ClusteredSample(sample.domain[rows], sample.scenario[rows]), sample.judge[rows]
    own, missing = (judge == category).astype(float), (judge == MISSING).astype(float)
    found = items.ratio(own, 1 - missing)
    interval, method = found.interval()
    count = int(missing.sum())
    bounds, wide = Interval(found.value, found.value) if found.value is not None else None, interval
    if count:
        every = items.mean(own, own, own + missing)
        bounds, wide = every.bounds, every.ci95
    return LabelShare(found.value, interval, method, bounds, wide, len(judge), count)


def rogan_gladen_shares(resamples: Resamples) -> list[Corrected]:
    """The share of each category against all others, corrected by the judge's sensitivity and specificity.

    (share + specificity - 1) / (specificity + sensitivity - 1), clipped to 0..1 (Rogan and Gladen 1978).
    Both rates are means over all domains: the share of a single domain assumes that the judge errs alike in
    all of them. None where the rates sum to 1 or less.
    """

    def estimator(table: Numbers, judged: Numbers) -> Numbers:
        found = np.empty_like(judged)
        for category in range(judged.shape[1]):
            sensitivity, specificity = rates(table, category)
            skill = sensitivity + specificity - 1
            found[:, category] = over(judged[:, category] + specificity - 1, skill)
            # A resample with less skill than chance gives 0 or 1, and so widens the interval.
            if not skill[0] > 0:
                found[0, category] = np.nan
        return found

    return corrected(resamples, estimator, alike=True)


def matrix_shares(resamples: Resamples) -> list[Corrected]:
    """The shares of all categories, corrected by the whole table of the judge's errors.

    With C[i, j] the probability of the judge's label j given people's label i, and q the shares of the
    judge's labels, q = C^T pi is solved for pi, which is projected onto the simplex. C is the mean over all
    domains, as in `rogan_gladen_shares`. A category that people never used has the share 0. None if C has
    not full rank.
    """
    return corrected(resamples, _by_matrix, alike=True)


def _by_matrix(table: Numbers, judged: Numbers) -> Numbers:
    if np.isnan(table).any():
        return np.full(judged.shape, np.nan)
    people = table.sum(axis=2)
    errors = np.divide(table, people[..., None], out=np.zeros(table.shape), where=people[..., None] > 0)
    # The inverse; without a row for each category, the solution by least squares.
    shares = (np.linalg.pinv(errors.swapaxes(1, 2)) @ judged[..., None])[..., 0]
    shares = on_simplex(np.where(people > 0, shares, -np.inf))
    full = np.linalg.matrix_rank(errors, tol=MIN_SINGULAR) == (people > 0).sum(axis=1)
    return np.where(full[:, None], shares, np.nan)


def on_simplex(points: Numbers) -> Numbers:
    """The nearest points whose coordinates are at least 0 and sum to 1 (Duchi et al. 2008).

    Args:
        points: shape (n, k); a coordinate of -inf becomes 0.
    """
    falling = -np.sort(-points, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    kept = (falling > excess).sum(axis=1)
    return np.maximum(0.0, points - np.take_along_axis(excess, kept[:, None] - 1, axis=1))


class _Values(NamedTuple):
    """Estimates in all resamples, and their bounds, each of shape (1 + draws, estimates)."""

    values: Numbers
    low: Numbers
    high: Numbers


def corrected(
    resamples: Resamples,
    estimator: Estimator,
    *,
    alike: bool,
    scores: Numbers | None = None,
    tail: float = TAIL,
) -> list[Corrected]:
    """Estimates with intervals, bounds and the bias of the uncorrected values.

    Args:
        resamples: of the sample.
        estimator: gives the estimates.
        alike: whether a single domain has the table of all domains, or its own.
        scores: of the categories, shape (categories, estimates), if the estimates are their means; if not
            given, the estimates are the shares of the categories.
        tail: probability beyond each end of the intervals.
    """
    scores = np.eye(resamples.sample.categories) if scores is None else scores
    least, most = scores.min(axis=0), scores.max(axis=0)

    def clipped(table: Numbers, judged: Numbers) -> Numbers:
        return np.clip(estimator(table, judged), least, most)

    def bounded(values: Numbers, represented: Numbers, known: Numbers) -> _Values:
        low, high = (known[:, None] * represented + (1 - known[:, None]) * end for end in (least, most))
        return _Values(values, low, high)

    table, judged = pooled(resamples)
    values = clipped(table, judged)
    known = resamples.known
    # The items that the labels represent are not spread over domains as all items are.
    represented = clipped(*pooled(resamples, known))
    precision = resamples.precision()
    whole = _shares(
        bounded(values, represented, known.sum(axis=1) / max(1, len(resamples.domains))),
        precision,
        resamples.sample,
        tail,
    )
    tables, parts = by_domain(resamples.gold_alone, resamples.judged)
    domains = {}
    for number, name in enumerate(resamples.domains):
        own = clipped(table if alike else tables[:, number], parts[:, number])
        narrow = precision if alike else resamples.precision(number)
        sample = resamples.sample.where(resamples.sample.domain == name)
        domains[name] = _shares(bounded(own, own, known[:, number]), narrow, sample, tail)
    biases = [_bias(column, precision, tail) for column in (judged @ scores - values).T]
    return [
        Corrected(share, {name: shares[number] for name, shares in domains.items()}, bias)
        for number, (share, bias) in enumerate(zip(whole, biases, strict=True))
    ]


def _shares(found: _Values, precision: Precision, sample: Judged, tail: float) -> list[LabelShare]:
    """One for each estimate."""
    both = int((sample.labelled & (sample.judge >= 0)).sum())
    counts = len(sample.judge), int((sample.judge == MISSING).sum()), both
    shares = []
    for value, low, high in zip(*(array.T for array in found), strict=True):
        if np.isnan(value[0]):
            shares.append(LabelShare(None, None, "none: no value", None, None, *counts))
            continue
        interval, method = interval_of(value, precision, tail)
        bounds = Interval(float(low[0]), float(high[0]))
        missing = float(np.max(high - low)) > ROUNDING
        wide = bounds_interval(low, high, precision, tail) if missing else interval
        shares.append(LabelShare(float(value[0]), interval, method, bounds, wide, *counts))
    return shares


def _bias(differences: Numbers, precision: Precision, tail: float) -> Bias:
    if np.isnan(differences[0]):
        return Bias(None, None, "none: no value")
    interval, method = interval_of(differences, precision, tail)
    return Bias(float(differences[0]), interval, method)
