"""Every fault of a data set at once, each with its file and JSON path."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from propensitybench.scenarios.checks import (
    SOUND,
    Check,
    check,
    has_its_parts,
    keeps_its_secrets,
)
from propensitybench.scenarios.content import faces_differ, says_nothing_it_may_not
from propensitybench.scenarios.library import Library, find_layout, read_each, root_of
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Fault, Located, read_role_file
from propensitybench.scenarios.similarity import near_duplicates
from propensitybench.taxonomy import taxonomy

NEAR_DUPLICATE: Final = 0.8

# What scenarios of our own layout must meet besides.
GOOD: Final[Sequence[Check]] = (
    has_its_parts,
    keeps_its_secrets,
    faces_differ,
    says_nothing_it_may_not,
)


def validate_library(folder: Path | None = None) -> tuple[Library, list[Fault]]:
    """Reads a data set as far as it can be read, and every fault in it.

    Args:
        folder: in either layout; None is the built-in data set, which is also held to the
            published allocation.
    """
    root, source = root_of(folder)
    layout = find_layout(root)
    if layout == "own":
        located, faults = validate_folder(root)
        if folder is None:
            faults += allocation_faults(place.scenario for place in located)
    else:
        located, faults = [], []
        for found, wrong in read_each(root, layout):
            located += found
            faults += wrong
        faults += check(located, SOUND)
    return Library(source, layout, tuple(place.scenario for place in located)), faults


def validate_folder(folder: Path) -> tuple[list[Located], list[Fault]]:
    """Reads every role file below a folder of our layout; all scenarios and all faults.

    A scenario with a fault of schema is not among the scenarios; any other is.
    """
    located: list[Located] = []
    faults: list[Fault] = []
    for path in sorted(folder.rglob("*.json")):
        name = path.relative_to(folder).as_posix()
        found, wrong = read_role_file(path, name)
        located += found
        faults += wrong
        faults += _misplaced(found, name)
    faults += check(located, SOUND)
    faults += check(located, GOOD)
    faults += _repeated_names(located)
    faults += _near_duplicates(located)
    return located, sorted(set(faults))


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


def _misplaced(located: Sequence[Located], name: str) -> list[Fault]:
    if not located:
        return []
    expected = located[0].scenario.place + ".json"
    if name == expected:
        return []
    return [Fault(name, "$", f"by its header this file belongs at {expected}")]


def _repeated_names(located: Sequence[Located]) -> Iterator[Fault]:
    scenarios = Counter(place.scenario.name for place in located)
    tools = Counter(name for place in located for name in place.scenario.tool_names())
    first: dict[str, str] = {}
    for place in located:
        name = place.scenario.name
        if scenarios[name] > 1 and first.setdefault(name, place.file + place.path) != place.file + place.path:
            yield Fault(place.file, place.path + ".name", f"{name!r} is also in {first[name]}")
        for tool in place.scenario.tool_names():
            at = f"{place.file} {place.path}"
            if tools[tool] > 1 and first.setdefault("tool " + tool, at) != at:
                yield Fault(place.file, place.path, f"tool {tool!r} is also in {first['tool ' + tool]}")
        own = Counter(place.scenario.tool_names())
        for tool in (tool for tool, count in own.items() if count > 1):
            yield Fault(place.file, place.path, f"two tools of this scenario are called {tool!r}")


def _near_duplicates(located: Sequence[Located]) -> Iterator[Fault]:
    kinds: dict[str, list[tuple[Located, str, str]]] = {"description": [], "task": [], "tool": []}
    for place in located:
        scenario = place.scenario
        kinds["description"].append((place, ".description", scenario.description))
        kinds["task"].append((place, ".task", scenario.task))
        tools = [(f".getters[{i}].description", g.description) for i, g in enumerate(scenario.getters)]
        tools.append((".aligned.description", scenario.aligned.description))
        tools.append((".misaligned.harmful.description", scenario.misaligned.harmful.description))
        tools.append((".misaligned.benign.description", scenario.misaligned.benign.description))
        kinds["tool"] += [(place, path, text) for path, text in tools]
    for entries in kinds.values():
        for pair in near_duplicates([text for _, _, text in entries], NEAR_DUPLICATE):
            (other, where, _), (place, path, _) = entries[pair.first], entries[pair.second]
            if path.startswith(".misaligned") and other == place and where.startswith(".misaligned"):
                continue  # the two faces of one act may share words
            message = f"nearly the same as {other.file} {other.path}{where} (cosine {pair.cosine:.2f})"
            yield Fault(place.file, place.path + path, message)
