"""The data of the hierarchical model: one row for each scenario, one column for each kind of level.

A cell is level 0, or a later level under one dimension. All episodes of a scenario that are at risk in a cell
have the same hazard, so their number and the number that end there are sufficient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Names, Numbers
from propensitybench.metrics.table import Table

# Groupings of scenarios with an effect of their own, where a table has the column.
GROUPINGS: Final = ("workspace", "storyline", "capability")
# The spread of fewer groups is mostly its prior.
MIN_GROUPS: Final = 5
# Priors on the logit scale: mean and standard deviation of the intercept; standard deviations of levels
# around it, of domains and of dimensions; half-normal scales of the spreads of scenarios and of groups.
# Levels with independent intercepts would together say a lot about their mean, and in a small run force the
# hazards towards it.
INTERCEPT: Final = -3.0
INTERCEPT_SPREAD: Final = 2.0
LEVEL_SPREAD: Final = 1.5
EFFECT_SPREAD: Final = 0.5
SCENARIO_SCALE: Final = 1.5
GROUP_SCALE: Final = 1.0


@dataclass(frozen=True)
class Grouping:
    """A grouping of the scenarios.

    Attributes:
        column: its name in the table.
        names: names of the groups.
        codes: index of each scenario's group; -1 for a scenario without one.
    """

    column: str
    names: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True)
class HierarchicalData:
    """The data of one model under one naming.

    Attributes:
        levels: number of levels at which anybody was at risk.
        domains, dimensions: names.
        domain: index of each scenario's domain.
        groupings: those that the data can support.
        met: number of episodes at risk, shape (scenarios, cells).
        ends: number of those that ended misaligned, same shape.
        by_cell: loadings of the parameters of intercept, levels and dimensions, shape (cells, parameters).
        by_scenario: loadings of the parameters of domains and groups, shape (scenarios, parameters).
        grouping_of: index in ``groupings`` of each column of ``by_scenario``; -1 for the domains.
    """

    levels: int
    domains: tuple[str, ...]
    dimensions: tuple[str, ...]
    domain: NDArray[np.int64]
    groupings: tuple[Grouping, ...]
    met: Numbers
    ends: Numbers
    by_cell: Numbers
    by_scenario: Numbers
    grouping_of: NDArray[np.int64]

    @property
    def scales(self) -> Numbers:
        """Half-normal scales of the spreads: of each grouping, and of scenarios, in this order."""
        return np.array([GROUP_SCALE] * len(self.groupings) + [SCENARIO_SCALE])


def design_of(table: Table, groupings: Sequence[str] = GROUPINGS) -> HierarchicalData:
    """The data of a table: every level at which an episode was at risk, scored or not.

    Args:
        table: the episodes.
        groupings: columns by which scenarios may be grouped; those that the table lacks are left out.
    """
    epochs = (table.finished + table.missing)[:, None]
    met, ends = table.at_risk * epochs, table.ends * epochs
    at_risk = met[:, 0] > 0
    table, met, ends = table.filter(at_risk), met[at_risk], ends[at_risk]
    levels = int(np.flatnonzero(met.sum(axis=0)).max(initial=-1)) + 1
    _, first, scenario = np.unique(table.scenario, return_index=True, return_inverse=True)
    dimensions, dimension = np.unique(table.dimension, return_inverse=True)
    domains, domain = np.unique(table.domain[first], return_inverse=True)
    supported = _groupings(table, groupings, first)
    shape = len(first), len(dimensions)

    def cells(counts: Numbers) -> Numbers:
        found = np.zeros((*shape, levels))
        np.add.at(found, (scenario, dimension), counts[:, :levels])
        # At level 0, before any pressure, the dimensions of a scenario are the same conversation.
        return np.hstack([found[:, :, :1].sum(axis=1), found[:, :, 1:].reshape(shape[0], -1)])

    return HierarchicalData(
        levels=levels,
        domains=tuple(domains.tolist()),
        dimensions=tuple(dimensions.tolist()),
        domain=domain,
        groupings=supported,
        met=cells(met),
        ends=cells(ends),
        by_cell=loadings(levels, len(dimensions)),
        by_scenario=np.hstack([zero_sum(len(domains))[domain], *map(_indicators, supported)]),
        grouping_of=np.repeat(
            np.arange(-1, len(supported)), [len(domains) - 1, *(len(one.names) for one in supported)]
        ),
    )


def loadings(levels: int, dimensions: int) -> Numbers:
    """Loadings of the parameters of intercept, levels and dimensions in each cell, without the prior mean."""
    own = level_loadings(levels)
    first = np.concatenate([own[0], np.zeros(dimensions - 1)])
    later = [np.concatenate([level, row]) for row in zero_sum(dimensions) for level in own[1:]]
    return np.array([first, *later])


def level_loadings(levels: int) -> Numbers:
    """Loadings of the parameters of intercept and levels at each level."""
    return np.hstack([np.full((levels, 1), INTERCEPT_SPREAD), LEVEL_SPREAD * np.eye(levels)])


def zero_sum(count: int) -> Numbers:
    """Effects that sum to 0 as loadings of count - 1 independent standard normal parameters.

    Their prior is normal with standard deviation EFFECT_SPREAD, conditional on the sum.
    """
    basis = np.linalg.qr(np.vstack([np.ones(count), np.eye(count)[:-1]]).T)[0][:, 1:]
    return EFFECT_SPREAD * basis


def _groupings(table: Table, columns: Sequence[str], first: NDArray[np.int64]) -> tuple[Grouping, ...]:
    """The groupings with enough groups, with two scenarios in a group, and unlike each other."""
    found: list[Grouping] = []
    for column in columns:
        values: Names | None = getattr(table, column, None)
        if values is None:
            continue
        names, codes = np.unique(values[first], return_inverse=True)
        if len(names) and not names[0]:
            names, codes = names[1:], codes - 1
        grouping = Grouping(column, tuple(names.tolist()), codes)
        enough = MIN_GROUPS <= len(names) < int((codes >= 0).sum())
        if enough and not any(_same(codes, other.codes) for other in found):
            found.append(grouping)
    return tuple(found)


def _same(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether two groupings divide the scenarios alike, so that their effects cannot be separated."""
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(np.unique(one)) == len(np.unique(other))


def _indicators(grouping: Grouping) -> Numbers:
    inside = grouping.codes[:, None] == np.arange(len(grouping.names))
    return np.asarray(inside, dtype=np.float64)
