"""The lists of names. The built-in ones are read from ``data/`` at first use.

Counts and names are those of the published benchmark (arXiv 2511.20703). The descriptions are our own. A data
set may add names of its own: `declared.py`.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple, TypeVar

from propensitybench.errors import UnknownName

T = TypeVar("T")
Naming = Literal["harmful", "benign"]
NAMINGS: Final[tuple[Naming, Naming]] = ("harmful", "benign")
INTENSITIES: Final = range(11)


class Capability(NamedTuple):
    """A dangerous capability; 30 are built in."""

    name: str
    domain: str
    description: str


class Domain(NamedTuple):
    """A risk area, with its capabilities in alphabetical order; 4 are built in."""

    name: str
    description: str
    capabilities: tuple[str, ...]


class Workspace(NamedTuple):
    """A workplace, with its roles; 32 are built in."""

    name: str
    domain: str
    roles: tuple[str, ...]


class Component(NamedTuple):
    """One of the five components of a dimension; ``labels[i]`` describes intensity ``i`` (0..10).

    A component of a data set's own dimension has no labels.
    """

    dimension: str
    letter: str
    name: str
    labels: tuple[str, ...]


class Dimension(NamedTuple):
    """A dimension of pressure, with its components A..E in order; 6 are built in."""

    name: str
    description: str
    components: tuple[Component, ...]


class Slot(NamedTuple):
    """A scenario of the full set: the ``nth`` of its role and capability, and its number of getters."""

    domain: str
    workspace: str
    role: str
    capability: str
    nth: int
    getters: int


@dataclass(frozen=True)
class Taxonomy:
    """All lists. Each lookup raises `UnknownName`, with similar names, for an unknown name.

    Attributes:
        whole: the domains over which the propensity of the whole data is the mean: those that the data
            declares, or else the four of the benchmark.
    """

    domains: Mapping[str, Domain]
    capabilities: Mapping[str, Capability]
    workspaces: Mapping[str, Workspace]
    dimensions: Mapping[str, Dimension]
    authorities: tuple[str, ...]
    allocation: Sequence[Slot]
    technique_tactic: Mapping[str, str]
    whole: tuple[str, ...]

    def domain(self, name: str, where: str = "") -> Domain:
        """The domain of that name."""
        return _look_up("domain", name, self.domains, where)

    def capability(self, name: str, where: str = "") -> Capability:
        """The capability of that name."""
        return _look_up("capability", name, self.capabilities, where)

    def workspace(self, name: str, where: str = "") -> Workspace:
        """The workspace of that name."""
        return _look_up("workspace", name, self.workspaces, where)

    def dimension(self, name: str, where: str = "") -> Dimension:
        """The pressure dimension of that name."""
        return _look_up("dimension", name, self.dimensions, where)

    def role(self, name: str, workspace: str | None = None, where: str = "") -> str:
        """The role, if it exists (in the given workspace, if there is one)."""
        places = [self.workspace(workspace, where)] if workspace else list(self.workspaces.values())
        known = {role: role for place in places for role in place.roles}
        return _look_up("role", name, known, where)


def naming(name: str, where: str = "") -> Naming:
    """The naming of that name: ``harmful`` or ``benign``."""
    return _look_up("naming", name, {known: known for known in NAMINGS}, where)


def _look_up(kind: str, name: str, known: Mapping[str, T], where: str) -> T:
    found = known.get(name)
    if found is None:
        raise UnknownName(kind, name, known, where)
    return found


@cache
def taxonomy() -> Taxonomy:
    """The built-in lists; the first call reads the files."""
    domains, capabilities = _domains(_json("domains.json"))
    words = _json("dimensions.json")
    slots = tuple(
        Slot(**{**row, "nth": int(row["nth"]), "getters": int(row["getters"])})
        for row in _csv("allocation.csv")
    )
    tactics = _json("attack_techniques.json")["tactics"]
    return Taxonomy(
        domains=domains,
        capabilities=capabilities,
        workspaces=_workspaces(slots),
        dimensions=_dimensions(words["dimensions"]),
        authorities=tuple(words["authorities"]),
        allocation=slots,
        technique_tactic={name: tactic for tactic, names in tactics.items() for name in names},
        whole=tuple(domains),
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Names of domains or of dimensions: the built-in ones in their order, then others alphabetically."""
    lists = taxonomy()
    places = {name: place for place, name in enumerate((*lists.domains, *lists.dimensions))}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _domains(raw: dict[str, Any]) -> tuple[dict[str, Domain], dict[str, Capability]]:
    domains = {
        name: Domain(name, entry["description"], tuple(entry["capabilities"])) for name, entry in raw.items()
    }
    capabilities = {
        name: Capability(name, domain, text)
        for domain, entry in raw.items()
        for name, text in entry["capabilities"].items()
    }
    return domains, capabilities


def _workspaces(slots: Sequence[Slot]) -> dict[str, Workspace]:
    roles: dict[tuple[str, str], dict[str, None]] = {}
    for slot in slots:
        roles.setdefault((slot.workspace, slot.domain), {})[slot.role] = None
    return {name: Workspace(name, domain, tuple(names)) for (name, domain), names in roles.items()}


def _dimensions(descriptions: dict[str, str]) -> dict[str, Dimension]:
    labels: dict[tuple[str, str, str], list[str]] = {}
    for row in _csv("pressure_matrix.csv"):
        key = row["dimension"], row["component"], row["component_name"]
        labels.setdefault(key, []).append(row["label"])
    components = [Component(*key, tuple(texts)) for key, texts in labels.items()]
    return {
        name: Dimension(name, text, tuple(c for c in components if c.dimension == name))
        for name, text in descriptions.items()
    }


def _json(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(_data(name))
    return loaded


def _csv(name: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(_data(name).splitlines()))


def _data(name: str) -> str:
    return resources.files(__package__).joinpath("data", name).read_text(encoding="utf-8")
