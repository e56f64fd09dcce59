"""The posterior density of the hierarchical model: value, gradient and curvature.

All effects have standard normal priors once divided by their spread, and so do the spreads themselves once
divided by their scale.
"""

from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.hierarchical_design import INTERCEPT, HierarchicalData

# Newton's method: most steps, and the smallest change.
NEWTON: Final = 50
SMALL: Final = 1e-6


class NormalParameters(NamedTuple):
    """Parameters with standard normal priors.

    Attributes:
        cell: of levels and dimensions.
        group: of domains and groups.
        scenario: of scenarios.
        spread: of groupings and scenarios, divided by the scale of their prior. A negative spread with the
            signs of its effects changed is the same model, so the half-normal prior becomes normal.
    """

    cell: Numbers
    group: Numbers
    scenario: Numbers
    spread: Numbers

    def plus(self, step: float, other: "NormalParameters") -> "NormalParameters":
        """These plus a multiple of others."""
        return NormalParameters(*(one + step * two for one, two in zip(self, other, strict=True)))

    @property
    def squared(self) -> float:
        """The squared norm."""
        return sum(float((one * one).sum()) for one in self)


class Target:
    """The log density of the effects and its derivatives.

    Args:
        design: the data.
    """

    def __init__(self, design: HierarchicalData) -> None:
        self.design = design
        self._scales = design.scales
        self._cell_ends, self._scenario_ends = design.ends.sum(axis=0), design.ends.sum(axis=1)
        self._in_grouping = design.grouping_of == np.arange(len(design.groupings))[:, None]

    def start(self, spread: float) -> NormalParameters:
        """No effects, and equal spreads."""
        design = self.design
        sizes = design.by_cell.shape[1], design.by_scenario.shape[1], len(design.met)
        cell, group, scenario = (np.zeros(size) for size in sizes)
        return NormalParameters(cell, group, scenario, spread / self._scales)

    def spreads(self, at: NormalParameters) -> Numbers:
        """The spreads on the logit scale, with their signs."""
        return at.spread * self._scales

    def factors(self, at: NormalParameters) -> Numbers:
        """Factor of each column of ``by_scenario``: 1 for domains, its spread for a group."""
        return np.concatenate([self.spreads(at)[:-1], [1.0]])[self.design.grouping_of]

    def density(self, at: NormalParameters) -> float:
        """The log density, up to a constant."""
        cell, scenario = self._predictors(at)
        ended = (cell * self._cell_ends).sum() + (scenario * self._scenario_ends).sum()
        expected = (self.design.met * np.log1p(_odds(cell, scenario))).sum()
        return float(ended - expected) - at.squared / 2

    def gradient(self, at: NormalParameters) -> NormalParameters:
        """The gradient of the log density."""
        odds = _odds(*self._predictors(at))
        expected = self.design.met * (odds / (1 + odds))
        cell, scenario = self._cell_ends - expected.sum(axis=0), self._scenario_ends - expected.sum(axis=1)
        group = _product(self.design.by_scenario.T, scenario)
        spread = np.append(_product(self._in_grouping, group * at.group), (scenario * at.scenario).sum())
        return NormalParameters(
            _product(self.design.by_cell.T, cell) - at.cell,
            self.factors(at) * group - at.group,
            self.spreads(at)[-1] * scenario - at.scenario,
            self._scales * spread - at.spread,
        )

    def curvature(self, at: NormalParameters, deviation: Numbers) -> "Curvature":
        """The negative second derivatives, with those of the spreads replaced.

        Args:
            at: where.
            deviation: standard deviation of the standard spreads.
        """
        odds = _odds(*self._predictors(at))
        weight = self.design.met * (odds / (1 + odds) ** 2)
        cells, groups = self.design.by_cell, self.design.by_scenario * self.factors(at)
        rows, by_cell = weight.sum(axis=1), weight @ cells
        across = by_cell.T @ groups
        both = np.block(
            [
                [cells.T @ (weight.sum(axis=0)[:, None] * cells), across],
                [across.T, groups.T @ (rows[:, None] * groups)],
            ]
        )
        spread = self.spreads(at)[-1]
        mixed = spread * np.hstack([by_cell, rows[:, None] * groups])
        own = 1 + spread**2 * rows
        rest = np.linalg.cholesky(both + np.eye(len(both)) - mixed.T @ (mixed / own[:, None]))
        own, mixed, rest, deviation = (_rounded(part) for part in (own, mixed, rest, deviation))
        return Curvature(own, mixed, rest, deviation, cells.shape[1])

    def mode(self, at: NormalParameters, deviation: Numbers) -> tuple[NormalParameters, "Curvature"]:
        """The most probable effects given the spreads, by Newton's method, and the curvature there.

        Args:
            at: the spreads, and where to begin.
            deviation: see `curvature`.
        """
        value, size = self.density(at), 1.0
        for _ in range(NEWTON):
            curvature = self.curvature(at, deviation)
            slope = self.gradient(at)._replace(spread=np.zeros(len(at.spread)))
            step, size = curvature.root(curvature.transposed(slope)), 1.0
            while (higher := self.density(at.plus(size, step))) < value and size > SMALL:
                size /= 2
            at = at.plus(size, step)
            if higher - value < SMALL:
                break
            value = higher
        return NormalParameters(*map(_rounded, at)), self.curvature(at, deviation)

    def in_grouping(self, place: int) -> Flags | None:
        """Which effects of ``group`` belong to a grouping; None after the last one, for the scenarios."""
        return self._in_grouping[place] if place < len(self._in_grouping) else None

    def _predictors(self, at: NormalParameters) -> tuple[Numbers, Numbers]:
        """The linear predictor's part by cell and its part by scenario."""
        groups = _product(self.design.by_scenario, self.factors(at) * at.group)
        scenario = groups + self.spreads(at)[-1] * at.scenario
        return INTERCEPT + _product(self.design.by_cell, at.cell), scenario


class Curvature(NamedTuple):
    """A precision matrix whose block of the scenarios is diagonal.

    Attributes:
        own: the scenarios' diagonal.
        mixed: the block of scenarios and other effects, shape (scenarios, others).
        factor: Cholesky factor of the others' precision after the scenarios are integrated out.
        deviation: standard deviation of the spreads, which are independent of the rest.
        cells: how many of the others are parameters of cells.
    """

    own: Numbers
    mixed: Numbers
    factor: Numbers
    deviation: Numbers
    cells: int

    def root(self, standard: NormalParameters) -> NormalParameters:
        """A Z, where A A' is the inverse of the matrix: effects of this precision."""
        from scipy.linalg import solve_triangular  # scipy is slow to import

        both = np.concatenate([standard.cell, standard.group])
        others = solve_triangular(self.factor, both, lower=True, trans=1, check_finite=False)
        scenario = standard.scenario / np.sqrt(self.own) - _product(self.mixed, others) / self.own
        spread = self.deviation * standard.spread
        return NormalParameters(others[: self.cells], others[self.cells :], scenario, spread)

    def transposed(self, gradient: NormalParameters) -> NormalParameters:
        """A' G: the gradient by the standard effects."""
        from scipy.linalg import solve_triangular

        both = np.concatenate([gradient.cell, gradient.group])
        both = both - _product(self.mixed.T, gradient.scenario / self.own)
        others = solve_triangular(self.factor, both, lower=True, check_finite=False)
        scenario, spread = gradient.scenario / np.sqrt(self.own), self.deviation * gradient.spread
        return NormalParameters(others[: self.cells], others[self.cells :], scenario, spread)


def _product(matrix: Numbers, vector: Numbers) -> Numbers:
    """Their product without BLAS, whose last digits depend on the number of processors."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _rounded(values: Numbers) -> Numbers:
    """Without the last digits, which depend on the number of processors."""
    return values.astype(np.float32).astype(np.float64)


def _odds(cell: Numbers, scenario: Numbers) -> Numbers:
    # Beyond 300, the hazard is 1 in every digit, and the exponential is far from overflowing.
    return np.asarray(np.exp(np.minimum(scenario[:, None] + cell, 300.0)))
