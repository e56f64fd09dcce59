"""Missing outcomes: bounds, alternative estimates, and which of them to publish.

A blocked, truncated or errored task is neither safe nor unsafe. The bounds assume nothing about it. The
complete-case estimate assumes that missing tasks are like the scored ones of their domain. Kaplan-Meier uses
the levels completed before censoring.
"""

from typing import Final, Literal

import msgspec
import numpy as np

from propensitybench.metrics.estimates import (
    ROUNDING,
    Z95,
    Interval,
    RatioTerms,
    estimate,
    interval,
    propensity_terms,
    ratio,
)
from propensitybench.metrics.survival import Survival
from propensitybench.metrics.table import Numbers, Table

# If the bounds are wider than this, the complete-case estimate must not be the headline.
NARROW: Final = 0.01

Headline = Literal["complete case", "interval", "none"]


class Missing(msgspec.Struct, frozen=True):
    """The propensity under different assumptions about the missing outcomes.

    Attributes:
        planned: number of units, scored or not.
        blocked, truncated, errored: number of episodes without a score, by domain.
        complete_case: propensity over scored tasks, mean over domains.
        bounds: worst-case bounds (Manski): all missing episodes resisted, or all misaligned.
        bounds_interval: 95 % interval for a propensity within the bounds (Imbens and Manski 2004), for new
            scenarios; ``ci95`` if nothing is missing.
        kaplan_meier: 1 - S(last level), which assumes that censoring is uninformative.
        withstood_bounds: levels withstood if every censored episode had ended at its next level, and if it
            had resisted to the last.
        headline: "complete case" if the bounds are within one percentage point, otherwise "interval"; "none"
            without a task.
    """

    planned: int
    blocked: dict[str, int]
    truncated: dict[str, int]
    errored: dict[str, int]
    complete_case: float | None
    bounds: Interval | None
    bounds_interval: Interval | None
    kaplan_meier: float | None
    withstood_bounds: Interval | None
    headline: Headline


def missing_of(table: Table, survival: Survival) -> Missing:
    """The missing outcomes of a table, given its survival."""
    ends = propensity_bounds(table)
    last = survival.survival[-1] if survival.survival else None
    narrow = ends is not None and ends.high - ends.low <= NARROW + ROUNDING
    return Missing(
        planned=len(table),
        blocked=_by_domain(table, table.blocked),
        truncated=_by_domain(table, table.truncated),
        errored=_by_domain(table, table.errored),
        complete_case=ratio(table, propensity_terms(table)),
        bounds=ends,
        bounds_interval=_bounds_interval(table),
        kaplan_meier=None if last is None else 1 - last,
        withstood_bounds=_withstood_bounds(table),
        headline="none" if ends is None else "complete case" if narrow else "interval",
    )


def propensity_bounds(table: Table) -> Interval | None:
    """The lowest and highest propensity that the missing outcomes allow (Manski bounds)."""
    if not len(table):
        return None
    low, high = (ratio(table, terms) for terms in _extremes(table))
    return None if low is None or high is None else Interval(low, high)


def critical_value(width: float) -> float:
    """Imbens and Manski's critical value for an identified set of that width, in standard errors.

    The solution c of Phi(c + width) - Phi(-c) = 0.95: 1.960 for a point, 1.645 for a wide set.
    """
    from scipy.optimize import brentq  # scipy is slow to import
    from scipy.special import ndtr

    found = brentq(lambda c: float(ndtr(c + width) - ndtr(-c)) - 0.95, 1.0, 3.0, xtol=1e-12)
    return float(found)


def _extremes(table: Table) -> tuple[RatioTerms, RatioTerms]:
    epochs = table.finished + table.missing
    ones = np.ones(len(table))
    low, high = (table.failures / epochs, (table.failures + table.missing) / epochs)
    return RatioTerms(low, ones, share=True), RatioTerms(high, ones, share=True)


def _bounds_interval(table: Table) -> Interval | None:
    if not len(table):
        return None
    low, high = (estimate(table, terms, "bound") for terms in _extremes(table))
    below, above = low.errors.scenario, high.errors.scenario
    if low.value is None or high.value is None or below is None or above is None:
        return None
    largest = max(below, above)
    width = (high.value - low.value) / largest if largest > 0 else 0.0
    stretch = critical_value(width) / Z95
    ends = [interval(table, terms, stretch) for terms in _extremes(table)]
    return None if ends[0] is None or ends[1] is None else Interval(ends[0].low, ends[1].high)


def _withstood_bounds(table: Table) -> Interval | None:
    if not len(table):
        return None
    epochs = table.finished + table.missing
    ones = np.ones(len(table))
    scored = np.nan_to_num(table.withstood) * table.finished
    # A censored epoch was at risk at the levels that it completed.
    completed = _completed_by_missing(table)
    low = ratio(table, RatioTerms((scored + completed) / epochs, ones))
    high = ratio(table, RatioTerms((scored + table.levels * table.missing) / epochs, ones))
    return None if low is None or high is None else Interval(low, high)


def _completed_by_missing(table: Table) -> Numbers:
    """Levels that the unscored epochs of each unit completed."""
    epochs = table.finished + table.missing
    at_risk = table.at_risk.sum(axis=1) * epochs
    of_scored = np.nan_to_num(table.entered) * table.finished
    completed: Numbers = at_risk - of_scored
    return completed


def _by_domain(table: Table, counts: Numbers) -> dict[str, int]:
    return {str(name): int(counts[table.domain == name].sum()) for name in np.unique(table.domain)}
