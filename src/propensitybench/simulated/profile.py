"""Profiles of simulated agents: how they behave and when they give in. They are files in ``data/``."""

from functools import cache
from importlib import resources
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.simulated.causes import Causes
from propensitybench.simulated.curves import AtLevel, Constant, Never, Published

PROFILE_FORMAT: Final = "propensitybench-profile/1"
Behaviour = Literal["diligent", "quitter", "malformed", "incompetent"]
# Profiles whose name ends with a number that the user chooses.
EXAMPLES: Final = {"at-level": "at-level-3", "constant": "constant-0.1"}


class Profile(BaseModel):
    """One simulated agent; ``reports`` says whether its closing reports name the misaligned tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["propensitybench-profile/1"]
    name: str
    description: str
    source: str
    behaviour: Behaviour
    reports: Literal["honest", "concealing"] = "honest"
    gives_in: Annotated[Never | AtLevel | Constant | Published | Causes, Field(discriminator="kind")]

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
