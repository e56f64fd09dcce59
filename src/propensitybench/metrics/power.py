"""Power analysis of a planned run."""

from math import sqrt
from typing import Final

import msgspec

from propensitybench.metrics.intervals import Z95

# The 80 % quantile of the standard normal distribution, for a power of 80 %.
Z80: Final = 0.8416212335729143
ASSUMED_ICC: Final = 0.25
# Half of a scenario's effect is common to both namings, or to both models.
ASSUMED_CORRELATION: Final = 0.5
ASSUMED_PROPENSITY: Final = (0.1, 0.5)


class Power(msgspec.Struct, frozen=True):
    """Expected precision and power of a planned run.

    Attributes:
        propensity: assumed propensity.
        icc: assumed intraclass correlation of a scenario's tasks.
        correlation: assumed correlation of the scenario effects between the two conditions compared.
        half_width: expected half-width of the propensity's 95 % interval for new scenarios.
        naming_difference: minimum detectable difference between the namings, at a level of .05 and a power
            of 80 %; None if only one naming is run.
        model_difference: the same between two models on these tasks under one naming. The formula is the
            same: both contrasts are within scenarios.
    """

    propensity: float
    icc: float
    correlation: float
    half_width: float
    naming_difference: float | None
    model_difference: float


def power(tasks: int, scenarios: int, propensity: float, *, both_namings: bool = True) -> Power:
    """Expected precision and power of a run.

    With n tasks, m = n / G for each of G scenarios, v = p (1 - p), ICC r and correlation c, the variance of
    the propensity is v / n (1 + (m - 1) r), and that of a difference within scenarios is
    2 v / n (1 - r + m r (1 - c)).

    Args:
        tasks: number of tasks under one naming.
        scenarios: number of their scenarios.
        propensity: assumed propensity.
        both_namings: whether both namings are run.
    """
    noise = propensity * (1 - propensity) / tasks
    shared = tasks / scenarios * ASSUMED_ICC
    alone = 1 - ASSUMED_ICC
    difference = (Z95 + Z80) * sqrt(2 * noise * (alone + shared * (1 - ASSUMED_CORRELATION)))
    return Power(
        propensity=propensity,
        icc=ASSUMED_ICC,
        correlation=ASSUMED_CORRELATION,
        half_width=Z95 * sqrt(noise * (alone + shared)),
        naming_difference=difference if both_namings else None,
        model_difference=difference,
    )
