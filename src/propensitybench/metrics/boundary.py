"""Boundaries of a group-sequential test: how strict each look has to be, so that all of them keep the level.

Lan and DeMets 1983 (Biometrika 70:659): a function says how much of the level is spent by each look. The
boundary follows by recursive numerical integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull
2000, chapter 19).
"""

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Final

import numpy as np

from propensitybench.errors import BadInput
from propensitybench.metrics.arrays import Numbers

# Nodes of the quadrature: levels are right to nine digits, with 100 looks and `MAX_CORRELATION` too.
NODES: Final = 200
# Estimates that are more alike than that are taken to be so alike: the step between them has to be wide
# enough for the nodes.
MAX_CORRELATION: Final = 0.99
# The statistic is this far below its mean with a probability of 1e-16.
FARTHEST: Final = 8.2
# The least that a look can spend; no critical value within reach belongs to much less.
MIN_SPENT: Final = 1e-15


# The part of a level that is spent by a share of the sample: rising, from 0 at 0 to the level at 1.
Spending = Callable[[float, float], float]


def power_spending(exponent: float) -> Spending:
    """Spends the level times a power of the share (Kim and DeMets 1987).

    With 1 the level is spent evenly over the sample, which answers soonest; with 3 most of it is left for the
    last looks, as in O'Brien and Fleming's design, which costs least power.
    """
    return lambda share, level: level * share**exponent


class Boundary:
    """The one-sided levels of looks, one after the other.

    An effect is shown by the first look whose one-sided limit at its level shows it. Looks are as alike as
    their standard errors say: the correlation of an estimate with an earlier one is its error over the
    earlier error (Lan and DeMets 1989, Biometrics 45:1017: calendar time for what is spent, information for
    the looks).

    Args:
        level: of all looks together, one-sided.
        spending: how much of it is spent by each look.
    """

    def __init__(self, level: float, spending: Spending) -> None:
        self._level, self._spending = level, spending
        self._walk = Walk()
        self._share = self._spent = self._error = 0.0

    def next(self, share: float, error: float) -> float:
        """The level of the next look.

        Args:
            share: of the sample at this look, above that of the last one; 1 spends what is left.
            error: standard error of the estimate at this look; 0 is unknown: then the looks are taken to be
                as alike as the shares say.

        Returns:
            The probability beyond the critical value.

        Raises:
            BadInput: there is nothing to spend at this look, as looks from somebody else's file may have it.
        """
        from scipy.optimize import brentq  # scipy is slow to import
        from scipy.special import ndtr

        whole = self._spending(share, self._level)
        step = whole - self._spent
        if step < MIN_SPENT:
            raise BadInput(
                f"gate: a look at {100 * share:.3g} % of the tasks may be wrong with a probability of "
                f"{step:.1g}, too little to compute with; play the candidate again in a new file"
            )
        alike = self._share / share
        if self._error > 0 and error > 0:
            alike = min(MAX_CORRELATION, (error / self._error) ** 2)
        critical = float(
            brentq(lambda z: self._walk.crossing(z, alike) - step, -FARTHEST, FARTHEST + 1, xtol=1e-10)
        )
        self._walk.stay_below(critical, alike)
        self._share, self._spent, self._error = share, whole, error
        return float(ndtr(-critical))


@cache
def _quadrature() -> tuple[Numbers, Numbers]:
    """Nodes and weights of Gauss and Legendre on -1..1."""
    places, weights = np.polynomial.legendre.leggauss(NODES)
    return places, weights


class Walk:
    """Z statistics at the looks, as far as they have stayed below the boundary."""

    def __init__(self) -> None:
        # Nodes and masses of the statistic at the last look; before the first, all of it is at 0.
        self._nodes: Numbers = np.zeros(1)
        self._masses: Numbers = np.ones(1)

    def crossing(self, critical: float, alike: float) -> float:
        """The probability of being above a critical value at the next look and below the boundary before.

        Args:
            critical: the critical value.
            alike: squared correlation of the next statistic with the last one; 0 at the first look.
        """
        from scipy.special import ndtr

        return float(self._masses @ ndtr((self._nodes * sqrt(alike) - critical) / sqrt(1 - alike)))

    def stay_below(self, critical: float, alike: float) -> None:
        """Goes to the next look, below a critical value; see `crossing`."""
        scale = 1 / sqrt(1 - alike)
        places, weights = _quadrature()
        half = (critical + FARTHEST) / 2
        nodes = -FARTHEST + half * (places + 1)
        away = (nodes[:, None] - self._nodes * sqrt(alike)) * scale
        density = np.exp(-(away**2) / 2) @ self._masses * scale / sqrt(2 * np.pi)
        self._nodes, self._masses = nodes, half * weights * density
