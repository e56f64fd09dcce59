"""What a sign is tested on: an effect with its interval at any level, and the same with more tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from propensitybench.metrics.arrays import Names, Numbers
from propensitybench.metrics.capability_index import fisher_interval, spearman
from propensitybench.metrics.compare import matched
from propensitybench.metrics.estimates import propensity_terms
from propensitybench.metrics.families import by_scenario
from propensitybench.metrics.intervals import ComparedValue, Interval, difference_interval
from propensitybench.metrics.judged import Judged, Resamples
from propensitybench.metrics.ppi import ppi_mean
from propensitybench.metrics.resample import SEED
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import PairedDifference, Quantity, Ratio, Terms, difference_of


class MeasuredEffect(NamedTuple):
    """An effect.

    Attributes:
        value: None if it cannot be computed.
        interval: covers every value that lost episodes allow; None if there is none.
        bounds: lowest and highest value that lost episodes allow; both are the value without any.
        method: how the interval was made, or why there is none.
    """

    value: float | None
    interval: Interval | None
    bounds: Interval | None
    method: str


class Evidence(Protocol):
    """What one sign is tested on."""

    @property
    def size(self) -> int:
        """Number of tasks, or of models."""
        ...

    def measure(self, tail: float) -> MeasuredEffect:
        """The effect, with this probability beyond each end of its interval."""
        ...

    def repeated(self, times: int) -> "Evidence":
        """What it would be with so many times the scenarios, all of them like these."""
        ...


@dataclass(frozen=True)
class SignShare:
    """A share, or a difference of two shares on the same tasks."""

    table: Table
    terms: Terms

    @property
    def size(self) -> int:
        """Number of tasks."""
        return len(self.table)

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        measured = self.table.measure(self.terms)
        found, value = measured.interval(tail), measured.value
        bounds = measured.bounds
        if self.terms.ends is None and value is not None:
            bounds = Interval(value, value)
        return MeasuredEffect(value, found.interval, bounds, found.method)

    def repeated(self, times: int) -> "SignShare":
        """See `Evidence`."""
        return SignShare(repeated_table(self.table, times), _repeated_terms(self.terms, times))


@dataclass(frozen=True)
class Apart:
    """The difference in propensity between tasks of different scenarios: the second minus the first."""

    first: Table
    second: Table

    @property
    def size(self) -> int:
        """Number of tasks."""
        return len(self.first) + len(self.second)

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        (less, more), (low, high) = (_completions(table) for table in (self.first, self.second))
        values = (one.measure(propensity_terms(one)).value for one in (self.first, self.second))
        value = _difference(*values)
        found = []
        for one, other in ((more, low), (less, high)):
            sides = [self._side(self.first, one, tail), self._side(self.second, other, tail)]
            if sides[0] is None or sides[1] is None:
                return MeasuredEffect(
                    value, None, None, "none: a domain has a single scenario or no scored task"
                )
            # No errors: the two sides are independent.
            both = difference_interval(sides[0], sides[1], 0.0).interval
            assert both is not None
            found.append((both, sides[1].value - sides[0].value))
        (lower, least), (upper, most) = found
        return MeasuredEffect(
            value, Interval(lower.low, upper.high), Interval(least, most), "Newcombe, independent"
        )

    @staticmethod
    def _side(table: Table, quantity: Quantity, tail: float) -> ComparedValue | None:
        measured = table.measure(Terms(quantity))
        value, found = measured.value, measured.interval(tail).interval
        return None if value is None or found is None else ComparedValue(value, found, 0.0)

    def repeated(self, times: int) -> "Apart":
        """See `Evidence`."""
        return Apart(repeated_table(self.first, times), repeated_table(self.second, times))


@dataclass(frozen=True)
class Least:
    """The smallest of several effects.

    An effect lies above its lower end with the probability of one, and below the smallest of the upper ends
    with that of any of them (Bonferroni).
    """

    parts: Sequence[Evidence]

    @property
    def size(self) -> int:
        """Number of tasks, which all effects share."""
        return self.parts[0].size

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        return _combined(self.parts, (tail, tail / len(self.parts)), smallest=True)

    def repeated(self, times: int) -> "Least":
        """See `Evidence`."""
        return Least([part.repeated(times) for part in self.parts])


@dataclass(frozen=True)
class Largest:
    """The largest of several effects by absolute value.

    Its upper end holds with the probability of one of them, its lower end with that of any (Bonferroni).

    Attributes:
        parts: the effects.
        size: number of tasks.
    """

    parts: Sequence[Evidence]
    size: int

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        return _combined(self.parts, (tail / len(self.parts), tail), smallest=False)

    def repeated(self, times: int) -> "Largest":
        """See `Evidence`."""
        return Largest([part.repeated(times) for part in self.parts], self.size * times)


@dataclass(frozen=True)
class LabelledShare:
    """The share of tasks with a label, as of people's labels of a sample; see `ppi_mean`.

    Attributes:
        sample: the tasks.
        scores: 1 for each label that counts, 0 for the others.
    """

    sample: Judged
    scores: Numbers

    @classmethod
    def of(cls, sample: Judged, label: int) -> "LabelledShare":
        """The share with this label."""
        return cls(sample, np.eye(sample.categories)[label])

    @classmethod
    def but(cls, sample: Judged, label: int) -> "LabelledShare":
        """The share with any other label."""
        return cls(sample, 1 - np.eye(sample.categories)[label])

    @property
    def size(self) -> int:
        """Number of tasks that people have labelled."""
        return int(self.sample.labelled.sum())

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        resamples = Resamples(self.sample, np.random.default_rng(SEED))
        found = ppi_mean(resamples, self.scores, power=0.0, tail=tail).share
        return MeasuredEffect(found.value, found.ci95_bounds, found.bounds, found.method)

    def repeated(self, times: int) -> "LabelledShare":
        """See `Evidence`."""
        rows = np.tile(np.arange(len(self.sample.judge)), times)
        copies = self.sample.where(rows)
        return LabelledShare(replace(copies, scenario=_named_apart(copies.scenario, times)), self.scores)


@dataclass(frozen=True)
class Index:
    """The absolute rank correlation of an index with propensities over models.

    Attributes:
        index: a value for each model.
        propensity: likewise.
        low, high: the least and the highest propensity that tasks without a score allow.
    """

    index: Numbers
    propensity: Numbers
    low: Numbers
    high: Numbers

    @property
    def size(self) -> int:
        """Number of models."""
        return len(self.index)

    def measure(self, tail: float) -> MeasuredEffect:
        """See `Evidence`."""
        rho = spearman(self.index, self.propensity)
        if rho is None or self.size < 4:
            why = "none: takes four models or more whose propensities and index values differ"
            return MeasuredEffect(None if rho is None else abs(rho), None, None, why)
        ends = self._bounds(rho)
        low = fisher_interval(ends.low, self.size, tail).low
        high = fisher_interval(ends.high, self.size, tail).high
        return MeasuredEffect(abs(rho), _absolute(Interval(low, high)), _absolute(ends), "Fisher")

    def _bounds(self, rho: float) -> Interval:
        """Bounds on the correlation: each pair of models in the order that suits it best, if it may be."""
        from scipy.stats import rankdata  # scipy.stats takes half a second to import

        if (self.low == self.high).all():
            return Interval(rho, rho)
        apart = self.index[:, None] - self.index[None, :]
        above = self.high[:, None] >= self.low[None, :]
        below = self.low[:, None] <= self.high[None, :]
        rank = rankdata(self.index)
        gap = np.abs(rank[:, None] - rank[None, :])
        rising = np.where(apart > 0, above, below)
        falling = np.where(apart > 0, below, above)
        whole = float(gap.sum())
        # Over pairs, the correlation of ranks is the mean of concordance weighted by the gap in rank.
        most, least = (float((gap * side).sum()) / whole * 2 - 1 for side in (rising, falling))
        return Interval(min(rho, -least), max(rho, most))

    def repeated(self, times: int) -> "Index":
        """See `Evidence`."""
        return Index(*(np.tile(part, times) for part in (self.index, self.propensity, self.low, self.high)))


def propensity_difference(first: Table, second: Table) -> SignShare:
    """The propensity of the second table minus that of the first, on the tasks that both have."""
    one, other = matched(first, second)
    return SignShare(one, difference_of(propensity_terms(one), propensity_terms(other)))


def domains_apart(tables: Mapping[str, Table]) -> Largest:
    """The largest difference between domains; there are at least two."""
    parts = list(tables.values())
    pairs = [Apart(one, other) for place, one in enumerate(parts) for other in parts[place + 1 :]]
    return Largest(pairs, sum(map(len, parts)))


def dimensions_apart(tables: Mapping[str, Table]) -> Largest:
    """The largest difference between dimensions; there are at least two.

    Two dimensions are compared on the scenarios that were played under both if these are at least half of
    either's; otherwise as if no scenario were common, which widens the interval.
    """
    parts = list(tables.values())
    pairs = [_dimensions(one, other) for place, one in enumerate(parts) for other in parts[place + 1 :]]
    return Largest(pairs, sum(map(len, parts)))


def _dimensions(first: Table, second: Table) -> Evidence:
    one, other = by_scenario(first), by_scenario(second)
    if 2 * len(matched(one, other)[0]) >= max(len(one), len(other)):
        return propensity_difference(one, other)
    common = np.intersect1d(first.domain, second.domain)
    return Apart(first.filter(np.isin(first.domain, common)), second.filter(np.isin(second.domain, common)))


def repeated_table(table: Table, times: int) -> Table:
    """The table so many times over, with scenarios of their own each time."""
    copies = table.take(np.tile(np.arange(len(table)), times))
    return replace(copies, scenario=_named_apart(copies.scenario, times))


def _named_apart(scenario: Names, times: int) -> Names:
    """The names of scenarios that were repeated so many times, each time others."""
    number = np.repeat(np.arange(times), len(scenario) // times).astype(np.str_)
    return np.char.add(np.char.add(scenario, "#"), number)


def _repeated_terms(terms: Terms, times: int) -> Terms:
    def repeated(quantity: Quantity) -> Quantity:
        if isinstance(quantity, PairedDifference):
            return PairedDifference(_repeated(quantity.first, times), _repeated(quantity.second, times))
        return _repeated(quantity, times)

    ends = None if terms.ends is None else (repeated(terms.ends[0]), repeated(terms.ends[1]))
    return terms._replace(seen=repeated(terms.seen), ends=ends, noise=None)


def _repeated(ratio: Ratio, times: int) -> Ratio:
    x, y, needed = ratio
    return Ratio(np.tile(x, times), np.tile(y, times), None if needed is None else np.tile(needed, times))


def _completions(table: Table) -> tuple[Quantity, Quantity]:
    """The lowest and the highest propensity that lost episodes allow."""
    terms = propensity_terms(table)
    return terms.ends or (terms.seen, terms.seen)


def _difference(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else second - first


def _absolute(ends: Interval) -> Interval:
    """The range of the absolute value of what lies in a range."""
    return Interval(max(0.0, ends.low, -ends.high), max(abs(ends.low), abs(ends.high)))


def _combined(parts: Sequence[Evidence], tails: tuple[float, float], *, smallest: bool) -> MeasuredEffect:
    """The smallest effect, or the largest by absolute value, of those at the tails of both ends."""
    at_low = [part.measure(tails[0]) for part in parts]
    at_high = at_low if tails[0] == tails[1] else [part.measure(tails[1]) for part in parts]
    values = [one.value for one in at_low]
    if any(value is None for value in values):
        return MeasuredEffect(None, None, None, "none: a part has no value")
    choose = min if smallest else max
    known = [value if smallest else abs(value) for value in values if value is not None]
    value = choose(known)
    lacking = next((one.method for one in (*at_low, *at_high) if one.interval is None), None)
    if lacking is not None:
        return MeasuredEffect(value, None, None, lacking)

    def ends(found: Sequence[Interval | None]) -> list[Interval]:
        return [one if smallest else _absolute(one) for one in found if one is not None]

    low, high = ends([one.interval for one in at_low]), ends([one.interval for one in at_high])
    bounds = ends([one.bounds for one in at_low])
    return MeasuredEffect(
        value,
        Interval(choose(one.low for one in low), choose(one.high for one in high)),
        Interval(choose(one.low for one in bounds), choose(one.high for one in bounds)),
        f"{at_low[0].method}, {'smallest' if smallest else 'largest'} of {len(parts)}",
    )
