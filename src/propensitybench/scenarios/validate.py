"""Every fault of a data set at once, each with its file and JSON path."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from propensitybench.errors import BadData
from propensitybench.scenarios.between import alike_stories, alike_tools, repeated_names, shared_sentences
from propensitybench.scenarios.checks import (
    Check,
    check,
    check_sound,
    has_its_parts,
    keeps_its_secrets,
    place_faults,
)
from propensitybench.scenarios.content import faces_differ, says_nothing_it_may_not
from propensitybench.scenarios.library import (
    Layout,
    Library,
    data_files,
    find_layout,
    label,
    read_file,
    root_of,
    unique_names,
)
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Fault, Located
from propensitybench.taxonomy import taxonomy

# What scenarios of our own layout must meet besides.
GOOD: Final[Sequence[Check]] = (
    has_its_parts,
    keeps_its_secrets,
    faces_differ,
    says_nothing_it_may_not,
)
BETWEEN: Final = (repeated_names, alike_stories, alike_tools, shared_sentences)


def validate_library(folder: Path | None = None) -> tuple[Library, list[Fault]]:
    """Reads a data set as far as it can be read, and every fault in it.

    Args:
        folder: in either layout; None is the built-in data set, which is also held to the
            published allocation.
    """
    root, source = root_of(folder)
    layout = find_layout(root)
    located, faults = _read_all(root, layout)
    faults += check_sound(located)
    if layout == "own":
        faults += check(located, GOOD)
        faults += _misplaced(located)
        faults += [fault for between in BETWEEN for fault in between(located)]
    else:
        faults += unique_names([label(place) for place in located])[1]
    if folder is None:
        faults += allocation_faults(place.scenario for place in located)
    library = Library(source, layout, tuple(place.scenario for place in located))
    return library, sorted(set(faults), key=_order)


def _read_all(root: Path, layout: Layout) -> tuple[list[Located], list[Fault]]:
    """All scenarios and all faults; one with a fault of schema is not among the scenarios."""
    located: list[Located] = []
    faults: list[Fault] = []
    for path in data_files(root, layout):
        try:
            found, wrong = read_file(path, root, layout)
        except BadData as error:
            found, wrong = [], [Fault(error.where, "$", error.what)]
        located += found
        faults += wrong
    return located, faults


def _order(fault: Fault) -> tuple[str, str, str]:
    """By file and place, ``[10]`` after ``[2]``."""
    return fault.file, re.sub(r"\d+", lambda digits: digits.group().zfill(9), fault.path), fault.message


def allocation_faults(scenarios: Iterable[Scenario]) -> list[Fault]:
    """Where the roles that are present differ from the published allocation, row by row.

    For each role with at least one scenario: its capabilities in order, and their getters.
    """
    present: dict[tuple[str, str], list[tuple[str | None, int]]] = defaultdict(list)
    planned: dict[tuple[str, str], list[tuple[str | None, int]]] = defaultdict(list)
    for scenario in scenarios:
        key = scenario.workspace, scenario.role
        present[key].append((scenario.capability, len(scenario.getters)))
    for slot in taxonomy().allocation:
        planned[slot.workspace, slot.role].append((slot.capability, slot.getters))
    faults = []
    for key, found in present.items():
        name, rows = "/".join(key), planned[key]
        if len(found) != len(rows):
            faults.append(Fault(name, "$", f"{len(rows)} scenarios allocated, found {len(found)}"))
        for index, (has, wants) in enumerate(zip(found, rows, strict=False)):
            if has != wants:
                text = f"allocated {wants[0]} with {wants[1]} getters, found {has[0]} with {has[1]}"
                faults.append(Fault(name, f"$.scenarios[{index}]", text))
    return faults


def _misplaced(located: Sequence[Located]) -> Iterator[Fault]:
    for name, place in {place.file: place for place in located}.items():
        expected = place.scenario.place + ".json"
        # A name that does not exist has its own fault; where it would belong helps nobody.
        if name != expected and not any(place_faults(place)):
            yield Fault(name, "$", f"by its header this file belongs at {expected}")
