"""Boundaries of a group-sequential test: how strict each look has to be, so that all of them keep the level.

Lan and DeMets 1983 (Biometrika 70:659): a function says how much of the level is spent by each look. The
boundary follows by recursive numerical integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull
2000, chapter 19).
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import sqrt
from typing import Final

import numpy as np

from propensitybench.metrics.arrays import Numbers

# Nodes of the quadrature: with 100 equal looks, 3 for each standard deviation of a step.
NODES: Final = 400
# The statistic is this far below its mean with a probability of 1e-16.
FARTHEST: Final = 8.2


# The part of a level that is spent by a share of the sample: rising, from 0 at 0 to the level at 1.
Spending = Callable[[float, float], float]


def power_spending(exponent: float) -> Spending:
    """Spends the level times a power of the share (Kim and DeMets 1987).

    With 1 the level is spent evenly over the sample, which answers soonest. With 3 most of it is left for the
    last looks, as in O'Brien and Fleming's design: little power is lost to the looks.
    """
    return lambda share, level: level * share**exponent


def look_levels(shares: Sequence[float], level: float, spending: Spending) -> tuple[float, ...]:
    """The one-sided level of each look.

    The looks are taken to have independent increments, in proportion to the shares. Where later tasks repeat
    the scenarios of earlier ones, the looks are more alike than that, which can only make a crossing rarer
    (Slepian 1962).

    Args:
        shares: of the sample at each look, increasing, the last one 1.
        level: of all looks together, one-sided.
        spending: how much of it is spent by each look.

    Returns:
        For each look, the probability beyond its critical value: an effect is shown by the first look whose
        one-sided limit at that probability shows it.
    """
    from scipy.optimize import brentq  # scipy is slow to import
    from scipy.special import ndtr

    walk = _Walk(shares)
    levels, spent = [], 0.0
    for share in shares:
        whole = spending(share, level)
        step = whole - spent
        critical = brentq(lambda z, step=step: walk.crossing(z) - step, -FARTHEST, FARTHEST + 1, xtol=1e-10)
        walk.stay_below(float(critical))
        levels.append(float(ndtr(-critical)))
        spent = whole
    return tuple(levels)


def crossing_probability(shares: Sequence[float], critical: Sequence[float]) -> float:
    """The probability of a Z statistic above its critical value at any look, with independent increments."""
    walk = _Walk(shares)
    total = 0.0
    for z in critical:
        total += walk.crossing(z)
        walk.stay_below(z)
    return total


@cache
def _quadrature() -> tuple[Numbers, Numbers]:
    """Nodes and weights of Gauss and Legendre on -1..1."""
    places, weights = np.polynomial.legendre.leggauss(NODES)
    return places, weights


class _Walk:
    """Z statistics at the looks, as far as they have stayed below the boundary."""

    def __init__(self, shares: Sequence[float]) -> None:
        self._shares = shares
        self._look = 0
        # Nodes and masses of the statistic at the last look; before the first, all of it is at 0.
        self._nodes: Numbers = np.zeros(1)
        self._masses: Numbers = np.ones(1)

    def crossing(self, critical: float) -> float:
        """The probability of being above a critical value at the next look and below the boundary before."""
        from scipy.special import ndtr

        scale, drift = self._step()
        return float(self._masses @ ndtr((self._nodes * drift - critical) * scale))

    def stay_below(self, critical: float) -> None:
        """Goes to the next look, below a critical value."""
        scale, drift = self._step()
        places, weights = _quadrature()
        half = (critical + FARTHEST) / 2
        nodes = -FARTHEST + half * (places + 1)
        away = (nodes[:, None] - self._nodes * drift) * scale
        density = np.exp(-(away**2) / 2) @ self._masses * scale / sqrt(2 * np.pi)
        self._nodes, self._masses = nodes, half * weights * density
        self._look += 1

    def _step(self) -> tuple[float, float]:
        """The next statistic is the last one times the second number, plus noise with precision the first."""
        now = self._shares[self._look]
        before = self._shares[self._look - 1] if self._look else 0.0
        return sqrt(now / (now - before)), sqrt(before / now)
