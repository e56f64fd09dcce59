"""Items labelled by a judge, some of them by people too, and resamples of both.

The judged items are a sample of scenarios. Those that people label are drawn at random from the judged items
within strata, as a rule judge label x domain. A resample gives every scenario a random weight (the Bayesian
bootstrap; Rubin 1981), so that all its items, judged or labelled by people, rise and fall together. Estimates
are means over domains of the value within each domain.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Codes, Flags, Names, Numbers
from propensitybench.metrics.intervals import (
    MIN_FREEDOM,
    ROUNDING,
    TAIL,
    BoundedEnd,
    ConfidenceInterval,
    Interval,
    interval_over_bounds,
)

# Asked, but without a usable label: a refusal, a failed call, a quote that does not stand in the text.
MISSING: Final = -1
# Not in the sample that people label.
NOT_DRAWN: Final = -2
DRAWS: Final = 2000
# Fewer labels of people say nothing of a judge's errors, nor of the items.
MIN_LABELLED: Final = 20
# Jeffreys' prior for a share is half an observation of each kind.
PRIOR: Final = 0.5


@dataclass(frozen=True)
class Judged:
    """Items with a judge's labels, one entry of each column for every item.

    Attributes:
        domain: names.
        scenario: names of the clusters; a scenario belongs to one domain.
        judge: codes of the judge's labels, 0 to ``categories`` - 1, or `MISSING`.
        person: codes of people's labels, or `MISSING`, or `NOT_DRAWN`.
        stratum: codes from 0 of the strata within which the items for people were drawn with equal
            probabilities; items judged after the draw have strata of their own. An item that people have
            labelled stands for (items) / (labelled items) of its stratum.
        categories: number of categories, at least 2.
    """

    domain: Names
    scenario: Names
    judge: Codes
    person: Codes
    stratum: Codes
    categories: int

    def where(self, rows: Flags | Codes) -> "Judged":
        """The items for which the mask is true, or those at these places."""
        return Judged(
            self.domain[rows],
            self.scenario[rows],
            self.judge[rows],
            self.person[rows],
            self.stratum[rows],
            self.categories,
        )

    @property
    def labelled(self) -> Flags:
        """Which items people have labelled."""
        return np.asarray(self.person >= 0)

    @property
    def weight(self) -> Numbers:
        """One over the sampling probability of each item that people have labelled, 0 elsewhere."""
        share = self._share_of_stratum(np.ones(len(self.judge), bool))
        return np.where(self.labelled, 1 / np.where(share > 0, share, 1), 0.0)

    @property
    def covered(self) -> Flags:
        """Which items have a judge's label and share their stratum with an item that has both labels."""
        strata = np.unique(self.stratum[self.labelled & (self.judge >= 0)])
        return np.asarray((self.judge >= 0) & np.isin(self.stratum, strata))

    @property
    def known(self) -> Numbers:
        """The share of items such as this one that labels represent: 1 unless labels are missing.

        Of a stratum in which people gave a label to 9 of 10 items drawn, labels represent .9.
        """
        return np.where(self.covered, self._share_of_stratum(self.person != NOT_DRAWN), 0.0)

    def _share_of_stratum(self, rows: Flags) -> Numbers:
        """The share of these rows of its stratum that people have labelled, for each item."""
        size = int(self.stratum.max(initial=0)) + 1
        labelled, whole = (np.bincount(self.stratum[of], minlength=size) for of in (self.labelled, rows))
        share = np.divide(labelled, whole, out=np.zeros(size), where=whole > 0)
        return np.asarray(share[self.stratum])


class Precision(NamedTuple):
    """What the interval of a resampled estimate needs to know of the sample.

    Attributes:
        size: number of pairs of a scenario and a stratum with a label of people.
        strata: number of strata with such a label.
        freedom: degrees of freedom; with fewer than `MIN_FREEDOM` there is no interval.
        clusters: the least number of scenarios in a domain.
    """

    size: int
    strata: int
    freedom: int
    clusters: int


def scenario_weights(scenarios: int, draws: int, rng: np.random.Generator) -> Numbers:
    """Random weights of scenarios with mean 1, shape (1 + draws, scenarios); the first row is all ones."""
    weights = np.ones((1 + draws, scenarios))
    rng.standard_exponential(out=weights[1:])
    return weights


def interval_of(values: Numbers, precision: Precision, tail: float = TAIL) -> ConfidenceInterval:
    """The expanded percentile interval of an estimate and its resamples (Hesterberg 2015).

    Percentiles of resamples are too narrow where observations are few: of n in H strata, the weights give
    (n - H) / (n + H) of the variance, and a normal quantile where Student's is due. The tail is reduced to
    make up for both. The interval holds the estimate, as Jeffreys' does not if no item is of a category.

    Args:
        values: the estimate, and that of each resample.
        precision: of the sample.
        tail: probability beyond each end.
    """
    if precision.clusters < 2:
        return ConfidenceInterval(None, "none: a domain has a single cluster")
    if precision.freedom < MIN_FREEDOM:
        return ConfidenceInterval(None, f"none: fewer than {MIN_FREEDOM} degrees of freedom")
    if np.isnan(values).any():
        return ConfidenceInterval(None, "none: no value in some resamples")
    if np.ptp(values[1:]) < ROUNDING:
        return ConfidenceInterval(None, "none: no spread among clusters")
    tail = _expanded(precision, tail)
    low, high = np.quantile(values[1:], [tail, 1 - tail])
    found = Interval(float(min(low, values[0])), float(max(high, values[0])))
    return ConfidenceInterval(found, "Bayesian bootstrap")


def _expanded(precision: Precision, tail: float) -> float:
    from scipy.special import ndtr, stdtrit  # scipy is slow to import

    n, strata = precision.size, precision.strata
    return float(ndtr(stdtrit(precision.freedom, tail) * sqrt((n + strata) / (n - strata))))


def bounds_interval(low: Numbers, high: Numbers, precision: Precision, tail: float = TAIL) -> Interval | None:
    """Interval for all values between bounds (Imbens and Manski 2004).

    Args:
        low: the lower bound, and that of each resample.
        high: the upper bound, likewise.
        precision: of the sample.
        tail: probability beyond each end, for a point.
    """

    def bound(values: Numbers) -> BoundedEnd:
        return BoundedEnd(
            float(values[0]), float(values[1:].std()), lambda tail: interval_of(values, precision, tail)
        )

    return interval_over_bounds(bound(low), bound(high), tail).interval


class Resamples:
    """Totals of a sample and of its resamples; the first entry of each array is the sample itself.

    Every resample has prior observations in each cell of the table of people's against the judge's labels,
    so that a cell that happens to be empty is not taken to be impossible. A category gets half an
    observation on the judge's label of the same name and half spread over the other labels: with two
    categories, Jeffreys' prior of the share of each category among the items with one label. In means over
    domains it is divided among the domains.

    Args:
        sample: the items.
        rng: source of the weights.
        draws: number of resamples.

    Attributes:
        sample: the items.
        domains: their domains.
        judged: items by judge's label, shape (1 + draws, domains, categories).
        gold: items of people's labels i and judge's labels j as estimated from those that both have labelled,
            shape (1 + draws, domains, categories i, categories j).
        gold_alone: the same with the whole prior in each domain, for estimates of a single domain.
        known: share of the items in each domain that the labels represent, shape (1 + draws, domains).
    """

    def __init__(self, sample: Judged, rng: np.random.Generator, draws: int = DRAWS) -> None:
        self.sample = sample
        names, self._domain = np.unique(sample.domain, return_inverse=True)
        self.domains = tuple(str(name) for name in names)
        scenarios, self._scenario = np.unique(sample.scenario, return_inverse=True)
        self._weights = scenario_weights(len(scenarios), draws, rng)
        self._both = np.flatnonzero(sample.labelled & (sample.judge >= 0))
        every, count = np.arange(len(sample.judge)), len(names)
        known = self._totals(every, self._domain, count, sample.known)
        self.known = known / self._totals(every, self._domain, count)
        covered = np.flatnonzero(sample.covered)
        label = self._domain[covered] * sample.categories + sample.judge[covered]
        judged = self._totals(covered, label, count * sample.categories)
        self.judged = judged.reshape(1 + draws, count, sample.categories)
        self.gold, self.gold_alone = self._with_prior(self._gold(), rng)

    def _totals(self, rows: Codes, code: Codes, size: int, values: Numbers | None = None) -> Numbers:
        """Weighted numbers of these items by code, or sums of their values, shape (1 + draws, size)."""
        scenarios = self._weights.shape[1]
        place = self._scenario[rows] * size + code
        sums = np.bincount(place, weights=values, minlength=scenarios * size)
        return np.asarray(self._weights @ sums.reshape(scenarios, size).astype(np.float64))

    def _gold(self) -> Numbers:
        """`gold` without a prior: in each resample the labelled items stand for their stratum there."""
        sample, both = self.sample, self._both
        strata = int(sample.stratum.max(initial=0)) + 1
        labelled = np.flatnonzero(sample.labelled)
        items = self._totals(np.arange(len(sample.judge)), sample.stratum, strata)
        drawn = self._totals(labelled, sample.stratum[labelled], strata)
        weight = np.divide(items, drawn, out=np.zeros(items.shape), where=drawn > 0)
        columns = np.stack([self._domain, sample.person, sample.judge, sample.stratum])[:, both]
        cells, code = np.unique(columns, axis=1, return_inverse=True)
        counts = self._totals(both, code.ravel(), cells.shape[1])
        gold = np.zeros((*self.judged.shape, sample.categories))
        for cell, (domain, person, judge, stratum) in enumerate(cells.T):
            gold[:, domain, person, judge] += counts[:, cell] * weight[:, stratum]
        return gold

    def _with_prior(self, gold: Numbers, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """Adds the prior of the mean over domains, and that of each domain alone."""
        sample, both = self.sample, self._both
        labelled = np.zeros(self.judged.shape[1:])
        np.add.at(labelled, (self._domain[both], sample.judge[both]), 1.0)
        columns = gold.sum(axis=2, keepdims=True)
        weight = np.divide(columns[0, :, 0], labelled, out=np.zeros(labelled.shape), where=labelled > 0)
        mass = np.full((sample.categories, sample.categories), PRIOR / (sample.categories - 1))
        np.fill_diagonal(mass, PRIOR)
        domains = np.maximum(1, (labelled > 0).sum(axis=0))
        shape = (len(gold) - 1, *gold.shape[1:])
        shared = rng.standard_gamma(np.broadcast_to(mass / domains, shape))
        rest = rng.standard_gamma(np.broadcast_to(mass * (1 - 1 / domains), shape))
        found = []
        for prior in (shared, shared + rest):
            full = gold.copy()
            full[1:] += prior * weight[:, None, :]
            # The prior moves items between people's labels; how many have each judge's label is known.
            total = full.sum(axis=2, keepdims=True)
            full *= np.divide(columns, total, out=np.zeros(total.shape), where=total > 0)
            found.append(full)
        return found[0], found[1]

    def precision(self, domain: int | None = None) -> Precision:
        """Of the mean over domains, or of one domain."""
        inside = np.full(len(self._domain), True) if domain is None else self._domain == domain
        both = self._both[inside[self._both]]
        scenario, stratum = self._scenario[both], self.sample.stratum[both]
        pairs = len(np.unique(np.stack([scenario, stratum]), axis=1).T)
        strata = len(np.unique(stratum))
        # A scenario has one domain.
        _, first = np.unique(self._scenario[inside], return_index=True)
        clusters = np.unique(self._domain[inside][first], return_counts=True)[1]
        freedom = min(pairs - strata, len(np.unique(scenario)) - len(clusters))
        return Precision(pairs, strata, freedom, int(clusters.min(initial=freedom)))
