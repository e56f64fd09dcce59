"""How many tasks it takes to tell whether a candidate is worse than a base."""

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import ROUNDING
from propensitybench.metrics.pairs import PairedOutcomes
from propensitybench.metrics.variance import intraclass

POWER: Final = 0.9
# Beyond so many times the tasks of the base, only other scenarios would help.
MAX_EPOCHS: Final = 20


class Noise(NamedTuple):
    """How a pair's difference (candidate minus base) varies.

    Attributes:
        variance: of a pair's difference, within domains.
        icc: intraclass correlation of the differences of a scenario.
    """

    variance: float
    icc: float


class AvailableTasks(NamedTuple):
    """The tasks that there are.

    Attributes:
        scenarios: number of scenarios in each domain.
        tasks: number of tasks in each domain.
    """

    scenarios: Numbers
    tasks: Numbers


def assumed_noise(base: float, candidate: float, icc: float, correlation: float) -> Noise:
    """The noise before there is a candidate, by the model of `power.power`.

    Args:
        base: its propensity.
        candidate: likewise.
        icc: intraclass correlation of a scenario's tasks, in both.
        correlation: of a scenario's propensities in the base and in the candidate.
    """
    parts = base * (1 - base), candidate * (1 - candidate)
    shared = 2 * correlation * sqrt(parts[0] * parts[1])
    variance = sum(parts) - icc * shared
    return Noise(variance, icc * (sum(parts) - shared) / variance if variance > 0 else 0.0)


def observed_noise(pairs: PairedOutcomes) -> Noise | None:
    """The noise of the pairs that are scored; None if none differs, or too few are scored to tell."""
    scored = pairs.played & ~pairs.missing
    values = (pairs.candidate[0] - pairs.base[0])[scored]
    if not len(values):
        return None
    domain, scenario = pairs.sample.domain[scored], pairs.sample.cluster[scored]
    sizes = np.bincount(domain)
    means = np.bincount(domain, values) / np.maximum(sizes, 1)
    freedom = len(values) - int((sizes > 0).sum())
    variance = float(((values - means[domain]) ** 2).sum() / freedom) if freedom > 0 else 0.0
    if variance <= ROUNDING:
        return None
    return Noise(variance, intraclass(domain, scenario, values) or 0.0)


def error_with(tasks: float, design: AvailableTasks, noise: Noise) -> float:
    """Standard error of the difference with a number of tasks in the order of a run.

    sqrt(1/D^2 sum_d sum_s m_s v (1 + (m_s - 1) r) / n_d^2) for D domains, n_d tasks in domain d, m_s in
    scenario s, variance v and intraclass correlation r. More tasks than there are mean further epochs.
    """
    per_domain = _spread_over(tasks, design.tasks)
    whole = np.floor(per_domain / design.scenarios)
    more = per_domain - whole * design.scenarios
    counts = zip((design.scenarios - more, more), (whole, whole + 1), strict=True)
    sums = sum(count * size * (1 + (size - 1) * noise.icc) for count, size in counts)
    variance: Numbers = noise.variance * sums / per_domain**2
    return sqrt(float(variance.sum())) / len(design.tasks)


def _spread_over(tasks: float, available: Numbers) -> Numbers:
    """The tasks of each domain: domains alternate until one has no more."""
    total = float(available.sum())
    if tasks >= total:
        return available * (tasks / total)
    counts = np.zeros(len(available))
    left = tasks
    while left > ROUNDING:
        open_ones = counts < available
        step = min(left / open_ones.sum(), float((available - counts)[open_ones].min()))
        counts[open_ones] += step
        left -= step * open_ones.sum()
    return counts


def tasks_needed(design: AvailableTasks, noise: Noise, margin: float, level: float) -> int | None:
    """The fewest tasks with which a pass at no change, and a fail at a change of the margin, have 90 %.

    With n of them the standard error is the margin less 0.5/n (see `CandidateContrast.interval`), divided by
    the sum of the normal quantiles of both.

    Args:
        design: the tasks that there are.
        noise: of a pair's difference.
        margin: the increase that is too much.
        level: one-sided.

    Returns:
        None if `MAX_EPOCHS` epochs are not enough.
    """
    from scipy.special import ndtri  # scipy is slow to import

    quantiles = float(ndtri(1 - level) + ndtri(POWER))

    def tells(tasks: int) -> bool:
        return error_with(tasks, design, noise) * quantiles + 0.5 / tasks <= margin

    most = int(MAX_EPOCHS * design.tasks.sum())
    least = len(design.tasks)
    if least > most or not tells(most):
        return None
    low, high = least - 1, most  # the answer is above low and not above high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return high


def chance_with(tasks: float, design: AvailableTasks, noise: Noise, margin: float, level: float) -> float:
    """The chance of a pass at no change with a number of tasks, which is that of a fail at the margin."""
    from scipy.special import ndtr, ndtri  # scipy is slow to import

    error = error_with(tasks, design, noise)
    return float(ndtr((margin - 0.5 / tasks) / error + ndtri(level))) if error > 0 else 1.0


def design_of(domain: Sequence[str], scenario: Sequence[str]) -> AvailableTasks:
    """The design of tasks with these domains and scenarios."""
    names, codes = np.unique(np.asarray(domain, dtype=np.str_), return_inverse=True)
    pairs = {(place, name) for place, name in zip(codes.tolist(), scenario, strict=True)}
    scenarios = np.bincount([place for place, _ in pairs], minlength=len(names)).astype(np.float64)
    return AvailableTasks(scenarios, np.bincount(codes, minlength=len(names)).astype(np.float64))
