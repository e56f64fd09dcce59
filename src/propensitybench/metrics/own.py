"""Metrics of a user's own: a number for each scored episode, estimated like any other metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.estimates import count_terms
from propensitybench.metrics.intervals import ANYWHERE, NOT_NEGATIVE
from propensitybench.metrics.measures import DescribedNumber
from propensitybench.metrics.table import Table
from propensitybench.metrics.terms import Ratio, Terms


@dataclass(frozen=True, kw_only=True)
class OwnMetric(DescribedNumber):
    """A metric of a user's own in a run: a share of tasks, or a mean over tasks.

    Attributes:
        values: by task; a task without one is left out. Tasks without a score have none.
    """

    values: Mapping[str, float]


class OwnColumns(NamedTuple):
    """What of a metric is estimated, for each row of a table.

    Attributes:
        is_share: whether the values are 0 and 1.
        has: weighted share of the scored epochs that have a value.
        value: weighted mean over the scored epochs of the value, 0 where there is none.
        may_have: share of all epochs that have a value or no score.
        least: mean over all epochs of the value, 0 where there is none.
        lost: share of all epochs without a score.
    """

    is_share: bool
    has: Numbers
    value: Numbers
    may_have: Numbers
    least: Numbers
    lost: Numbers

    def filter(self, rows: Flags) -> "OwnColumns":
        """The rows for which the mask is true."""
        return OwnColumns(self.is_share, *(column[rows] for column in self[1:]))

    def terms(self, table: Table) -> Terms:
        """What is estimated over the rows of a table; missing tasks may have any value."""
        x, y = table.weight * np.nan_to_num(self.value), table.weight * np.nan_to_num(self.has)
        if not self.is_share:
            if (x >= 0).all():
                return count_terms(table, x, y, NOT_NEGATIVE)
            is_open = bool(table.missing.any())
            return Terms(
                Ratio(x, y, needed=table.weight),
                form="open count" if is_open else "coefficient",
                limits=ANYWHERE,
            )
        ends = None
        if table.missing.any():
            ends = Ratio(self.least, self.may_have), Ratio(self.least + self.lost, self.may_have)
        return Terms(Ratio(x, y, needed=table.weight), ends)


def own_columns(metric: OwnMetric, table: Table, tasks: Sequence[str]) -> OwnColumns:
    """A metric in the rows of a table.

    Args:
        metric: the metric.
        table: of a run and naming.
        tasks: key of each episode of the table, in its order.
    """
    episodes = table.episodes
    found = np.array([metric.values.get(task, np.nan) for task in tasks])
    has = ~np.isnan(found) & ~episodes.missing
    value = np.where(has, found, 0.0)
    weight = np.where(episodes.missing, 0.0, episodes.weights()[:, -1])
    return OwnColumns(
        metric.unit == "proportion",
        episodes.mean(has, weight),
        episodes.mean(value, weight),
        episodes.mean(has | episodes.missing),
        episodes.mean(value),
        episodes.mean(episodes.missing),
    )
