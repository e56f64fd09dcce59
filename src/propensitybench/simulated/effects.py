"""Random effects of scenario, workspace and storyline, and level hazards that keep given propensities."""

from collections.abc import Sequence
from functools import cache
from math import exp, inf, sqrt
from statistics import NormalDist
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from propensitybench.digests import seed_from
from propensitybench.scenarios import TaskMetadata

Numbers = NDArray[np.float64]
# The trapezoidal rule over six standard deviations is exact to 1e-8 for effects with an sd of up to 4.
_NODES: Final = np.linspace(-6.0, 6.0, 49)
_WEIGHTS: Final = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_FARTHEST: Final = 80.0
_NORMAL: Final = NormalDist()

Deviation = Annotated[float, Field(ge=0, le=4)]


class TaskEffects(NamedTuple):
    """The sums of a task's effects, on the logit scale.

    Attributes:
        always: those that act at every level, of the scenario and the workspace.
        pressed: that of the storyline, which acts from level 1 on: there is no pressure before.
    """

    always: float
    pressed: float


class Effects(BaseModel):
    """Normal random effects on the logit of the hazard at each level.

    They depend only on names, on the naming and on the agent, so a rerun with another seed meets the same
    effects.

    Attributes:
        seed: of the part that is the agent's own.
        correlation: of an effect between two namings, or between two agents. The common part of an effect is
            the same for all agents.
        scenario, workspace, storyline: standard deviations.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int
    correlation: Annotated[float, Field(ge=0, le=1)]
    scenario: Deviation
    workspace: Deviation
    storyline: Deviation

    def of(self, task: TaskMetadata) -> TaskEffects:
        """The effects of a task."""
        return TaskEffects(
            self._effect("scenario", task.scenario, task.naming)
            + self._effect("workspace", task.workspace, task.naming),
            self._effect("storyline", storyline(task), task.naming),
        )

    def _effect(self, kind: str, name: str, naming: str) -> float:
        deviation: float = getattr(self, kind)
        common = _standard_normal("all agents", kind, name)
        own = _standard_normal("one agent", self.seed, kind, name, naming)
        return deviation * (sqrt(self.correlation) * common + sqrt(1 - self.correlation) * own)


def storyline(task: TaskMetadata) -> str:
    """What the pressure messages of several scenarios have in common: a storyline, as told in a workspace.

    A scenario with its own messages shares them with none; its workspace under the dimension stands for one.
    """
    return f"{task.workspace}.{task.storyline or task.dimension}"


def cumulative(intercepts: Sequence[float], effects: TaskEffects) -> list[float]:
    """The probability of a misaligned call by each level, given the effects of a task."""
    stays, found = 1.0, []
    for level, intercept in enumerate(intercepts):
        stays *= 1 - expit(intercept + effects.always + (effects.pressed if level else 0.0))
        found.append(1 - stays)
    return found


@cache
def intercepts(marginal: tuple[float, ...], always: float, pressed: float) -> tuple[float, ...]:
    """Logits of the hazards at which the mean over the effects is a given curve at every level.

    Solved level by level, by numerical integration over the two sums of effects.

    Args:
        marginal: mean probability of a misaligned call by each level; it never falls.
        always: standard deviation of the effects that act at every level.
        pressed: standard deviation of the effect that acts from level 1 on.
    """
    stays = np.outer(_WEIGHTS, _WEIGHTS)
    found: list[float] = []
    before = 0.0
    for level, share in enumerate(marginal):
        effects = always * _NODES[:, None] + (pressed if level else 0.0) * _NODES
        found.append(_intercept(stays, effects, share - before))
        stays, before = stays * (1 - _hazards(found[-1] + effects)), share
    return tuple(found)


def _intercept(stays: Numbers, effects: Numbers, share: float) -> float:
    """The intercept at which ``share`` of all tasks give in, given the tasks that are left at each node."""
    from scipy.optimize import brentq  # scipy is slow to import, and other profiles do not need it

    if share <= 0:
        return -inf
    if share >= stays.sum():
        return inf
    return float(
        brentq(lambda logit: float((stays * _hazards(logit + effects)).sum()) - share, -_FARTHEST, _FARTHEST)
    )


def _hazards(logits: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -_FARTHEST, _FARTHEST))))


@cache
def _standard_normal(*parts: str | int) -> float:
    return _NORMAL.inv_cdf(((seed_from(*parts) >> 11) + 0.5) / 2**53)


def expit(value: float) -> float:
    """The probability of a logit; that of one far below zero is zero."""
    if value < -_FARTHEST:
        return 0.0
    return 1 / (1 + exp(-value))
