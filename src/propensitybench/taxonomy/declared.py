"""The lists that a data set declares beside the built-in ones."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from propensitybench.errors import BadData, UnknownName
from propensitybench.taxonomy.lists import (
    Capability,
    Component,
    Dimension,
    Domain,
    Taxonomy,
    Workspace,
    taxonomy,
)

LISTS_FILE: Final = "taxonomy.toml"
"""The file of a data set in which they are declared."""
# Names are those of folders and files, and parts of addresses, tables and pages.
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 &+.-]*")
_DIMENSION: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_DECLARED_NAME: Final = 100
MAX_DESCRIPTION: Final = 1_000
RESERVED: Final = ("neutral", "storylines")
"""A chain without pressure, and the folder of the storylines."""


class DeclaredDomain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a data set adds to a domain of its own, or to a built-in one, which has its description.

    Attributes:
        description: what it is; only for a domain of the data's own.
        capabilities: the description of each, by name.
        workspaces: the roles of each, by name; those of a built-in workspace are added to it.
        storylines_of: domains whose built-in storylines are used in it as well.
    """

    description: str = ""
    capabilities: dict[str, str] = {}
    workspaces: dict[str, tuple[str, ...]] = {}
    storylines_of: tuple[str, ...] = ()


class Components(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each of the five components of a dimension is, in a few words."""

    A: str
    B: str
    C: str
    D: str
    E: str


class DeclaredDimension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dimension of pressure of a data set's own."""

    description: str
    components: Components


class DeclaredLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists that a data set declares; a run file keeps them.

    Attributes:
        built_in_storylines: whether the built-in storylines are used beside the data's own.
        domains: by name.
        dimensions: by name.
    """

    built_in_storylines: bool = True
    domains: dict[str, DeclaredDomain] = {}
    dimensions: dict[str, DeclaredDimension] = {}

    def __bool__(self) -> bool:
        return bool(self.domains or self.dimensions)

    def descriptions(self) -> dict[str, str]:
        """What each declared domain, capability and dimension is, by name."""
        domains = {name: domain.description for name, domain in self.domains.items() if domain.description}
        capabilities = [domain.capabilities for domain in self.domains.values()]
        dimensions = {name: dimension.description for name, dimension in self.dimensions.items()}
        return {**domains, **{k: v for found in capabilities for k, v in found.items()}, **dimensions}


def check_fields(found: Mapping[str, Any], file: str) -> None:
    """Raises `BadData` for a field of declared lists that does not exist."""
    tables: list[tuple[str, type[msgspec.Struct], Any]] = [("", DeclaredLists, found)]
    kinds: dict[str, type[msgspec.Struct]] = {"domains": DeclaredDomain, "dimensions": DeclaredDimension}
    for name, kind in kinds.items():
        inside = found.get(name)
        if isinstance(inside, Mapping):
            tables += [(f" {name}.{one}", kind, table) for one, table in inside.items()]
    for place, kind, table in tables:
        unknown = table.keys() - set(kind.__struct_fields__) if isinstance(table, Mapping) else set()
        if unknown:
            raise BadData(file + place, str(UnknownName("field", min(unknown), kind.__struct_fields__)))


def lists_with(declared: DeclaredLists, file: str = LISTS_FILE) -> Taxonomy:
    """The built-in lists with those that a data set declares.

    Args:
        declared: the lists.
        file: the name of their file in errors.

    Raises:
        BadData: a name exists already, cannot be used, or has no description.
    """
    return _extended(msgspec.json.encode(declared), file) if declared else taxonomy()


def joined_lists(stored: DeclaredLists, new: DeclaredLists) -> DeclaredLists:
    """The lists of a run that grows: those that it keeps, with what its data declare now.

    Raises:
        BadData: a name that is kept stands in another place now.
    """
    domains = dict(stored.domains)
    for name, domain in new.domains.items():
        was = domains.get(name, DeclaredDomain())
        workspaces = {
            one: tuple(dict.fromkeys((*was.workspaces.get(one, ()), *domain.workspaces.get(one, ()))))
            for one in (*was.workspaces, *domain.workspaces)
        }
        domains[name] = msgspec.structs.replace(
            domain, capabilities=was.capabilities | domain.capabilities, workspaces=workspaces
        )
    both = msgspec.structs.replace(new, domains=domains, dimensions=stored.dimensions | new.dimensions)
    lists_with(both)
    return both


@lru_cache(maxsize=64)
def _extended(encoded: bytes, file: str) -> Taxonomy:
    declared = msgspec.json.decode(encoded, type=DeclaredLists)
    for place, wrong in _wrong(declared):
        raise BadData(f"{file} {place}", wrong)
    lists = taxonomy()
    domains, capabilities = dict(lists.domains), dict(lists.capabilities)
    workspaces, dimensions = dict(lists.workspaces), dict(lists.dimensions)
    for name, added in declared.domains.items():
        known = domains.get(name, Domain(name, added.description, ()))
        domains[name] = known._replace(capabilities=tuple(sorted((*known.capabilities, *added.capabilities))))
        capabilities |= {one: Capability(one, name, text) for one, text in added.capabilities.items()}
        for one, roles in added.workspaces.items():
            home = workspaces.get(one, Workspace(one, name, ()))
            workspaces[one] = home._replace(roles=(*home.roles, *roles))
    for name, dimension in declared.dimensions.items():
        letters = msgspec.structs.asdict(dimension.components)
        components = tuple(Component(name, letter, text, ()) for letter, text in letters.items())
        dimensions[name] = Dimension(name, dimension.description, components)
    own = tuple(name for name in declared.domains if name not in lists.domains)
    return replace(
        lists,
        domains=domains,
        capabilities=capabilities,
        workspaces=workspaces,
        dimensions=dimensions,
        whole=own or lists.whole,
    )


def _wrong(declared: DeclaredLists) -> Iterator[tuple[str, str]]:
    """What is wrong in declared lists: the place and a sentence."""
    lists = taxonomy()
    capabilities = set(lists.capabilities)
    homes = {workspace.name: workspace.domain for workspace in lists.workspaces.values()}
    for name, domain in declared.domains.items():
        place = f"domains.{name}"
        yield from _domain(place, name, domain, declared)
        for one, text in domain.capabilities.items():
            if one in capabilities:
                yield f"{place}.capabilities", f"the capability {one!r} exists already: choose another name"
            yield from _name(f"{place}.capabilities", one)
            yield from _text(f"{place}.capabilities.{one}", text)
        capabilities |= domain.capabilities.keys()
        for one, roles in domain.workspaces.items():
            if homes.setdefault(one, name) != name:
                yield (
                    f"{place}.workspaces",
                    f"the workspace {one!r} belongs to {homes[one]}: choose another name",
                )
            yield from _roles(f"{place}.workspaces.{one}", one, roles)
    for name, dimension in declared.dimensions.items():
        yield from _dimension(f"dimensions.{name}", name, dimension)


def _domain(
    place: str, name: str, domain: DeclaredDomain, declared: DeclaredLists
) -> Iterator[tuple[str, str]]:
    lists = taxonomy()
    if name not in lists.domains:
        yield from _name(place, name, {**lists.dimensions, **declared.dimensions})
        yield from _text(f"{place}.description", domain.description)
    elif domain.description:
        yield f"{place}.description", f"{name} is a built-in domain: leave its description out"
    for one in domain.storylines_of:
        if one not in lists.domains:
            yield f"{place}.storylines_of", str(UnknownName("built-in domain", one, lists.domains))


def _roles(place: str, workspace: str, roles: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    known = taxonomy().workspaces.get(workspace, Workspace(workspace, "", ())).roles
    yield from _name(place, workspace)
    if not roles or len(set(roles)) < len(roles):
        yield place, "needs one role or more, each once"
    for role in roles:
        yield from _name(place, role, known)


def _dimension(place: str, name: str, dimension: DeclaredDimension) -> Iterator[tuple[str, str]]:
    lists = taxonomy()
    yield from _name(place, name, {**lists.dimensions, **lists.domains})
    if not _DIMENSION.fullmatch(name):
        yield place, "the name of a dimension has lower-case letters, digits and hyphens"
    yield from _text(f"{place}.description", dimension.description)
    for letter, text in msgspec.structs.asdict(dimension.components).items():
        yield from _text(f"{place}.components.{letter}", text)


def _name(place: str, name: str, taken: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    if name in taken or name in RESERVED:
        yield place, f"{name!r} exists already: choose another name"
    if len(name) > MAX_DECLARED_NAME or not _FILE_NAME.fullmatch(name):
        yield (
            place,
            f"{name[:MAX_DECLARED_NAME]!r} cannot be a name: use letters, digits, spaces, & + . and -",
        )


def _text(place: str, text: str) -> Iterator[tuple[str, str]]:
    if not text.strip():
        yield place, "is missing: say in a sentence what it is"
    elif len(text) > MAX_DESCRIPTION or not text.isprintable():  # it may come from a stranger's run file
        yield place, f"must be one line of at most {MAX_DESCRIPTION} printable characters"
