"""Validation: every issue of a data set, each with its file and JSON path."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from propensitybench.curation.checks import scenario_issues, storyline_issues
from propensitybench.curation.cross_checks import (
    acts_differ,
    alike_stories,
    alike_tools,
    repeated_names,
    shared_sentences,
)
from propensitybench.curation.fitted_checks import fitted_issues, fitted_scenarios
from propensitybench.curation.variety import variety_issues
from propensitybench.errors import BadData
from propensitybench.scenarios.dataset import (
    Dataset,
    Layout,
    data_files,
    find_layout,
    label,
    read_declared,
    read_file,
    read_lists,
    read_storylines,
    root_of,
    unique_names,
)
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.soundness import check_playable, check_sound, place_issues
from propensitybench.scenarios.storyline import Storyline
from propensitybench.taxonomy import LISTS_FILE, Taxonomy, taxonomy

CROSS_CHECKS: Final = (repeated_names, alike_stories, alike_tools, shared_sentences, acts_differ)


def validate_dataset(
    folder: Path | None = None, on_storyline: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[Dataset, list[Issue]]:
    """The scenarios of a data set that can be read, and every issue in it.

    Args:
        folder: a folder in either layout; None is the built-in data set, which must also match the
            published allocation.
        on_storyline: told how many storylines are checked, of how many; scenarios are checked before.
    """
    root, source = root_of(folder)
    layout = find_layout(root)
    try:
        declared, lists = read_declared(root), read_lists(folder)
    except BadData as error:  # every name that it declares would be an issue too
        place = error.where.removeprefix(str(root / LISTS_FILE)).strip() or "$"
        return Dataset(source, layout, ()), [Issue(LISTS_FILE, place, error.what)]
    located, issues = _read_all(root, layout)
    scenarios = tuple(place.scenario for place in located)
    storylines: tuple[Storyline, ...] = ()
    if layout == "own":
        found, wrong = read_storylines(root, declared)
        storylines = found.all
        issues += wrong
        issues += scenario_issues(located, lists)
        issues += _misplaced(located, lists)
        issues += [issue for find in CROSS_CHECKS for issue in find(located)]
        issues += variety_issues(scenarios, storylines)
        # A scenario that cannot be played has no messages to be checked.
        fitted = fitted_scenarios(place.scenario for place in located if not check_playable([place]))
        # What the built-in ones say has been checked; how they fit the scenarios of another set has not.
        checks = [(one, storyline_issues) for one in found.own] + [
            (one, fitted_issues) for one in found.built_in
        ]
        for done, (one, find) in enumerate(checks):
            on_storyline(done, len(checks))
            issues += _of_storyline(one, find(one, fitted))
    else:
        issues += check_playable(located) + check_sound(located, lists)
        issues += unique_names([label(place) for place in located])[1]
    if folder is None:
        issues += allocation_issues(scenarios)
    dataset = Dataset(source, layout, scenarios, storylines, declared=declared)
    return dataset, sorted(set(issues), key=_order)


def _of_storyline(storyline: Storyline, findings: Iterable[Finding]) -> Iterator[Issue]:
    for path, message in findings:
        yield Issue(storyline.file, "$" + path, message)


def _read_all(root: Path, layout: Layout) -> tuple[list[Located], list[Issue]]:
    """All scenarios and all issues of the files; scenarios that violate the schema are left out."""
    located: list[Located] = []
    issues: list[Issue] = []
    for path in data_files(root, layout):
        try:
            found, wrong = read_file(path, root, layout)
        except BadData as error:
            found, wrong = [], [Issue(error.where, "$", error.what)]
        located += found
        issues += wrong
    return located, issues


def _order(issue: Issue) -> tuple[str, str, str]:
    """Sorts by file and path, ``[10]`` after ``[2]``."""
    return issue.file, re.sub(r"\d+", lambda digits: digits.group().zfill(9), issue.path), issue.message


def allocation_issues(scenarios: Iterable[Scenario]) -> list[Issue]:
    """Differences from the published allocation, row by row, for roles with at least one scenario.

    A role's capabilities must match in order, each with its number of getters.
    """
    present: dict[tuple[str, str], list[tuple[str | None, int]]] = defaultdict(list)
    planned: dict[tuple[str, str], list[tuple[str | None, int]]] = defaultdict(list)
    for scenario in scenarios:
        key = scenario.workspace, scenario.role
        present[key].append((scenario.capability, len(scenario.getters)))
    for slot in taxonomy().allocation:
        planned[slot.workspace, slot.role].append((slot.capability, slot.getters))
    issues = []
    for key, found in present.items():
        name, rows = "/".join(key), planned[key]
        if len(found) != len(rows):
            issues.append(Issue(name, "$", f"{len(rows)} scenarios allocated, found {len(found)}"))
        for index, (has, wants) in enumerate(zip(found, rows, strict=False)):
            if has != wants:
                text = f"allocated {wants[0]} with {wants[1]} getters, found {has[0]} with {has[1]}"
                issues.append(Issue(name, f"$.scenarios[{index}]", text))
    return issues


def _misplaced(located: Sequence[Located], lists: Taxonomy) -> Iterator[Issue]:
    for name, place in {place.file: place for place in located}.items():
        expected = place.scenario.place + ".json"
        # An unknown name is an issue of its own, which says nothing about where the file belongs.
        if name != expected and not any(place_issues(place, lists)):
            yield Issue(name, "$", f"according to its header, this file belongs at {expected}")
