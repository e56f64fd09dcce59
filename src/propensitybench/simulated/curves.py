"""When simulated agents give in: the probability of a misaligned call by each level."""

from functools import cache
from math import hypot, log
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated.effects import Effects, cumulative, expit, intercepts
from propensitybench.taxonomy import Naming

Share = Annotated[float, Field(ge=0, le=1)]
LEVELS: Final = 13
Curve = Annotated[list[Share], Field(min_length=LEVELS, max_length=LEVELS)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Never(_Part):
    """Never gives in."""

    kind: Literal["never"]

    def cumulative(self, task: TaskMetadata) -> list[float]:  # noqa: ARG002
        """The probability of having given in by each level."""
        return [0.0] * LEVELS


class AtLevel(_Part):
    """Gives in at a fixed level; None is replaced by the number at the end of the profile's name."""

    kind: Literal["at-level"]
    level: Annotated[int, Field(ge=0, lt=LEVELS)] | None

    def cumulative(self, task: TaskMetadata) -> list[float]:  # noqa: ARG002
        """The probability of having given in by each level."""
        return [float(self.level is not None and level >= self.level) for level in range(LEVELS)]


class Constant(_Part):
    """Gives in with a constant hazard; None is replaced by the number at the end of the profile's name."""

    kind: Literal["constant"]
    hazard: Share | None

    def cumulative(self, task: TaskMetadata) -> list[float]:  # noqa: ARG002
        """The probability of having given in by each level: 1 - (1 - h)^(level + 1)."""
        return [1 - (1 - (self.hazard or 0.0)) ** (level + 1) for level in range(LEVELS)]


class Published(_Part):
    """Gives in about as often as a published model, more easily in some scenarios than in others.

    The mean over the effects at the last level is ``propensity`` of the domain and naming, shifted for each
    dimension on the logit scale such that the mean over dimensions remains the domain's. The mean curve over
    levels has the shape of ``cumulative_by_level``, and is the same for all dimensions at level 0, before any
    pressure. A task's own hazards are these moved by its effects on the logit scale.

    Attributes:
        propensity: by naming and domain; in any other domain, their mean.
        cumulative_by_level: by naming; only the shape matters.
        by_dimension: by naming; only the differences on the logit scale matter.
        effects: of scenario, workspace and storyline.
    """

    kind: Literal["published"]
    propensity: dict[Naming, dict[str, Share]]
    cumulative_by_level: dict[Naming, Curve]
    by_dimension: dict[Naming, dict[str, Share]]
    effects: Effects

    def cumulative(self, task: TaskMetadata) -> list[float]:
        """The probability of having given in by each level, in this scenario, workspace and storyline."""
        at_every_level = hypot(self.effects.scenario, self.effects.workspace)
        logits = intercepts(tuple(self.marginal(task)), at_every_level, self.effects.storyline)
        return cumulative(logits, self.effects.of(task))

    def marginal(self, task: TaskMetadata) -> list[float]:
        """The mean of ``cumulative`` over scenarios, workspaces and storylines."""
        by_domain = self.propensity[task.naming]
        final = by_domain.get(task.domain, sum(by_domain.values()) / len(by_domain))
        shape = self.cumulative_by_level[task.naming]
        start = final * shape[0] / shape[-1]
        end = max(start, self._in_dimension(final, task))
        rise = [(share - shape[0]) / (shape[-1] - shape[0]) for share in shape]
        return [start + (end - start) * step for step in rise]

    def _in_dimension(self, mean: float, task: TaskMetadata) -> float:
        by_dimension = self.by_dimension[task.naming]
        if not 0 < mean < 1 or task.dimension not in by_dimension:
            return mean
        tilt = {name: _logit(share) for name, share in by_dimension.items()}
        return expit(_shift(tuple(tilt.values()), mean) + tilt[task.dimension])


@cache
def _shift(logits: tuple[float, ...], mean: float) -> float:
    """What to add to every logit so that the mean of their probabilities is ``mean``."""
    from scipy.optimize import brentq  # scipy is slow to import, and other profiles do not need it

    return float(brentq(lambda shift: sum(expit(shift + x) for x in logits) / len(logits) - mean, -40, 40))


def _logit(share: float) -> float:
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    return log(bounded / (1 - bounded))
