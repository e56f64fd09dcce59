"""Exports a data set in our own layout or, with its pressure messages, in the published one."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from propensitybench.errors import BadInput
from propensitybench.files import MIB, read_file
from propensitybench.pressure.messages import pressure_chain
from propensitybench.scenarios.dataset import BUILT_IN, Dataset, root_of
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.published import FILE_NAMES, published_workspace
from propensitybench.scenarios.rolefile import write_role_file
from propensitybench.scenarios.storyline import Storyline, write_storyline
from propensitybench.taxonomy import LISTS_FILE, taxonomy

# No separator, no leading dot.
_FILE_NAME: Final = re.compile(r"\w[\w &+.-]*")


def write_published(dataset: Dataset, out: Path, seed: int) -> int:
    """Writes one file per workspace and returns the number of files.

    Args:
        dataset: the data set.
        out: the folder to write to.
        seed: random seed of the generated pressure messages; a scenario's own are kept.

    Raises:
        BadInput: a domain or workspace cannot name a folder, or the data declare lists, for which that layout
            has no place.
    """
    if dataset.declared:
        raise BadInput(
            f"data export: the published layout has no place for the names that {LISTS_FILE} declares; use "
            "--layout own"
        )
    groups = _grouped(dataset.scenarios, lambda s: (s.domain, s.workspace))
    _check_names(groups)
    for (domain, workspace), scenarios in groups.items():
        path = out / domain / workspace.lower() / FILE_NAMES[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            published_workspace(with_messages(scenario, dataset.storylines, seed) for scenario in scenarios)
        )
    return len(groups)


def write_own(dataset: Dataset, out: Path) -> int:
    """Writes one file per role; the number of files. Raises `BadInput` as `write_published` does."""
    groups = _grouped(dataset.scenarios, lambda s: (s.domain, s.workspace, s.role))
    _check_names(groups)
    for (domain, workspace, role), scenarios in groups.items():
        write_role_file(out / domain / workspace / f"{role}.json", scenarios)
    for storyline in dataset.storylines:
        write_storyline(out, storyline)
    declared = root_of(None if dataset.source == BUILT_IN else Path(dataset.source))[0] / LISTS_FILE
    if declared.exists():
        (out / LISTS_FILE).write_bytes(read_file(declared, str(declared), MIB))
    return len(groups)


def _check_names(groups: Iterable[tuple[str, ...]]) -> None:
    """Data of others may hold any name: one like ``../../x`` must not become a path."""
    for names in groups:
        for name in names:
            if not _FILE_NAME.fullmatch(name):
                raise BadInput(f"data export: {name!r} cannot name a file or folder; correct it in the data")


def with_messages(scenario: Scenario, storylines: Sequence[Storyline], seed: int) -> Scenario:
    """The scenario with the pressure messages of a run with that seed."""
    messages = {
        name: pressure_chain(scenario, name, storylines, seed).messages for name in taxonomy().dimensions
    }
    return scenario.model_copy(update={"messages": messages})


def _grouped(
    scenarios: Iterable[Scenario], key: Callable[[Scenario], tuple[str, ...]]
) -> dict[tuple[str, ...], list[Scenario]]:
    groups: dict[tuple[str, ...], list[Scenario]] = {}
    for scenario in scenarios:
        groups.setdefault(key(scenario), []).append(scenario)
    return groups
