"""Tasks of a base and a candidate, and the candidate's share with the base as a covariate."""

from typing import NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.intervals import ROUNDING
from propensitybench.metrics.sample import ClusteredSample
from propensitybench.metrics.terms import Ratio


class PairedOutcomes(NamedTuple):
    """Tasks of a base, of which a candidate was to play some.

    Attributes:
        sample: the base's tasks, clustered by scenario.
        base: the lowest and the highest share that ended misaligned, shape (2, tasks): they differ where an
            episode has no score.
        candidate: the same of the candidate; of no account where it was not to play.
        played: the tasks that the candidate was to play.
    """

    sample: ClusteredSample
    base: Numbers
    candidate: Numbers
    played: Flags

    @property
    def missing(self) -> Flags:
        """Whether an episode of a pair has no score."""
        return np.asarray((self.base[0] < self.base[1]) | self._is_open)

    @property
    def is_known(self) -> bool:
        """Whether every episode has a score."""
        return not self.missing.any()

    @property
    def _is_open(self) -> Flags:
        return np.asarray(self.played & (self.candidate[0] < self.candidate[1]))

    def first(self, count: int) -> "PairedOutcomes":
        """The same if the candidate was to play only the first ``count``."""
        return self._replace(played=self.played & (np.arange(len(self.played)) < count))

    def filter(self, rows: Flags) -> "PairedOutcomes":
        """Some of the tasks."""
        return PairedOutcomes(
            self.sample.filter(rows), self.base[:, rows], self.candidate[:, rows], self.played[rows]
        )


def slope(pairs: PairedOutcomes, base: Numbers, candidate: Numbers) -> float:
    """The slope of the candidate's outcomes on the base's, within domains, from 0 to 1.

    Args:
        pairs: the tasks.
        base: an outcome of each task of the base.
        candidate: an outcome of each that the candidate was to play.
    """
    played = pairs.played.astype(np.float64)
    parts = [pairs.sample.parts(Ratio(values, played)) for values in (base, candidate)]
    if parts[0] is None or parts[1] is None:
        return 0.0
    x, y = parts[0].residuals, parts[1].residuals
    square = float(x @ x)
    return min(1.0, max(0.0, float(x @ y) / square)) if square > ROUNDING else 0.0


def over_all_tasks(pairs: PairedOutcomes, base: Numbers, candidate: Numbers) -> Numbers:
    """A value for each of the base's tasks, whose mean estimates the candidate's share over all of them.

    The generalised regression estimator of survey sampling (Cassel, Sarndal and Wretman 1976): in each domain
    the mean of b_i k + (N/n) (c_i - k b_i), the second part for the n tasks of N that were played; k is the
    slope. The tasks played have to be a random part of all, in every domain. The spread of these values is
    that of the estimate, for new scenarios. If all tasks were played they are the candidate's own.

    Args:
        pairs: the tasks.
        base: an outcome of each task of the base.
        candidate: an outcome of each that the candidate was to play.
    """
    sample = pairs.sample
    if pairs.played.all():
        return candidate
    expected = slope(pairs, base, candidate) * base
    rest = sample.parts(Ratio(candidate - expected, pairs.played.astype(np.float64)))
    assert rest is not None
    times = sample.sizes / rest.total
    return np.asarray(expected + rest.ratio[sample.domain] + rest.residuals * times[sample.domain])
