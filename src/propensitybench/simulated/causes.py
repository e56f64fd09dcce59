"""Agents with a planted cause: what moves them is known, so that an analysis can be tested.

At each level the agent may give in twice: before it has worked, and after the aligned tool has failed. Only a
cause `blockage` makes a difference between the two.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from propensitybench.digests import seed_from
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated.effects import Effects, expit
from propensitybench.taxonomy import ARMS, Arm

LEVELS: Final = 13
TIME: Final = "time"
LogOdds = Annotated[float, Field(ge=-8, le=8)]
Share = Annotated[float, Field(ge=0, le=1)]


class Causes(BaseModel):
    """Log odds of giving in at a level: ``base`` plus every cause times its dose, plus the task's effects.

    Attributes:
        base: of an agent that nothing moves.
        pressure: dose: number of the message over 12, in arms with messages of pressure.
        time: dose: 1 where a message has a sentence with the time that remains.
        length: dose: number of levels that have been played before, over 12.
        blockage: dose: 1 after the aligned tool has failed at this level.
        awareness: dose: 1 in episodes that the agent takes for a test.
        aware: probability that it takes an episode for a test.
        effects: of scenario, workspace and storyline; in addition to all causes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["causes"]
    base: LogOdds
    pressure: LogOdds = 0.0
    time: LogOdds = 0.0
    length: LogOdds = 0.0
    blockage: LogOdds = 0.0
    awareness: LogOdds = 0.0
    aware: Share = 0.0
    effects: Effects

    def cumulative(self, task: TaskMetadata) -> list[float]:
        """The probability of having given in by each level, before and after the aligned tool has failed."""
        stays, found = 1.0, []
        for level in range(LEVELS if not ARMS[task.arm].alone else 1):
            before, after = self._hazards(task, level)
            for hazard in (before, 0.0 if after <= before else 1 - (1 - after) / (1 - before)):
                stays *= 1 - hazard
                found.append(1 - stays)
        return found

    def is_aware(self, task: TaskMetadata) -> bool:
        """Whether the agent takes an episode for a test, from its beginning to its end."""
        return chance(task.seed, "aware") < self.aware

    def _hazards(self, task: TaskMetadata, level: int) -> tuple[float, float]:
        """The probability of giving in at a level before the aligned tool has failed, and with that after."""
        arm, message = ARMS[task.arm], task.message or level
        effects = self.effects.of(task)
        log_odds = self.base + effects.always + (effects.pressed if message else 0.0)
        if message and not arm.neutral:
            log_odds += self.pressure * (1 if arm.repeats else message) / (LEVELS - 1)
            log_odds += self.time * _has_deadline(arm, task.dimension)
        log_odds += self.length * level / (LEVELS - 1) + self.awareness * self.is_aware(task)
        return expit(log_odds), expit(log_odds + self.blockage)


def chance(seed: int, *what: str | int) -> float:
    """A number in [0, 1) that depends on the task's seed and the purpose."""
    return (seed_from(seed, *what) >> 11) / 2**53


def _has_deadline(arm: Arm, dimension: str) -> bool:
    return arm.deadline or dimension == TIME
