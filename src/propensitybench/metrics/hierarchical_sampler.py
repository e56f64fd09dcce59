"""Draws from the posterior of the hierarchical model: Hamiltonian Monte Carlo scaled by a Laplace approximation.

All effects have standard normal priors once divided by their spread, so with the spreads given the posterior is
close to normal. Its curvature at the mode scales the momentum (Neal 2011, section 4.1), and a few leapfrog
steps then give a nearly independent draw of all effects at once. The spreads are drawn given the effects,
and again given the effects divided by the spread (interweaving, Yu and Meng 2011): the first moves well where
the groups have much data, the second where they have little. Every step leaves the exact posterior unchanged,
the approximation affects only the speed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.hierarchical_design import INTERCEPT, Design

CHAINS: Final = 4
# Two rounds: the first finds the spreads, the second the step size at their scale.
WARM_UP: Final = 150
ROUND: Final = 50
# A quarter of a period of a standard normal target, at which successive draws are independent.
TRAJECTORY: Final = 1.6
MOST_STEPS: Final = 25
ACCEPTED: Final = 0.8
# An energy error this large means that the leapfrog integration has failed.
DIVERGED: Final = 1000.0
FIRST_SPREAD: Final = 0.7
Progress = Callable[[float], None]


class Effects(NamedTuple):
    """Parameters with standard normal priors: of cells, of domains and groups, and of scenarios."""

    cell: Numbers
    group: Numbers
    scenario: Numbers

    def plus(self, step: float, other: "Effects") -> "Effects":
        """These plus a multiple of others."""
        return Effects(*(one + step * two for one, two in zip(self, other, strict=True)))

    @property
    def squared(self) -> float:
        """The squared norm."""
        return sum(float((one * one).sum()) for one in self)


@dataclass(frozen=True)
class Posterior:
    """The log density of the effects and its derivatives, given the spreads.

    Args:
        design: the data.
    """

    design: Design

    def __post_init__(self) -> None:
        ends = self.design.ends
        object.__setattr__(self, "_ends", (ends.sum(axis=0), ends.sum(axis=1)))

    def scale(self, spreads: Numbers) -> Numbers:
        """Factor of each column of ``by_scenario``: 1 for domains, its spread for a group."""
        return np.concatenate([spreads[:-1], [1.0]])[self.design.grouping_of]

    def predictors(self, at: Effects, spreads: Numbers) -> tuple[Numbers, Numbers]:
        """The linear predictor's part by cell and its part by scenario."""
        groups = _product(self.design.by_scenario, self.scale(spreads) * at.group)
        return INTERCEPT + _product(self.design.by_cell, at.cell), groups + spreads[-1] * at.scenario

    def likelihood(self, at: Effects, spreads: Numbers) -> float:
        """The log likelihood."""
        cell, scenario = self.predictors(at, spreads)
        odds = _odds(cell, scenario)
        ends = self._ends  # type: ignore[attr-defined]
        ended = (cell * ends[0]).sum() + (scenario * ends[1]).sum()
        return float(ended - (self.design.met * np.log1p(odds)).sum())

    def density(self, at: Effects, spreads: Numbers) -> float:
        """The log density of the effects, up to a constant."""
        return self.likelihood(at, spreads) - at.squared / 2

    def gradient(self, at: Effects, spreads: Numbers) -> Effects:
        """The gradient of the log density."""
        odds = _odds(*self.predictors(at, spreads))
        expected = self.design.met * (odds / (1 + odds))
        ends = self._ends  # type: ignore[attr-defined]
        cell, scenario = ends[0] - expected.sum(axis=0), ends[1] - expected.sum(axis=1)
        return Effects(
            _product(self.design.by_cell.T, cell) - at.cell,
            self.scale(spreads) * _product(self.design.by_scenario.T, scenario) - at.group,
            spreads[-1] * scenario - at.scenario,
        )

    def curvature(self, at: Effects, spreads: Numbers) -> "Curvature":
        """The negative second derivatives of the log density."""
        odds = _odds(*self.predictors(at, spreads))
        weight = self.design.met * (odds / (1 + odds) ** 2)
        cells, groups = self.design.by_cell, self.design.by_scenario * self.scale(spreads)
        rows = weight.sum(axis=1)
        by_cell = weight @ cells
        across = by_cell.T @ groups
        both = np.block(
            [
                [cells.T @ (weight.sum(axis=0)[:, None] * cells), across],
                [across.T, groups.T @ (rows[:, None] * groups)],
            ]
        )
        spread = spreads[-1]
        mixed = spread * np.hstack([by_cell, rows[:, None] * groups])
        own = 1 + spread**2 * rows
        rest = both + np.eye(len(both)) - mixed.T @ (mixed / own[:, None])
        factor = np.linalg.cholesky(rest)
        return Curvature(_rounded(own), _rounded(mixed), _rounded(factor), cells.shape[1])

    def mode(self, spreads: Numbers) -> tuple[Effects, "Curvature"]:
        """The most probable effects by Newton's method, and the curvature there."""
        design = self.design
        at = Effects(
            np.zeros(design.by_cell.shape[1]), np.zeros(design.by_scenario.shape[1]), np.zeros(len(design.met))
        )
        value = self.density(at, spreads)
        for _ in range(50):
            curvature = self.curvature(at, spreads)
            step = curvature.root(curvature.transposed(self.gradient(at, spreads)))
            size = 1.0
            while (higher := self.density(at.plus(size, step), spreads)) < value and size > 1e-6:
                size /= 2
            at = at.plus(size, step)
            if higher - value < 1e-6:
                break
            value = higher
        return Effects(*map(_rounded, at)), self.curvature(at, spreads)


class Curvature(NamedTuple):
    """A precision matrix whose block of the scenarios is diagonal.

    Attributes:
        own: the scenarios' diagonal.
        mixed: the block of scenarios and other effects, shape (scenarios, others).
        factor: Cholesky factor of the others' precision after the scenarios are integrated out.
        cells: how many of the others are parameters of cells.
    """

    own: Numbers
    mixed: Numbers
    factor: Numbers
    cells: int

    def root(self, standard: Effects) -> Effects:
        """A Z, where A A' is the inverse of the matrix: effects of this precision from standard normal ones."""
        from scipy.linalg import solve_triangular  # scipy is slow to import

        others = solve_triangular(
            self.factor, np.concatenate(standard[:2]), lower=True, trans=1, check_finite=False
        )
        scenario = standard.scenario / np.sqrt(self.own) - _product(self.mixed, others) / self.own
        return Effects(others[: self.cells], others[self.cells :], scenario)

    def transposed(self, gradient: Effects) -> Effects:
        """A' G: the gradient by the standard effects."""
        from scipy.linalg import solve_triangular

        others = np.concatenate(gradient[:2]) - _product(self.mixed.T, gradient.scenario / self.own)
        others = solve_triangular(self.factor, others, lower=True, check_finite=False)
        return Effects(others[: self.cells], others[self.cells :], gradient.scenario / np.sqrt(self.own))


class Draws(NamedTuple):
    """Draws of all chains, on the logit scale; shapes (chains, draws, ...).

    Attributes:
        cells: standard effects of levels and dimensions.
        groups: effects of domains and groups: standard for domains, on the logit scale for groups.
        scenarios: effects of scenarios on the logit scale.
        spreads: standard deviations between the groups of each grouping, and between scenarios.
        divergences: number of failed integrations after the warm-up.
    """

    cells: Numbers
    groups: Numbers
    scenarios: Numbers
    spreads: Numbers
    divergences: int


class Sampler:
    """Chains from several starting points, which can be extended.

    The result depends on the seed only and not on the number of processors.
    """

    def __init__(self, design: Design, seed: int, chains: int = CHAINS) -> None:
        self.posterior = Posterior(design)
        spreads = np.full(len(design.scales), FIRST_SPREAD)
        mode = self.posterior.mode(spreads)
        generators = np.random.default_rng(seed).spawn(chains)
        self.chains = [_Chain(self.posterior, mode, spreads, rng) for rng in generators]

    def run(self, draws: int, progress: Progress | None = None, *, warm_up: int = 0) -> None:
        """Adds draws to every chain, after two rounds of warm-up of the given length."""
        total = len(self.chains) * (2 * warm_up + draws)
        done = 0
        with ThreadPoolExecutor(len(self.chains)) as pool:
            for count, phase in ((warm_up, _Chain.tune), (warm_up, _Chain.tune), (draws, _Chain.extend)):
                for start in range(0, count, ROUND):
                    size = min(ROUND, count - start)
                    list(pool.map(phase, self.chains, [size] * len(self.chains)))
                    done += size * len(self.chains)
                    if progress is not None:
                        progress(done / total)
                if phase is _Chain.tune and count:
                    self._rescale()

    def _rescale(self) -> None:
        """Scales the momentum anew, at the spreads that the warm-up has found."""
        spreads = np.exp(np.mean([chain.typical() for chain in self.chains], axis=0))
        _, curvature = self.posterior.mode(spreads)
        for chain in self.chains:
            chain.rescale(curvature)

    def draws(self) -> Draws:
        """All draws after the warm-up."""
        columns = zip(*(chain.kept() for chain in self.chains), strict=True)
        return Draws(*(np.stack(column) for column in columns), sum(one.divergences for one in self.chains))


class _Chain:
    """One chain."""

    def __init__(
        self,
        posterior: Posterior,
        mode: tuple[Effects, Curvature],
        spreads: Numbers,
        rng: np.random.Generator,
    ) -> None:
        self._posterior, self._rng = posterior, rng
        at, self._curvature = mode
        self.at = at.plus(1.0, self._curvature.root(self._noise(at)))
        self.spreads = spreads * np.exp(rng.normal(0, 0.3, len(spreads)))
        self.divergences = 0
        self._step = _StepSize()
        self._seen: list[Numbers] = []
        self._kept: list[tuple[Numbers, ...]] = []

    def tune(self, count: int) -> None:
        """Moves and adapts the step size."""
        for _ in range(count):
            accepted, _ = self._move()
            self._step.learn(accepted)
            self._seen.append(np.log(self.spreads))

    def extend(self, count: int) -> None:
        """Moves and keeps the draws."""
        self._step.fix()
        scale = self._posterior.scale
        for _ in range(count):
            _, diverged = self._move()
            self.divergences += diverged
            effects = self.at.group * scale(self.spreads), self.spreads[-1] * self.at.scenario
            self._kept.append((self.at.cell, effects[0], effects[1].astype(np.float32), self.spreads.copy()))

    def typical(self) -> Numbers:
        """Mean logarithm of the spreads in the second half of the warm-up so far."""
        return np.asarray(np.mean(self._seen[len(self._seen) // 2 :], axis=0))

    def rescale(self, curvature: Curvature) -> None:
        """Takes another scale of the momentum and adapts the step size anew."""
        self._curvature, self._seen = curvature, []
        self._step = _StepSize(self._step.size)

    def kept(self) -> tuple[Numbers, ...]:
        """The draws kept, by column."""
        return tuple(np.stack(column) for column in zip(*self._kept, strict=True))

    def _move(self) -> tuple[float, bool]:
        """One draw of everything: the probability of accepting the effects, and whether they diverged."""
        result = self._move_effects()
        for place in range(len(self.spreads)):
            self._move_spread(place)
            self._move_spread_of_effects(place)
        return result

    def _move_effects(self) -> tuple[float, bool]:
        posterior, spreads, curvature = self._posterior, self.spreads, self._curvature
        step = self._step.size
        steps = min(MOST_STEPS, ceil(TRAJECTORY * self._rng.uniform(0.6, 1.2) / step))
        momentum, at = self._noise(self.at), self.at
        before = posterior.density(at, spreads) - momentum.squared / 2
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(steps + 1):
                force = curvature.transposed(posterior.gradient(at, spreads))
                momentum = momentum.plus(step if 0 < number < steps else step / 2, force)
                if number < steps:
                    at = at.plus(step, curvature.root(momentum))
            change = posterior.density(at, spreads) - momentum.squared / 2 - before
        if not change > -DIVERGED:
            return 0.0, True
        accepted = exp(min(0.0, change))
        if self._rng.random() < accepted:
            self.at = at
        return accepted, False

    def _move_spread(self, place: int) -> None:
        """Draws a spread given the standard effects: the hazards change with it."""
        scale = float(self._posterior.design.scales[place])

        def density(value: float) -> float:
            spreads = self.spreads.copy()
            spreads[place] = exp(value)
            return self._posterior.likelihood(self.at, spreads) + _prior(value, scale)

        self.spreads[place] = exp(_slice(density, log(self.spreads[place]), 1.0, self._rng))

    def _move_spread_of_effects(self, place: int) -> None:
        """Draws a spread given the effects themselves: the hazards stay, the standard effects change."""
        design = self._posterior.design
        is_scenario = place == len(self.spreads) - 1
        ours = slice(None) if is_scenario else np.flatnonzero(design.grouping_of == place)
        standard = self.at.scenario if is_scenario else self.at.group[ours]
        old, scale = float(self.spreads[place]), float(design.scales[place])
        squares, count = float((standard * standard).sum()) * old**2, len(standard)

        def density(value: float) -> float:
            return -count * value - squares / 2 * exp(-2 * value) + _prior(value, scale)

        value = log(old)
        for _ in range(3):
            value = _slice(density, value, 1.0, self._rng)
        self.spreads[place] = exp(value)
        factor = old / self.spreads[place]
        if is_scenario:
            self.at = self.at._replace(scenario=standard * factor)
        else:
            group = self.at.group.copy()
            group[ours] = standard * factor
            self.at = self.at._replace(group=group)

    def _noise(self, like: Effects) -> Effects:
        return Effects(*(self._rng.standard_normal(len(one)) for one in like))


class _StepSize:
    """Dual averaging of the step size towards an acceptance rate (Hoffman and Gelman 2014, section 3.2)."""

    def __init__(self, size: float = 0.3) -> None:
        self.size = size
        self._centre, self._error, self._mean, self._count = log(2 * size), 0.0, 0.0, 0

    def learn(self, accepted: float) -> None:
        self._count += 1
        share = 1 / (self._count + 10)
        self._error += share * (ACCEPTED - accepted - self._error)
        value = self._centre - sqrt(self._count) / 0.05 * self._error
        self._mean += self._count**-0.75 * (value - self._mean)
        self.size = min(1.5, exp(value))

    def fix(self) -> None:
        """Uses the mean of what was learned."""
        if self._count:
            self.size, self._count = min(1.5, exp(self._mean)), 0


def _product(matrix: Numbers, vector: Numbers) -> Numbers:
    """Their product without BLAS, whose threads change the last digits with the number of processors."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _rounded(values: Numbers) -> Numbers:
    """Without the last digits, which depend on the number of processors."""
    return values.astype(np.float32).astype(np.float64)


def _odds(cell: Numbers, scenario: Numbers) -> Numbers:
    # Beyond 300, the hazard is 1 in every digit, and the exponential is far from overflowing.
    return np.asarray(np.exp(np.minimum(scenario[:, None] + cell, 300.0)))


def _prior(value: float, scale: float) -> float:
    """Log density of the logarithm of a half-normal spread."""
    return value - exp(2 * min(value, 50.0)) / (2 * scale**2)


def _slice(
    density: Callable[[float], float], value: float, width: float, rng: np.random.Generator
) -> float:
    """A draw by slice sampling without stepping out (Neal 2003, section 4)."""
    floor = density(value) + log(max(rng.random(), 1e-300))
    low = value - width * rng.random()
    high = low + width
    while True:
        new = low + (high - low) * rng.random()
        found = density(new)
        if found >= floor and found > -inf:
            return new
        if new < value:
            low = new
        else:
            high = new
