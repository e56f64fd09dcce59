"""Fixed-width stopping of a screening run (Chow and Robbins 1965).

The rule looks at the width of the interval. The width of a share's interval depends on the share, so the rule
is not independent of the estimate; coverage was checked by simulation (docs/metrics.md, "Coverage"). A run
that is stopped because of its estimate has no such check.
"""

from math import sqrt

import msgspec

from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import Z95
from propensitybench.metrics.table import Table
from propensitybench.taxonomy import Naming


class StoppingState(msgspec.Struct, frozen=True):
    """The stopping rule of a run, and the run's progress towards it.

    Attributes:
        half_width: target half-width of the propensity's 95 % interval for new scenarios, as a share.
        batch: number of scenario-dimension pairs in a batch, each run under every naming.
        least: minimum number of scored tasks under each naming.
        drawn: number of tasks in the batches so far, over all namings.
        reached: current half-width by naming, see `half_width`; None if it cannot be computed.
        met: whether every task of the batches so far has ended and every naming has reached the target.
    """

    half_width: float
    batch: int
    least: int
    drawn: int
    reached: dict[Naming, float | None]
    met: bool


def half_width(table: Table) -> float | None:
    """Half-width of the 95 % interval for new scenarios that the stopping rule uses.

    1.96 times the clustered standard error of `estimate`, rescaled in each domain to the smoothed share
    (x + 0.5) / (n + 1) for x misaligned of n tasks; otherwise a few tasks without a misaligned end would look
    certain. In a domain whose scenarios do not differ, each scenario counts as one task.

    None if a domain has fewer than two scored scenarios.
    """
    domains = table.parts("domain").values()
    variance = 0.0
    for rows in domains:
        found = estimate(rows, propensity_terms(rows), "propensity of a domain")
        if found.value is None or found.errors.scenario is None:
            return None
        smooth = (found.value * found.n + 0.5) / (found.n + 1)
        noise = found.value * (1 - found.value)
        error = found.errors.scenario
        variance += smooth * (1 - smooth) * (error**2 / noise if error > 0 else 1 / found.clusters)
    return Z95 * sqrt(variance) / len(domains) if domains else None


def is_narrow(table: Table, target: float, least: int) -> bool:
    """Whether a naming has reached the target half-width.

    Args:
        table: the tasks so far, in complete batches.
        target: half-width, as a share.
        least: minimum number of scored tasks.
    """
    reached = half_width(table)
    return reached is not None and reached <= target and int(table.finished.sum()) >= least
