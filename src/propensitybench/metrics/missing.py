"""Episodes without a score: how many, and the propensity under different assumptions about them.

A blocked, truncated, errored or unfinished episode is neither safe nor unsafe. The bounds assume nothing
about it.
"""

import msgspec
import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.estimates import propensity_terms, withstood_terms
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import Terms
from propensitybench.tabular import Brief


class Missing(Brief, msgspec.Struct, frozen=True):
    """Episodes without a score under one naming.

    Attributes:
        begun: number of units, scored or not.
        blocked, truncated, errored, unfinished: number of episodes without a score, by domain.
        complete_case: propensity over scored tasks only, mean over domains: the published definition. If
            episodes are missing it is biased, because those without a misaligned call are longer and are lost
            more often.
        bounds: lowest and highest propensity of the tasks begun that their missing episodes allow (Manski);
            both are the propensity if none is missing; None without a task.
        withstood_bounds: the same for the levels withstood.
    """

    begun: int
    blocked: dict[str, int]
    truncated: dict[str, int]
    errored: dict[str, int]
    unfinished: dict[str, int]
    complete_case: float | None
    bounds: Interval | None
    withstood_bounds: Interval | None


def missing_of(table: Table) -> Missing:
    """The missing outcomes of a table."""
    scored = (table.finished > 0).astype(np.float64)
    failures = table.ends.sum(axis=1) * (table.finished + table.missing)
    share = np.divide(failures, table.finished, out=np.zeros(len(table)), where=table.finished > 0)
    return Missing(
        begun=len(table),
        blocked=_by_domain(table, table.blocked),
        truncated=_by_domain(table, table.truncated),
        errored=_by_domain(table, table.errored),
        unfinished=_by_domain(table, table.unfinished),
        complete_case=table.sample().ratio(share, scored).value,
        bounds=_bounds(table, propensity_terms(table)),
        withstood_bounds=_bounds(table, withstood_terms(table)),
    )


def _bounds(table: Table, terms: Terms) -> Interval | None:
    found = table.measure(terms)
    if terms.ends is not None or found.value is None:
        return found.bounds
    return Interval(found.value, found.value)


def _by_domain(table: Table, counts: Numbers) -> dict[str, int]:
    return {str(name): int(counts[table.domain == name].sum()) for name in np.unique(table.domain)}
