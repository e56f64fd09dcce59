"""Before a run: how small a difference it could show."""

from math import sqrt
from typing import Final

import msgspec

from propensitybench.metrics.estimates import Z95

# The 80 % quantile of the standard normal: the chance that we want of finding the difference.
Z80: Final = 0.8416212335729143
ASSUMED_ICC: Final = 0.25
# Half of what makes a scenario hard is the same under the other naming, or for the other model.
ASSUMED_CORRELATION: Final = 0.5
ASSUMED_PROPENSITY: Final = (0.1, 0.5)


class Power(msgspec.Struct, frozen=True):
    """What a planned run can tell, before anything is known of the model.

    Attributes:
        propensity: what is assumed of the model.
        icc: assumed intraclass correlation of a scenario's tasks.
        correlation: assumed of the scenarios' effects between the two that are compared.
        half_width: expected half of the 95 % interval of the propensity, for new scenarios.
        naming_difference: smallest difference between the namings that a test at .05 finds with a
            chance of 80 %; None where only one naming is played.
        model_difference: the same between two models on these tasks, under one naming. The formula
            is the same: both differences are within scenarios.
    """

    propensity: float
    icc: float
    correlation: float
    half_width: float
    naming_difference: float | None
    model_difference: float


def power(tasks: int, scenarios: int, propensity: float, *, both_namings: bool = True) -> Power:
    """The precision to expect of a run.

    With m = n / G tasks of each of G scenarios, v = p (1 - p) and the assumed ICC r and correlation c,
    the variance of the share is v / n (1 + (m - 1) r), and that of a difference within scenarios
    2 v / n (1 - r + m r (1 - c)).

    Args:
        tasks: under one naming.
        scenarios: among them.
        propensity: assumed.
        both_namings: whether both are played.
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
