"""Draws from the posterior of the hierarchical model: Hamiltonian Monte Carlo, scaled by Laplace's method.

With the spreads given, the posterior of the effects is close to normal. Its curvature at the mode scales the
momentum (Neal 2011, section 4.1), so that a few leapfrog steps give a nearly independent draw. The spreads
move along with the effects, and are drawn once more given the effects on the logit scale (interweaving, Yu
and Meng 2011): the first moves well where the groups have little data, the second where they have much. Every
step leaves the exact posterior unchanged; the approximation affects only the speed.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import ceil, exp, inf, log
from typing import Final, NamedTuple

import numpy as np

from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.hierarchical_design import HierarchicalData
from propensitybench.metrics.hierarchical_target import SMALL, Curvature, NormalParameters, Target

CHAINS: Final = 4
# Two rounds: the first finds the spreads, the second the step size at their scale.
WARM_UP: Final = 150
ROUND: Final = 50
# A quarter of a period of a standard normal target, at which successive draws are independent.
TRAJECTORY: Final = 1.6
MAX_STEPS: Final = 25
# Acceptance rate that the step size aims at.
ACCEPTED: Final = 0.8
# An energy error this large means that the leapfrog integration has failed.
DIVERGED: Final = 1000.0
FIRST_SPREAD: Final = 0.7
FIRST_STEP: Final = 0.3
# Beyond 2, leapfrog steps of a standard normal target are unstable.
MAX_STEP: Final = 1.5
Progress = Callable[[float], None]


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

    def __init__(
        self, design: HierarchicalData, seed: int, chains: int = CHAINS, accepted: float = ACCEPTED
    ) -> None:
        target = Target(design)
        start = target.start(FIRST_SPREAD)
        mode, curvature = target.mode(start, np.full(len(start.spread), 0.3))
        self._target = target
        self._chains = [
            _Chain(target, mode, curvature, rng, accepted)
            for rng in np.random.default_rng(seed).spawn(chains)
        ]

    def run(self, draws: int, progress: Progress | None = None, *, warm_up: int = 0) -> None:
        """Adds draws to every chain, after two rounds of warm-up of the given length."""
        total, done = 2 * warm_up + draws, 0
        with ThreadPoolExecutor(len(self._chains)) as pool:
            for count, phase in ((warm_up, _Chain.tune), (warm_up, _Chain.tune), (draws, _Chain.extend)):
                for start in range(0, count, ROUND):
                    size = min(ROUND, count - start)
                    list(pool.map(phase, self._chains, [size] * len(self._chains)))
                    done += size
                    if progress is not None:
                        progress(done / total)
                if phase is _Chain.tune and count:
                    self._adapt()

    def _adapt(self) -> None:
        """Scales the moves by what the chains have seen since the last time."""
        seen = np.concatenate([chain.recent() for chain in self._chains])
        steps, spreads = seen[:, 0], seen[:, 1:]
        deviation = spreads.std(axis=0) + SMALL
        at = self._chains[0].at._replace(spread=np.sqrt((spreads**2).mean(axis=0)))
        _, curvature = self._target.mode(at, deviation)
        for chain in self._chains:
            chain.adapt(curvature, exp(float(np.log(steps).mean())))

    def draws(self) -> Draws:
        """All draws after the warm-up."""
        columns = zip(*(chain.kept() for chain in self._chains), strict=True)
        cells, groups, scenarios, spreads = (np.stack(column) for column in columns)
        divergences = sum(chain.divergences for chain in self._chains)
        return Draws(cells, groups, scenarios, spreads, divergences)


class _Chain:
    """One chain."""

    def __init__(
        self,
        target: Target,
        mode: NormalParameters,
        curvature: Curvature,
        rng: np.random.Generator,
        accepted: float,
    ) -> None:
        self._aim = accepted
        self._target, self._curvature, self._rng = target, curvature, rng
        self.at = _positive(mode.plus(1.0, curvature.root(self._noise(mode))), target)
        self.divergences = 0
        self._step = FIRST_STEP
        self._seen: list[Numbers] = []
        self._kept: list[tuple[Numbers, ...]] = []

    def tune(self, count: int) -> None:
        """Moves and adapts the step size towards the acceptance rate (Robbins and Monro 1951)."""
        for _ in range(count):
            accepted, _ = self._move()
            self._seen.append(np.array([self._step, *self.at.spread]))
            self._step *= exp((accepted - self._aim) / (len(self._seen) + 5) ** 0.6)
            self._step = min(self._step, MAX_STEP)

    def extend(self, count: int) -> None:
        """Moves and keeps the draws."""
        for _ in range(count):
            _, diverged = self._move()
            self.divergences += diverged
            spreads = self._target.spreads(self.at)
            groups = self.at.group * self._target.factors(self.at)
            scenarios = (spreads[-1] * self.at.scenario).astype(np.float32)
            self._kept.append((self.at.cell, groups, scenarios, spreads))

    def recent(self) -> Numbers:
        """Step size and spreads in the second half of the warm-up since the last change of scale."""
        return np.array(self._seen[len(self._seen) // 2 :])

    def adapt(self, curvature: Curvature, step: float) -> None:
        """Sets the scale of the momentum and the step size."""
        self._curvature, self._step, self._seen = curvature, step, []

    def kept(self) -> tuple[Numbers, ...]:
        """The draws kept, by column."""
        return tuple(np.stack(column) for column in zip(*self._kept, strict=True))

    def _move(self) -> tuple[float, bool]:
        """One draw of everything: the probability of accepting the trajectory, and whether it diverged."""
        result = self._move_all()
        for place in range(len(self.at.spread)):
            self._move_spread(place)
        return result

    def _move_all(self) -> tuple[float, bool]:
        target, curvature, step = self._target, self._curvature, self._step
        steps = min(MAX_STEPS, ceil(TRAJECTORY * self._rng.uniform(0.6, 1.2) / step))
        momentum, at = self._noise(self.at), self.at
        before = target.density(at) - momentum.squared / 2
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(steps + 1):
                force = curvature.transposed(target.gradient(at))
                momentum = momentum.plus(step if 0 < number < steps else step / 2, force)
                if number < steps:
                    at = at.plus(step, curvature.root(momentum))
            change = target.density(at) - momentum.squared / 2 - before
        if not change > -DIVERGED:
            return 0.0, True
        accepted = exp(min(0.0, change))
        if self._rng.random() < accepted:
            self.at = _positive(at, target)
        return accepted, False

    def _move_spread(self, place: int) -> None:
        """Draws a spread given the effects on the logit scale: hazards stay, standard effects change."""
        ours = self._target.in_grouping(place)
        standard = self.at.scenario if ours is None else self.at.group[ours]
        old, count = float(self.at.spread[place]), len(standard)
        squares = float((standard * standard).sum()) * old**2

        def density(value: float) -> float:
            # In the logarithm of the spread, hence with its Jacobian.
            size = exp(min(value, 50.0))
            return (1 - count) * value - squares / (2 * size**2) - size**2 / 2

        value = log(old)
        for _ in range(3):
            value = _slice(density, value, 1.0, self._rng)
        spread = self.at.spread.copy()
        spread[place] = exp(value)
        self.at = _multiplied(self.at._replace(spread=spread), ours, old / spread[place])

    def _noise(self, like: NormalParameters) -> NormalParameters:
        return NormalParameters(*(self._rng.standard_normal(len(one)) for one in like))


def _positive(at: NormalParameters, target: Target) -> NormalParameters:
    """The same model with positive spreads."""
    for place in np.flatnonzero(at.spread < 0).tolist():
        at = _multiplied(at, target.in_grouping(place), -1.0)
    return at._replace(spread=np.abs(at.spread))


def _multiplied(at: NormalParameters, ours: Flags | None, factor: float) -> NormalParameters:
    """With the standard effects of a grouping multiplied, or of the scenarios if it is None."""
    if ours is None:
        return at._replace(scenario=at.scenario * factor)
    return at._replace(group=np.where(ours, factor, 1.0) * at.group)


def _slice(density: Callable[[float], float], value: float, width: float, rng: np.random.Generator) -> float:
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
