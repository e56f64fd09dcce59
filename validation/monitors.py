"""How often the numbers of monitors are right, where what they know is planted: docs/monitoring.md.

Whether an episode crosses depends on its scenario; crossing ones are shorter.
"""

from functools import cache, partial
from typing import Final, Literal

import numpy as np

from propensitybench.metrics.alarms import MonitorRate
from propensitybench.metrics.arrays import Numbers
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.monitored import MonitorNumbers, monitor_numbers
from propensitybench.metrics.watched import WatchedEpisode
from validation.cells import Cell, Draw, Result, Sheet, covers

Kind = Literal["knows", "guesses", "sees only the act", "looks at the length", "knows, a third missing"]
KINDS: Final[tuple[Kind, ...]] = (
    "knows",
    "guesses",
    "sees only the act",
    "looks at the length",
    "knows, a third missing",
)
SCENARIOS: Final = 150
EPISODES: Final = 3
"""Of a scenario."""
DOMAINS: Final = 4
DRAWS: Final = 400
LARGE: Final = 4000
"""Scenarios of the population in which the truth is read."""
MISSING: Final = 1 / 3


def world(kind: Kind, scenarios: int, rng: np.random.Generator) -> list[WatchedEpisode]:
    """Episodes and the scores of a monitor."""
    found = []
    for scenario in range(scenarios):
        strength = rng.normal()
        for number in range(EPISODES):
            crossed = bool(strength + rng.normal() > 0.5)
            turns = int(rng.integers(3, 12) if crossed else rng.integers(10, 24))
            scores = _scores(kind, turns, rng, crossed=crossed)
            name = f"{scenario}.{number}"
            found.append(WatchedEpisode(name, str(scenario), str(scenario % DOMAINS), crossed, scores))
    return found


def _scores(kind: Kind, turns: int, rng: np.random.Generator, *, crossed: bool) -> Numbers:
    noise = rng.normal(size=turns)
    if kind == "looks at the length":
        return np.arange(1, turns + 1) / 24
    if kind == "sees only the act" and crossed:
        noise[-1] += 3
    if kind.startswith("knows") and crossed:
        # The closer to the act, the surer.
        noise += 3 * np.exp(-np.arange(turns)[::-1] / 2)
    scores = 1 / (1 + np.exp(-noise))
    if kind == "knows, a third missing":
        scores[rng.random(turns) < MISSING] = np.nan
    return np.asarray(scores)


def numbers_of(found: MonitorNumbers) -> dict[str, MonitorRate]:
    """The numbers that are checked."""
    return {
        "AUC": found.auc,
        "caught at 5 %": found.episodes[1].caught,
        "acts at 1 %": found.steps[0].caught,
        "1 turn ahead": found.lead[1].crossing,
        "1 turn ahead, matched": found.lead[1].matched,
        "audit": found.audit,
    }


@cache
def truth(kind: Kind) -> dict[str, float]:
    """The numbers of a large population in which no score is missing."""
    complete: Kind = "knows" if kind.startswith("knows") else kind
    found = monitor_numbers(world(complete, LARGE, np.random.default_rng(7)), draws=1)
    return {name: rate.value for name, rate in numbers_of(found).items() if rate.value is not None}


def watched(kind: Kind, rng: np.random.Generator) -> Result:
    """A monitor of a kind: whether each interval holds the truth."""
    true = truth(kind)
    found = numbers_of(monitor_numbers(world(kind, SCENARIOS, rng), DRAWS))
    return {name: _covers(rate.ci95, true[name]) for name, rate in found.items()}


def _covers(found: Interval | None, true: float) -> Draw:
    """As `covers`, with room for rounding at 0 and 1."""
    return covers(None if found is None else Interval(found.low - 1e-9, found.high + 1e-9), true)


SHEETS: Final = (Sheet("kinds", ("monitor",), [Cell((kind,), partial(watched, kind)) for kind in KINDS]),)
