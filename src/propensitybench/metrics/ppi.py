"""Prediction-powered inference (PPI++): a mean over items of which people have labelled only some.

Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453. With y people's labels and f the judge's,

    estimate = mean of y, people's items + power * (mean of f, all items - mean of f, people's items)

It is right on average whatever the judge's errors. Power 0 leaves the judge out, and power 1 is PPI as first
published; the tuned power makes the variance as small as it can be.
"""

from typing import Final

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.corrected import Corrected, corrected
from propensitybench.metrics.intervals import ROUNDING, TAIL
from propensitybench.metrics.judged import Judged, Resamples

# Where every power gives the same estimate, as in a sample drawn by the judge's own labels.
ANY_POWER: Final = 1.0


def ppi_shares(resamples: Resamples, power: float | None = None) -> list[Corrected]:
    """The share of each category; the share of a domain rests on people's labels of that domain alone.

    Args:
        resamples: of the sample.
        power: of the judge's labels; tuned for each category if not given.
    """
    return _ppi(resamples, np.eye(resamples.sample.categories), power)


def ppi_mean(
    resamples: Resamples, scores: Numbers, power: float | None = None, tail: float = TAIL
) -> Corrected:
    """The mean of a score of the categories, as 0, 1 and 2 for none, hint and plain.

    Args:
        resamples: of the sample.
        scores: one for each category.
        power: of the judge's labels; tuned if not given.
        tail: probability beyond each end of the intervals.
    """
    return _ppi(resamples, np.asarray(scores, dtype=np.float64)[:, None], power, tail)[0]


def _ppi(resamples: Resamples, scores: Numbers, power: float | None, tail: float = TAIL) -> list[Corrected]:
    powers = np.array(
        [tuned_power(resamples.sample, column) if power is None else power for column in scores.T]
    )

    def estimator(table: Numbers, judged: Numbers) -> Numbers:
        people, predicted = table.sum(axis=2) @ scores, table.sum(axis=1) @ scores
        return np.asarray(people + powers * (judged @ scores - predicted))

    return corrected(resamples, estimator, alike=False, scores=scores, tail=tail)


def tuned_power(sample: Judged, scores: Numbers) -> float:
    """The power that makes the variance of the mean over domains as small as it can be.

    The estimate is A - power * B, B being the judge's mean over people's items less that over all; the power
    is cov(A, B) / var(B), with variances clustered by scenario and for the strata that people's items were
    drawn from. The paper's set of unlabelled items excludes the labelled ones, so that of n labelled items
    among N in all its power is (1 - n / N) times this one.

    Args:
        sample: the items.
        scores: one for each category.
    """
    covered = sample.covered
    _, domain = np.unique(sample.domain, return_inverse=True)
    _, scenario = np.unique(sample.scenario, return_inverse=True)
    weight = np.where(covered, sample.weight, 0.0)
    if not len(weight) or not np.bincount(domain, weight).all():
        return ANY_POWER
    label, prediction = (scores[np.maximum(0, codes)] for codes in (sample.person, sample.judge))

    def centred(values: Numbers, weight: Numbers) -> Numbers:
        """The influence of each item of weight above 0 on the weighted mean of its domain."""
        total = np.bincount(domain, weight)
        mean = np.bincount(domain, weight * values) / total
        return np.where(weight > 0, (values - mean[domain]) / total[domain], 0.0)

    people = _drawn(sample, centred(label, weight))
    everywhere = covered.astype(np.float64)
    gap = _drawn(sample, centred(prediction, weight)) - centred(prediction, everywhere)
    by_scenario = np.bincount(scenario, people), np.bincount(scenario, gap)
    variance = float(by_scenario[1] @ by_scenario[1])
    return float(by_scenario[0] @ by_scenario[1]) / variance if variance > ROUNDING**2 else ANY_POWER


def _drawn(sample: Judged, influence: Numbers) -> Numbers:
    """The influence of all items, given that of those that people have labelled.

    An item has the mean of its stratum; one that was drawn has in addition its distance from that mean, times
    its weight (two-phase sampling; Särndal, Swensson and Wretman 1992, chapter 9).
    """
    labelled = sample.labelled
    size = int(sample.stratum.max()) + 1
    count = np.bincount(sample.stratum[labelled], minlength=size)
    sums = np.bincount(sample.stratum[labelled], influence[labelled], minlength=size)
    mean = np.divide(sums, count, out=np.zeros(size), where=count > 0)[sample.stratum]
    return np.asarray(mean + sample.weight * (influence - mean))
