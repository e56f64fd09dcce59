"""Profiles of simulated agents: how they behave and when they give in. They are files in ``data/``."""

from functools import cache
from importlib import resources
from math import exp, log
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.scenarios import TaskMetadata
from propensitybench.taxonomy import Naming

PROFILE_FORMAT: Final = "propensitybench-profile/1"
Behaviour = Literal["diligent", "quitter", "malformed", "incompetent"]
Share = Annotated[float, Field(ge=0, le=1)]
LEVELS: Final = 13
# Profiles whose name ends with a number that the user chooses.
EXAMPLES: Final = {"at-level": "at-level-3", "constant": "constant-0.1"}


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
    """Gives in according to published results.

    The probability at the last level is the domain's under the naming, shifted for each dimension on the
    logit scale such that the mean over dimensions remains the domain's. The curve over levels has the
    published shape. Level 0 is the same for all dimensions, because there is no pressure yet.
    """

    kind: Literal["published"]
    propensity: dict[Naming, dict[str, Share]]
    cumulative_by_level: Annotated[list[Share], Field(min_length=LEVELS, max_length=LEVELS)]
    by_dimension: dict[str, Share]

    def cumulative(self, task: TaskMetadata) -> list[float]:
        """The probability of having given in by each level."""
        by_domain = self.propensity[task.naming]
        if task.domain not in by_domain:
            raise UnknownName("domain of this profile", task.domain, by_domain)
        final = by_domain[task.domain]
        shape = self.cumulative_by_level
        start = final * shape[0] / shape[-1]
        end = max(start, self._in_dimension(final, task.dimension))
        rise = [(share - shape[0]) / (shape[-1] - shape[0]) for share in shape]
        return [start + (end - start) * step for step in rise]

    def _in_dimension(self, mean: float, dimension: str) -> float:
        if not 0 < mean < 1 or dimension not in self.by_dimension:
            return mean
        tilt = {name: _logit(share) for name, share in self.by_dimension.items()}
        return _expit(_shift(tuple(tilt.values()), mean) + tilt[dimension])


class Profile(_Part):
    """One simulated agent."""

    format: Literal["propensitybench-profile/1"]
    name: str
    description: str
    source: str
    behaviour: Behaviour
    gives_in: Annotated[Never | AtLevel | Constant | Published, Field(discriminator="kind")]

    @property
    def needs(self) -> Literal["level", "hazard"] | None:
        """The kind of number that the profile's name must end with, if any."""
        if isinstance(self.gives_in, AtLevel) and self.gives_in.level is None:
            return "level"
        if isinstance(self.gives_in, Constant) and self.gives_in.hazard is None:
            return "hazard"
        return None


def profile_names() -> list[str]:
    """The names of all profiles, with an example for those that end with a number."""
    return sorted(EXAMPLES.get(name, name) for name in _files())


@cache
def profile(name: str) -> Profile:
    """The profile of that name, e.g. ``never``, ``at-level-3`` or ``o3-like``.

    Raises:
        UnknownName: there is no such profile.
        BadInput: the number at the end is missing or out of range.
    """
    found = _files().get(name)
    if found is not None and found.needs is None:
        return found
    stem, _, number = name.rpartition("-")
    found = found or _files().get(stem)
    if found is None or found.needs is None:
        raise UnknownName("simulated profile", name, profile_names())
    try:
        value = int(number) if found.needs == "level" else float(number)
        fields = {"kind": found.gives_in.kind, found.needs: value}
        gives_in = type(found.gives_in).model_validate(fields)
    except ValueError as error:  # includes pydantic's
        limits = {"level": "a level from 0 to 12", "hazard": "a probability from 0 to 1"}[found.needs]
        raise BadInput(
            f"simulated profile {name!r}: the name must end with {limits}, like {EXAMPLES[found.name]}"
        ) from error
    return found.model_copy(update={"name": name, "gives_in": gives_in})


@cache
def _files() -> dict[str, Profile]:
    found = {}
    for file in sorted(resources.files(__package__).joinpath("data").iterdir(), key=lambda f: f.name):
        try:
            one = Profile.model_validate_json(file.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise BadData(f"simulated/data/{file.name}", str(error).replace("\n", " ")) from error
        found[one.name] = one
    return found


@cache
def _shift(logits: tuple[float, ...], mean: float) -> float:
    """What to add to every logit so that the mean of their probabilities is ``mean``."""
    from scipy.optimize import brentq  # scipy is slow to import, and other profiles do not need it

    return float(brentq(lambda shift: sum(_expit(shift + x) for x in logits) / len(logits) - mean, -40, 40))


def _logit(share: float) -> float:
    bounded = min(max(share, 1e-6), 1 - 1e-6)
    return log(bounded / (1 - bounded))


def _expit(value: float) -> float:
    return 1 / (1 + exp(-value))
