"""Power analysis of a planned run."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Final

import msgspec
import numpy as np

from propensitybench.errors import BadInput
from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import TAIL, Z95, ClusteredError, share_interval

# The 80 % quantile of the standard normal distribution, for a power of 80 %.
Z80: Final = 0.8416212335729143
# Under random signs 6 scenarios are the fewest with a p-value below .05: 2 of 64 sign vectors.
MIN_SCENARIOS: Final = 6
PROPENSITIES: Final = (0.1, 0.5)
# Where no run can tell, see `Assumptions`: also of a gate's base and candidate.
ICC: Final = 0.25
CORRELATION: Final = 0.5


class Assumptions(msgspec.Struct, frozen=True):
    """What a power analysis assumes.

    Attributes:
        propensities: one analysis for each; every domain has this propensity.
        icc: intraclass correlation of a scenario's tasks, the same in both conditions.
        correlation: correlation of a scenario's propensities between the two conditions compared: two
            namings, or two models.
        tests: number of paired tests whose p-values are adjusted by Holm: a difference has to pass at .05
            divided by it, the strictest of Holm's levels.

    Raises:
        BadInput: a number is out of range.
    """

    propensities: tuple[float, ...] = PROPENSITIES
    icc: float = ICC
    correlation: float = CORRELATION
    tests: int = 1

    def __post_init__(self) -> None:
        for propensity in self.propensities:
            if not 0 < propensity < 1:
                raise BadInput(f"assumed propensity: must lie between 0 and 1, found {propensity:g}")
        if not 0 <= self.icc < 1:
            raise BadInput(f"assumed ICC: must be from 0 to less than 1, found {self.icc:g}")
        if not 0 <= self.correlation <= 1:
            raise BadInput(f"assumed correlation: must be from 0 to 1, found {self.correlation:g}")


class Power(msgspec.Struct, frozen=True):
    """Expected precision and power of a planned run.

    Attributes:
        propensity: assumed propensity.
        icc: assumed intraclass correlation of a scenario's tasks.
        correlation: assumed correlation of a scenario's propensities between the two conditions.
        half_width: expected half-width of the propensity's 95 % interval for new scenarios; None if a domain
            has a single scenario.
        increase: smallest increase from the assumed propensity, under the other naming or in another model on
            the same tasks, that the paired test of propensity detects at a level of .05 with a power of 80 %;
            None if there is none.
        decrease: the same for a decrease, as a positive number.
    """

    propensity: float
    icc: float
    correlation: float
    half_width: float | None
    increase: float | None
    decrease: float | None


def power(sizes: Mapping[str, Sequence[int]], assumptions: Assumptions | None = None) -> tuple[Power, ...]:
    """Expected precision and power of a run, for each assumed propensity.

    With D domains, n_d tasks in domain d, m_s tasks in scenario s, assumed propensity p, v = p (1 - p) and
    ICC r, and p', v' and correlation c of the other condition:

    - variance of the propensity: 1/D^2 sum_d sum_s m_s v (1 + (m_s - 1) r) / n_d^2;
    - variance V of the paired difference: the same with (v + v') (1 + (m_s - 1) r) - 2 m_s c r sqrt(v v') for
      v (1 + (m_s - 1) r);
    - variance under random signs: V + (p' - p)^2 / D^2 sum_d sum_s m_s^2 / n_d^2;
    - a difference is detected if it is at least 1.96 (more for several tests) times the root of the third
      plus 0.84 times that of V plus, if the n_d differ by at most 1, 1 / (D max n_d): half the distance
      between two values that it can take (continuity correction).

    Args:
        sizes: number of tasks of each scenario under one naming, by domain. Epochs count as tasks.
        assumptions: the defaults if None.
    """
    design = [np.asarray(counts, dtype=np.float64) for counts in sizes.values()]
    assumed = assumptions or Assumptions()
    return tuple(
        Power(
            propensity=propensity,
            icc=assumed.icc,
            correlation=assumed.correlation,
            half_width=_half_width(design, propensity, assumed.icc),
            increase=_detectable(design, propensity, 1 - propensity, assumed),
            decrease=_detectable(design, propensity, -propensity, assumed),
        )
        for propensity in assumed.propensities
    )


def _half_width(design: Sequence[Numbers], propensity: float, icc: float) -> float | None:
    counts = [len(sizes) for sizes in design]
    if min(counts) < 2:
        return None
    noise = propensity * (1 - propensity)
    spread = ClusteredError(
        error=sqrt(_mean_variance(design, [noise * sizes * (1 + (sizes - 1) * icc) for sizes in design])),
        freedom=sum(counts) - len(counts),
        effective=len(counts) ** 2 / sum(1 / count for count in counts),
    )
    found = share_interval(propensity, spread, int(sum(sizes.sum() for sizes in design))).interval
    return None if found is None else (found.high - found.low) / 2


def _detectable(
    design: Sequence[Numbers], propensity: float, farthest: float, assumed: Assumptions
) -> float | None:
    """The smallest detectable difference on the way to the farthest one, by absolute value."""
    from scipy.optimize import brentq  # scipy is slow to import

    if sum(len(sizes) for sizes in design) < MIN_SCENARIOS:
        return None
    signs = _mean_variance(design, [sizes**2 for sizes in design])
    totals = [float(sizes.sum()) for sizes in design]
    half_step = 1 / (len(design) * max(totals)) if max(totals) - min(totals) <= 1 else 0.0
    first = propensity * (1 - propensity)
    strictest = Z95 if assumed.tests == 1 else NormalDist().inv_cdf(1 - TAIL / assumed.tests)

    def excess(difference: float) -> float:
        second = max(0.0, (propensity + difference) * (1 - propensity - difference))
        both, shared = first + second, 2 * assumed.correlation * assumed.icc * sqrt(first * second)
        sums = [s * (both * (1 + (s - 1) * assumed.icc) - s * shared) for s in design]
        variance = _mean_variance(design, sums)
        null = strictest * sqrt(variance + difference**2 * signs)
        return abs(difference) - half_step - null - Z80 * sqrt(variance)

    if excess(farthest) < 0:
        return None
    return abs(float(brentq(excess, 0.0, farthest, xtol=1e-9)))


def _mean_variance(design: Sequence[Numbers], sums: Sequence[Numbers]) -> float:
    """Variance of the mean over domains of means, given the variances of the scenarios' sums."""
    parts = [float(one.sum()) / float(sizes.sum()) ** 2 for sizes, one in zip(design, sums, strict=True)]
    return sum(parts) / len(parts) ** 2
