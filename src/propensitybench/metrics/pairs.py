"""Tasks of a base and a candidate, and the candidate's share with the base as a covariate."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.intervals import ROUNDING, ClusteredError


class TaskPlaces:
    """Where tasks belong: the sizes that every mean over them needs.

    Args:
        domain: a number from 0 for each task.
        scenario: likewise; a scenario has one domain.
        domains: number of domains, if the last ones may have no task.
    """

    def __init__(self, domain: NDArray[np.int64], scenario: NDArray[np.int64], domains: int = 0) -> None:
        self.domain, self.scenario = domain, scenario
        self.sizes = np.bincount(domain, minlength=domains)
        self.domain_of = np.zeros(int(scenario.max(initial=-1)) + 1, dtype=np.int64)
        self.domain_of[scenario] = domain
        present = np.bincount(scenario, minlength=len(self.domain_of)) > 0
        self.clusters = np.bincount(self.domain_of[present], minlength=len(self.sizes))
        self.is_enough = bool(len(self.clusters)) and self.clusters.min() >= 2
        if self.is_enough:
            # CR1, see `spreads.clustered`.
            factor = self.clusters / (self.clusters - 1) / (self.sizes * len(self.sizes)) ** 2
            self._factor = factor[self.domain_of]

    def __len__(self) -> int:
        return len(self.domain)

    @property
    def scenarios(self) -> int:
        """Number of scenarios."""
        return int(self.clusters.sum())

    @property
    def thinness(self) -> float:
        """Variance of a mean over domains, of scenarios with variance 1."""
        return float((1 / self.clusters).sum()) / len(self.clusters) ** 2

    def means(self, values: Numbers) -> Numbers:
        """The mean of a value of each task in each domain; 0 in one without a task."""
        means: Numbers = np.bincount(self.domain, values, len(self.sizes)) / np.maximum(self.sizes, 1)
        return means

    def mean(self, values: Numbers) -> float:
        """The mean of these means."""
        return float(self.means(values).mean())

    def centred(self, values: Numbers) -> Numbers:
        """The values less the mean of their domain."""
        rest: Numbers = values - self.means(values)[self.domain]
        return rest

    def spread(self, values: Numbers) -> ClusteredError:
        """The standard error of `mean`, clustered by scenario; there are two in every domain."""
        sums = np.bincount(self.scenario, self.centred(values), len(self.domain_of))
        return ClusteredError.of(
            self._factor * sums**2, self.scenarios - len(self.clusters), 1 / self.thinness
        )

    def part(self, rows: Flags) -> "TaskPlaces":
        """The places of some of the tasks."""
        return TaskPlaces(_codes(self.domain[rows]), _codes(self.scenario[rows]))

    def first(self, count: int) -> "TaskPlaces":
        """The places of the first so many tasks. Domains keep their numbers."""
        if count == len(self):
            return self
        return TaskPlaces(self.domain[:count], _codes(self.scenario[:count]), len(self.sizes))


class Pairs(NamedTuple):
    """Tasks of a base, of which a candidate was to play the first.

    Attributes:
        places: where the base's tasks belong.
        base: the lowest and the highest share that ended misaligned, shape (2, tasks): they differ where an
            episode has no score.
        candidate: likewise, of the tasks that it was to play, shape (2, played).
        played: where these belong.
    """

    places: TaskPlaces
    base: Numbers
    candidate: Numbers
    played: TaskPlaces

    @classmethod
    def of(cls, places: TaskPlaces, base: Numbers, candidate: Numbers) -> "Pairs":
        """Pairs of which the candidate was to play all."""
        return cls(places, base, candidate, places)

    @property
    def missing(self) -> Flags:
        """Whether an episode of a pair has no score, of the pairs that the candidate was to play."""
        base = self.base[:, : len(self.played)]
        missing: Flags = (base[0] < base[1]) | (self.candidate[0] < self.candidate[1])
        return missing

    @property
    def is_known(self) -> bool:
        """Whether every episode has a score."""
        return not (self.base[0] < self.base[1]).any() and not (self.candidate[0] < self.candidate[1]).any()

    def first(self, count: int, played: TaskPlaces | None = None) -> "Pairs":
        """The candidate has played only the first so many; ``played`` are their places, if they are known."""
        played = self.places.first(count) if played is None else played
        return Pairs(self.places, self.base, self.candidate[:, :count], played)

    def scored(self) -> "Pairs":
        """Without the tasks that have no score."""
        rows = self.base[0] == self.base[1]
        rows[: len(self.played)] &= ~self.missing
        ours = rows[: len(self.played)]
        places = self.places.part(rows)
        return Pairs(places, self.base[:, rows], self.candidate[:, ours], places.first(int(ours.sum())))


def slope(pairs: Pairs, base: Numbers, candidate: Numbers) -> float:
    """The slope of the candidate's outcomes on the base's, within domains, from 0 to 1.

    Args:
        pairs: the tasks.
        base: an outcome of each task of the base.
        candidate: likewise, of each that the candidate was to play.
    """
    x, y = (pairs.played.centred(values) for values in (base[: len(pairs.played)], candidate))
    square = float(x @ x)
    return min(1.0, max(0.0, float(x @ y) / square)) if square > ROUNDING else 0.0


def over_all_tasks(pairs: Pairs, base: Numbers, candidate: Numbers) -> Numbers:
    """A value for each of the base's tasks, whose mean estimates the candidate's share over all of them.

    The generalised regression estimator of survey sampling (Cassel, Sarndal and Wretman 1976): in each domain
    the mean of b_i k + (N/n) (c_i - k b_i), the second part for the n tasks of N that were played; k is the
    slope. The tasks played have to be a random part of all. The spread of these values is that of the
    estimate, for new scenarios. If all tasks were played they are the candidate's own.

    Args:
        pairs: the tasks.
        base: an outcome of each task of the base.
        candidate: likewise, of each that the candidate was to play.
    """
    if len(pairs.played) == len(base):
        return candidate
    expected = slope(pairs, base, candidate) * base
    rest = candidate - expected[: len(pairs.played)]
    means = pairs.played.means(rest)
    values: Numbers = expected + means[pairs.places.domain]
    sizes = pairs.places.sizes / pairs.played.sizes
    values[: len(pairs.played)] += (rest - means[pairs.played.domain]) * sizes[pairs.played.domain]
    return values


def _codes(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers from 0 for the different numbers."""
    return np.unique(numbers, return_inverse=True)[1]
