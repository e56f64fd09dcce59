"""Quantities of the hierarchical model, computed from draws of its parameters.

Means over scenarios are integrals over normal effects; domains and dimensions have equal weights.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.hierarchical_design import INTERCEPT, HierarchicalData, level_loadings, zero_sum
from propensitybench.metrics.hierarchical_sampler import Draws

NODES = 25
# Draws that one step of an integral holds in memory.
CHUNK = 100


@dataclass(frozen=True)
class Parameters:
    """Draws on the logit scale, one row for each.

    Attributes:
        level: intercept of each level: the logit of the hazard of the average scenario.
        domain, dimension: effects that sum to 0.
        groups: effects of the groups of each grouping.
        spreads: standard deviation between groups, of each grouping, and between scenarios, the last column.
    """

    level: Numbers
    domain: Numbers
    dimension: Numbers
    groups: tuple[Numbers, ...]
    spreads: Numbers

    def at(self, rows: NDArray[np.int64]) -> "Parameters":
        """Some of the draws."""
        groups = tuple(group[rows] for group in self.groups)
        return Parameters(
            self.level[rows], self.domain[rows], self.dimension[rows], groups, self.spreads[rows]
        )

    def __len__(self) -> int:
        return len(self.level)


@dataclass(frozen=True)
class Curves:
    """Hazards by level, shape (draws, levels), and the propensity by the last level, shape (draws,).

    Attributes:
        at_risk: mean over domains of the hazard of the scenarios still at risk.
        everyone: of all scenarios, had none of them ended before.
        average: of the average scenario.
        propensity: mean over domains.
    """

    at_risk: Numbers
    everyone: Numbers
    average: Numbers
    propensity: Numbers


def parameters(draws: Draws, design: HierarchicalData) -> Parameters:
    """All draws of all chains, on the logit scale."""
    cells, groups, spreads = (
        column.reshape(-1, column.shape[-1]) for column in (draws.cells, draws.groups, draws.spreads)
    )
    return Parameters(
        level=INTERCEPT + cells[:, : design.levels + 1] @ level_loadings(design.levels).T,
        domain=groups[:, design.grouping_of < 0] @ zero_sum(len(design.domains)).T,
        dimension=cells[:, design.levels + 1 :] @ zero_sum(len(design.dimensions)).T,
        groups=tuple(groups[:, design.grouping_of == place] for place in range(len(design.groupings))),
        spreads=spreads,
    )


def curves(draws: Parameters) -> Curves:
    """Hazards by level, with and without the selection of scenarios that end early."""
    spread = np.sqrt((draws.spreads**2).sum(axis=1))
    parts = [_curves(draws.at(rows), spread[rows]) for rows in _chunks(len(draws))]
    at_risk, everyone, propensity = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Curves(at_risk, everyone, 1 / (1 + np.exp(-draws.level)), propensity)


def _curves(draws: Parameters, spread: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    nodes, weights = _normal_nodes()
    # Axes: draw, domain, dimension, node, level.
    logits = _logits(draws)[:, None] + draws.domain[:, :, None, None, None]
    hazards = _expit(logits + (spread[:, None] * nodes)[:, None, None, :, None])
    survives = np.einsum("adknl,n->adl", np.cumprod(1 - hazards, axis=-1), weights) / hazards.shape[2]
    entered = np.concatenate([np.ones_like(survives[..., :1]), survives[..., :-1]], axis=-1)
    everyone = np.einsum("adknl,n->al", hazards, weights) / (hazards.shape[1] * hazards.shape[2])
    # A domain in which everybody has ended has no hazard left; it counts as 1, its limit.
    at_risk = 1 - np.divide(survives, entered, out=np.zeros_like(survives), where=entered > 0)
    return at_risk.mean(axis=1), everyone, 1 - survives[..., -1].mean(axis=1)


def group_propensities(draws: Parameters, design: HierarchicalData, place: int) -> Numbers:
    """Propensity of new scenarios in each group of a grouping, shape (draws, groups).

    A group in several domains has the mean over its scenarios' domains.
    """
    spread = np.sqrt((np.delete(draws.spreads, place, axis=1) ** 2).sum(axis=1))
    grouping = design.groupings[place]
    found = np.empty((len(draws), len(grouping.names)))
    for group in range(len(grouping.names)):
        domains, counts = np.unique(design.domain[grouping.codes == group], return_counts=True)
        shift = draws.groups[place][:, [group]] + draws.domain[:, domains]
        for rows in _chunks(len(draws)):
            found[rows, group] = _propensity(draws.at(rows), shift[rows], spread[rows]) @ (
                counts / counts.sum()
            )
    return found


def _propensity(draws: Parameters, shift: Numbers, spread: Numbers) -> Numbers:
    """Propensity at each shift of the logits, shape (draws, shifts)."""
    nodes, weights = _normal_nodes()
    shifts = shift[:, :, None] + (spread[:, None] * nodes)[:, None, :]
    # Axes: draw, shift, dimension, node, level.
    hazards = _expit(_logits(draws)[:, None] + shifts[:, :, None, :, None])
    stays = np.einsum("askn,n->as", np.prod(1 - hazards, axis=-1), weights) / hazards.shape[2]
    return np.asarray(1 - stays, dtype=np.float64)


def _logits(draws: Parameters) -> Numbers:
    """Logit of the hazard by draw, dimension, an axis for nodes, and level."""
    pressed = np.arange(draws.level.shape[1]) > 0
    return np.asarray(draws.level[:, None, None, :] + draws.dimension[:, :, None, None] * pressed)


def _normal_nodes() -> tuple[Numbers, Numbers]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes, weights / weights.sum()


def _chunks(count: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(count), max(1, -(-count // CHUNK)))


def _expit(logits: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-np.maximum(logits, -300.0))))
