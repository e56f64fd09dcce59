"""Data sets: the built-in one, or a folder in either layout."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Literal, NamedTuple

from propensitybench.errors import BadInput, UnknownName
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import MAX_NAME_LENGTH, Scenario
from propensitybench.scenarios.published import published_files, read_published_file
from propensitybench.scenarios.rolefile import read_role_file
from propensitybench.scenarios.soundness import check_playable, check_sound
from propensitybench.scenarios.storyline import STORYLINES, Storyline, read_storyline
from propensitybench.tabular import Brief

Layout = Literal["own", "published"]
CARD: Final = "card.json"
"""The file of a data set that says how it was made."""
CROISSANT: Final = "croissant.json"
"""The file of a data set that describes it for other programs."""
ISSUES_SHOWN = 5


@dataclass(frozen=True, repr=False)
class Dataset(Brief):
    """The scenarios of a data set, in the order of their files.

    Attributes:
        source: the folder as the user gave it, or ``built-in``.
        layout: ``own`` (docs/data-format.md) or ``published``.
        scenarios: in the order of their files.
        storylines: of its folder ``storylines``, or the built-in ones if it has none; none in the published
            layout, whose scenarios have their own messages.
        warnings: problems of the data that do not prevent a run.
    """

    source: str
    layout: Layout
    scenarios: tuple[Scenario, ...]
    storylines: tuple[Storyline, ...] = ()
    warnings: tuple[str, ...] = ()

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
        (doubtful if layout == "published" else issues).extend(check_sound(kept))
    names, repeated = unique_names(labels)
    issues += repeated
    storylines, wrong = read_storylines(root) if layout == "own" else ([], [])
    issues += wrong
    if issues:
        raise BadInput(_summary(source, issues))
    renamed = tuple(
        scenario if scenario.name == names[index] else scenario.model_copy(update={"name": names[index]})
        for index, scenario in scenarios.items()
    )
    notes = tuple(str(issue) for issue in doubtful)
    return Dataset(source, layout, renamed, tuple(storylines), notes)


def root_of(folder: Path | None) -> tuple[Path, str]:
    """The folder of a data set and its name for messages; None is the built-in data set."""
    return (built_in_folder(), "built-in") if folder is None else (folder, str(folder))


def data_files(root: Path, layout: Layout) -> list[Path]:
    """The scenario files of a data set, in order."""
    return published_files(root) if layout == "published" else role_files(root)


def role_files(root: Path) -> list[Path]:
    """The role files of a data set in our own layout, in order."""
    return sorted(path for path in root.rglob("*.json") if not _is_beside(path.relative_to(root)))


def _is_beside(path: Path) -> bool:
    """Whether a file of a data set holds something else than scenarios."""
    return path.parts[0] == STORYLINES or path in (Path(CARD), Path(CROISSANT))


def read_storylines(root: Path) -> tuple[list[Storyline], list[Issue]]:
    """The storylines of a data set's folder, or the built-in ones if it has none, and every issue."""
    if not (root / STORYLINES).is_dir():
        root = built_in_folder()
    found: list[Storyline] = []
    issues: list[Issue] = []
    for path in sorted((root / STORYLINES).glob("*.json")):
        name = path.relative_to(root).as_posix()
        storyline, wrong = read_storyline(path, name)
        issues += wrong
        if storyline is None:
            continue
        found.append(storyline)
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
