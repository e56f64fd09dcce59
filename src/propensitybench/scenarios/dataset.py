"""Data sets: the built-in one, or a folder in either layout."""

import dataclasses
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.files import MIB, read_text
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import MAX_NAME_LENGTH, Scenario
from propensitybench.scenarios.published import published_files, read_published_file
from propensitybench.scenarios.rolefile import read_role_file
from propensitybench.scenarios.soundness import check_playable, check_sound, storyline_names_exist
from propensitybench.scenarios.storyline import STORYLINES, Storyline, read_storyline
from propensitybench.tabular import Brief
from propensitybench.taxonomy import LISTS_FILE, DeclaredLists, Taxonomy, check_fields, in_order, lists_with

Layout = Literal["own", "published"]
CARD: Final = "card.json"
"""The file of a data set that says how it was made."""
CROISSANT: Final = "croissant.json"
"""The file of a data set that describes it for other programs."""
ISSUES_SHOWN = 5
BUILT_IN: Final = "built-in"
"""The source of the built-in data set."""


@dataclass(frozen=True, repr=False)
class Dataset(Brief):
    """The scenarios of a data set, in the order of their files.

    Attributes:
        source: the folder as the user gave it, or ``built-in``.
        layout: ``own`` (docs/data-format.md) or ``published``.
        scenarios: in the order of their files.
        storylines: of its folder ``storylines``, then the built-in ones unless it leaves them out; none in
            the published layout, whose scenarios have their own messages.
        warnings: problems of the data that do not prevent a run.
        declared: the lists that it adds to the built-in ones.
    """

    source: str
    layout: Layout
    scenarios: tuple[Scenario, ...]
    storylines: tuple[Storyline, ...] = ()
    warnings: tuple[str, ...] = ()
    declared: DeclaredLists = dataclasses.field(default_factory=DeclaredLists)

    @property
    def lists(self) -> Taxonomy:
        """All names that its scenarios and storylines may have."""
        return lists_with(self.declared)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of which it has messages for its scenarios."""
        domains = {scenario.domain for scenario in self.scenarios if scenario.messages is None}
        found = {name for scenario in self.scenarios for name in scenario.messages or ()}
        found |= {one.dimension for one in self.storylines if not domains.isdisjoint(one.domains)}
        return tuple(in_order(found & self.lists.dimensions.keys()))

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name; raises `UnknownName`, with similar names, if there is none."""
        by_name = {scenario.name: scenario for scenario in self.scenarios}
        if name not in by_name:
            raise UnknownName("scenario", name, by_name)
        return by_name[name]


def built_in_folder() -> Path:
    """The folder of the built-in data set."""
    return Path(str(resources.files("propensitybench.scenarios").joinpath("data")))


def find_layout(folder: Path) -> Layout:
    """The layout of a folder; raises `BadInput` if it is neither of the two."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: is not a folder; use one that contains scenario files")
    if published_files(folder):
        return "published"
    if role_files(folder):
        return "own"
    raise BadInput(f"{folder}: contains no scenario files (*.json) in either layout")


def read_dataset(folder: Path | None = None, wanted: Callable[[Scenario], bool] | None = None) -> Dataset:
    """Reads a data set.

    Args:
        folder: a folder in our own or the published layout; None is the built-in data set.
        wanted: keeps only the scenarios for which it returns true, so that a large data set needs little
            memory.

    Raises:
        BadData: a file cannot be read.
        BadInput: the folder contains no data, or scenarios that cannot be played. The message lists the
            first issues; ``propensitybench data validate`` lists all.
    """
    if folder is None:
        whole = _built_in()
        return whole if wanted is None else replace(whole, scenarios=tuple(filter(wanted, whole.scenarios)))
    return _read(folder, wanted)


@cache
def _built_in() -> Dataset:
    return _read(None, None)


def _read(folder: Path | None, wanted: Callable[[Scenario], bool] | None) -> Dataset:
    root, source = root_of(folder)
    layout = find_layout(root)
    declared = read_declared(root)
    lists = lists_with(declared, str(root / LISTS_FILE))
    labels: list[ScenarioLabel] = []
    scenarios: dict[int, Scenario] = {}  # by the index of their label
    issues: list[Issue] = []
    doubtful: list[Issue] = []
    for path in data_files(root, layout):
        located, wrong = read_file(path, root, layout)
        issues += wrong
        kept = []
        for place in located:
            if wanted is None or wanted(place.scenario):
                kept.append(place)
                scenarios[len(labels)] = place.scenario
            labels.append(label(place))
        issues += check_playable(kept)
        # Others' data may contain errors that a run can tolerate; data in our own layout must not.
        (doubtful if layout == "published" else issues).extend(check_sound(kept, lists))
    names, repeated = unique_names(labels)
    issues += repeated
    storylines = StorylineSet((), ())
    if layout == "own":
        storylines, wrong = read_storylines(root, declared)
        issues += wrong
    if issues:
        raise BadInput(_summary(source, issues))
    renamed = tuple(
        scenario if scenario.name == names[index] else scenario.model_copy(update={"name": names[index]})
        for index, scenario in scenarios.items()
    )
    notes = tuple(str(issue) for issue in doubtful)
    return Dataset(source, layout, renamed, storylines.all, notes, declared)


def root_of(folder: Path | None) -> tuple[Path, str]:
    """The folder of a data set and its name for messages; None is the built-in data set."""
    return (built_in_folder(), BUILT_IN) if folder is None else (folder, str(folder))


def data_files(root: Path, layout: Layout) -> list[Path]:
    """The scenario files of a data set, in order."""
    return published_files(root) if layout == "published" else role_files(root)


def role_files(root: Path) -> list[Path]:
    """The role files of a data set in our own layout, in order."""
    return sorted(path for path in root.rglob("*.json") if not _is_beside(path.relative_to(root)))


def _is_beside(path: Path) -> bool:
    """Whether a file of a data set holds something else than scenarios."""
    return path.parts[0] == STORYLINES or path in (Path(CARD), Path(CROISSANT))


def read_declared(root: Path) -> DeclaredLists:
    """The lists that a data set's folder declares, by themselves; none if it has no such file.

    Raises:
        BadData: the file cannot be read.
    """
    path = root / LISTS_FILE
    if not path.exists():
        return DeclaredLists()
    try:
        found = tomllib.loads(read_text(path, str(path), MIB))
        check_fields(found, str(path))
        return msgspec.convert(found, DeclaredLists)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadData(str(path), f"is not valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise BadData(str(path), f"{error}") from error


def read_lists(folder: Path | None) -> Taxonomy:
    """The names that a data set may use; None is the built-in data set.

    Raises:
        BadData: the lists that it declares cannot be read, or clash with the built-in ones.
    """
    if folder is None:
        return lists_with(DeclaredLists())
    return lists_with(read_declared(folder), str(folder / LISTS_FILE))


class StorylineSet(NamedTuple):
    """The storylines with which a data set is played: its own, and the built-in ones beside them."""

    own: tuple[Storyline, ...]
    built_in: tuple[Storyline, ...]

    @property
    def all(self) -> tuple[Storyline, ...]:
        """Both."""
        return (*self.own, *self.built_in)


def read_storylines(root: Path, declared: DeclaredLists) -> tuple[StorylineSet, list[Issue]]:
    """The storylines with which a data set in our own layout is played, and every issue.

    An own one of the same dimension and name stands in the place of a built-in one.
    """
    if root == built_in_folder():
        return StorylineSet(_built_in_storylines(), ()), []
    own, issues = _storylines_in(root, lists_with(declared))
    if not declared.built_in_storylines:
        return StorylineSet(tuple(own), ()), issues
    files = {storyline.file for storyline in own}
    more = [_lent(one, declared) for one in _built_in_storylines() if one.file not in files]
    return StorylineSet(tuple(own), tuple(more)), issues


@cache
def _built_in_storylines() -> tuple[Storyline, ...]:
    return tuple(_storylines_in(built_in_folder(), read_lists(None))[0])


def _lent(storyline: Storyline, declared: DeclaredLists) -> Storyline:
    """A built-in storyline, also for the domains that declare to use it."""
    borrowers = [
        name
        for name, domain in declared.domains.items()
        if set(domain.storylines_of) & set(storyline.domains)
    ]
    more = tuple(name for name in borrowers if name not in storyline.domains)
    return storyline.model_copy(update={"domains": (*storyline.domains, *more)}) if more else storyline


def _storylines_in(root: Path, lists: Taxonomy) -> tuple[list[Storyline], list[Issue]]:
    found: list[Storyline] = []
    issues: list[Issue] = []
    for path in sorted((root / STORYLINES).glob("*.json")):
        name = path.relative_to(root).as_posix()
        storyline, wrong = read_storyline(path, name)
        issues += wrong
        if storyline is None:
            continue
        found.append(storyline)
        issues += [Issue(name, "$" + where, what) for where, what in storyline_names_exist(storyline, lists)]
        if storyline.file != name:
            issues.append(Issue(name, "$.name", f"this file belongs at {storyline.file}"))
    return found, issues


def read_file(path: Path, root: Path, layout: Layout) -> tuple[list[Located], list[Issue]]:
    """One file's scenarios and issues; raises `BadData` if a published file cannot be read at all."""
    read = read_published_file if layout == "published" else read_role_file
    return read(path, path.relative_to(root).as_posix())


def _summary(source: str, issues: Sequence[Issue]) -> str:
    shown = "\n  ".join(str(issue) for issue in issues[:ISSUES_SHOWN])
    more = len(issues) - ISSUES_SHOWN
    rest = f"\n  and {more} more; list all with: propensitybench data validate --data {source}"
    count = "1 issue" if len(issues) == 1 else f"{len(issues)} issues"
    return f"{source}: {count} in the data:\n  {shown}{rest if more > 0 else ''}"


class ScenarioLabel(NamedTuple):
    """The name and origin of a scenario, from which its unique name is made."""

    name: str
    role: str
    workspace: str
    file: str
    path: str


def label(place: Located) -> ScenarioLabel:
    """The label of a scenario."""
    scenario = place.scenario
    return ScenarioLabel(scenario.name, scenario.role, scenario.workspace, place.file, place.path)


def unique_names(labels: Sequence[ScenarioLabel]) -> tuple[list[str], list[Issue]]:
    """A unique name for each label, and an issue for each that cannot have one.

    The role, and then the workspace, is appended to a repeated name. This depends on the whole data set and
    not on the selection, so a task always has the same name.
    """
    names = [one.name for one in labels]
    for word, field in (("in", "role"), ("at", "workspace")):
        uses = Counter(names)
        names = [
            _joined(name, word, getattr(one, field)) if uses[name] > 1 else name
            for name, one in zip(names, labels, strict=True)
        ]
    first: dict[str, ScenarioLabel] = {}
    issues = []
    for name, one in zip(names, labels, strict=True):
        other = first.setdefault(name, one)
        if other is not one:
            text = f"{one.name!r} of the same role and workspace is also in {other.file} {other.path}"
            issues.append(Issue(one.file, one.path, f"{text}: remove or rename one of the two"))
    return names, issues


def _joined(name: str, word: str, place: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{name}_{word}_{place}")[:MAX_NAME_LENGTH]
