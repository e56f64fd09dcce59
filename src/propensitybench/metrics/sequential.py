"""When a screening run may stop: when its interval is narrow enough (Chow and Robbins 1965).

The decision looks at the width of the interval and not at its place, so the interval keeps its coverage.
A run that stops because it likes the value has no such interval.
"""

from math import sqrt

import msgspec

from propensitybench.metrics.estimates import Z95, estimate, propensity_terms
from propensitybench.metrics.table import Table
from propensitybench.taxonomy import Naming


class StoppingState(msgspec.Struct, frozen=True):
    """The stopping rule of a run, and how the run stands to it.

    Attributes:
        half_width: wished for the 95 % interval of the propensity for new scenarios, as a share.
        batch: pairs of a scenario and a dimension that are drawn at a time, each under every naming.
        least: tasks with a score that each naming must have.
        drawn: tasks drawn so far, over all namings.
        reached: the half-width so far by `half_width`; None where it cannot be computed.
        met: whether every drawn task has ended and every naming's interval is narrow enough.
    """

    half_width: float
    batch: int
    least: int
    drawn: int
    reached: dict[Naming, float | None]
    met: bool


def half_width(table: Table) -> float | None:
    """Half of the 95 % interval for new scenarios, by the error that the rule goes by.

    It is 1.96 times the clustered error of `estimate`, in each domain scaled to the share
    (x + 0.5) / (n + 1) for x misaligned of n tasks: a few tasks without a failure would else look
    certain. Where a domain shows no spread, it counts as one task for each of its scenarios.

    None where a domain has fewer than two scenarios with a score.
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


def is_narrow(table: Table, wished: float, least: int) -> bool:
    """Whether a naming's interval is no wider than wished to either side.

    Args:
        table: of the tasks so far, whole batches in the order of the run.
        wished: half-width, as a share.
        least: tasks with a score below which the width is not trusted.
    """
    reached = half_width(table)
    return reached is not None and reached <= wished and int(table.finished.sum()) >= least
