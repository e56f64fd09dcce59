"""A data set: read from a folder in either layout, or the built-in one."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from propensitybench.errors import BadInput
from propensitybench.scenarios.checks import SOUND, check
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.published import published_files, read_published_file
from propensitybench.scenarios.rolefile import Fault, Located, read_role_file

Layout = Literal["own", "published"]
FAULTS_SHOWN = 5


@dataclass(frozen=True)
class Library:
    """The scenarios of a data set, in the order of their files.

    Attributes:
        source: what the user called it, or ``built-in``.
        layout: ``own`` (docs/data-format.md) or ``published``.
        warnings: what is odd about the data but does not keep it from being run.
    """

    source: str
    layout: Layout
    scenarios: tuple[Scenario, ...]
    warnings: tuple[str, ...] = ()


def built_in_folder() -> Path:
    """Where the data set that comes with the package stands."""
    return Path(str(resources.files("propensitybench.scenarios").joinpath("data")))


def find_layout(folder: Path) -> Layout:
    """Which of the two layouts a folder is in; raises `BadInput` if neither."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: is no folder; give one that holds scenario files")
    if published_files(folder):
        return "published"
    if any(folder.rglob("*.json")):
        return "own"
    raise BadInput(f"{folder}: holds no scenario file (*.json) in either layout")


def read_library(folder: Path | None = None, wanted: Callable[[Scenario], bool] | None = None) -> Library:
    """Reads a data set; without a folder, the built-in one.

    Args:
        folder: a folder in this project's layout or in the published one.
        wanted: keeps only the scenarios for which it is true, so that a large data set costs
            only what is used of it.

    Raises:
        BadData: a file cannot be read.
        BadInput: the folder holds no data, or scenarios that cannot be played; the first faults
            are named, `propensitybench data validate` names them all.
    """
    root, source = root_of(folder)
    layout = find_layout(root)
    scenarios: list[Scenario] = []
    faults: list[Fault] = []
    doubtful: list[Fault] = []
    for located, wrong in read_each(root, layout):
        kept = [place for place in located if wanted is None or wanted(place.scenario)]
        faults += wrong
        problems = check(kept, SOUND)
        # What a run can bear of data that others made is a warning; in our own layout it is not.
        (doubtful if layout == "published" else faults).extend(problems)
        scenarios += [place.scenario for place in kept]
    if faults:
        raise BadInput(_summary(source, faults))
    return Library(source, layout, _unique(scenarios), tuple(str(fault) for fault in doubtful))


def root_of(folder: Path | None) -> tuple[Path, str]:
    """Where a data set stands and what to call it; None is the built-in one."""
    return (built_in_folder(), "built-in") if folder is None else (folder, str(folder))


def read_each(root: Path, layout: Layout) -> Iterator[tuple[list[Located], list[Fault]]]:
    """Each file's scenarios and faults, one file after another."""
    read = read_published_file if layout == "published" else read_role_file
    paths = published_files(root) if layout == "published" else sorted(root.rglob("*.json"))
    for path in paths:
        yield read(path, path.relative_to(root).as_posix())


def _summary(source: str, faults: Sequence[Fault]) -> str:
    shown = "\n  ".join(str(fault) for fault in faults[:FAULTS_SHOWN])
    more = len(faults) - FAULTS_SHOWN
    rest = f"\n  and {more} more; see them all with: propensitybench data validate --data {source}"
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return f"{source}: {count} in the data:\n  {shown}{rest if more > 0 else ''}"


def _unique(scenarios: Sequence[Scenario]) -> tuple[Scenario, ...]:
    """Scenarios with names that occur once: a repeated one gets its role, then its workspace."""
    for word, field in (("in", "role"), ("at", "workspace")):
        names = Counter(scenario.name for scenario in scenarios)
        scenarios = [
            s.model_copy(update={"name": f"{s.name}_{word}_{getattr(s, field)}"}) if names[s.name] > 1 else s
            for s in scenarios
        ]
    return tuple(scenarios)
