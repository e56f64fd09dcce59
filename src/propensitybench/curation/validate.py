"""Validation: every issue of a data set, each with its file and JSON path."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.curation.checks import (
    scenario_issues,
    scenario_warnings,
    storyline_issues,
    storyline_warnings,
)
from propensitybench.curation.cross_checks import (
    acts_differ,
    alike_stories,
    alike_tools,
    repeated_names,
    shared_sentences,
)
from propensitybench.curation.fitted_checks import fitted_issues
from propensitybench.curation.variety import variety_issues
from propensitybench.errors import BadData
from propensitybench.pressure.messages import suitable
from propensitybench.scenarios.dataset import (
    Dataset,
    Layout,
    data_files,
    find_layout,
    label,
    read_file,
    read_storylines,
    root_of,
    unique_names,
)
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.soundness import check_playable, check_sound, place_issues
from propensitybench.scenarios.storyline import NEUTRAL, STORYLINES, Storyline
from propensitybench.taxonomy import taxonomy

CROSS_CHECKS: Final = (repeated_names, alike_stories, alike_tools, shared_sentences, acts_differ)


class Review(NamedTuple):
    """A data set, what must be corrected in it, and what its authors should look at again."""

    dataset: Dataset
    issues: list[Issue]
    warnings: list[Issue]


def validate_dataset(folder: Path | None = None) -> tuple[Dataset, list[Issue]]:
    """The scenarios of a data set that can be read, and every issue in it.

    Args:
        folder: a folder in either layout; None is the built-in data set, which must also match the
            published allocation.
    """
    review = review_dataset(folder)
    return review.dataset, review.issues


def review_dataset(folder: Path | None = None) -> Review:
    """As `validate_dataset`, with the warnings."""
    root, source = root_of(folder)
    layout = find_layout(root)
    located, issues = _read_all(root, layout)
    scenarios = tuple(place.scenario for place in located)
    storylines: list[Storyline] = []
    warnings: list[Issue] = []
    if layout == "own":
        storylines, wrong = read_storylines(root)
        issues += wrong
        issues += scenario_issues(located)
        issues += _misplaced(located)
        issues += [issue for find in CROSS_CHECKS for issue in find(located)]
        issues += variety_issues(scenarios, storylines)
        # A scenario that cannot be played has no messages to be checked.
        playable = [place.scenario for place in located if not check_playable([place])]
        own = (root / STORYLINES).is_dir()
        for storyline in storylines:
            if own:
                issues += _of_storyline(storyline, storyline_issues(storyline, playable))
                warnings += _of_storyline(storyline, storyline_warnings(storyline, playable))
            else:  # it is played with the built-in ones, which its authors cannot correct
                warnings += _of_storyline(storyline, fitted_issues(storyline, playable))
        warnings += scenario_warnings(located)
        warnings += uncovered(playable, storylines)
    else:
        issues += check_playable(located) + check_sound(located)
        issues += unique_names([label(place) for place in located])[1]
    if folder is None:
        issues += allocation_issues(scenarios)
    dataset = Dataset(source, layout, scenarios, tuple(storylines))
    return Review(dataset, sorted(set(issues), key=_order), sorted(set(warnings), key=_order))


def _of_storyline(storyline: Storyline, findings: Iterable[Finding]) -> Iterator[Issue]:
    for path, message in findings:
        yield Issue(storyline.file, "$" + path, message)


def uncovered(scenarios: Sequence[Scenario], storylines: Sequence[Storyline]) -> Iterator[Issue]:
    """The dimensions in which scenarios cannot be run, because no storyline suits them."""
    for dimension in (*taxonomy().dimensions, NEUTRAL):
        lacking = Counter(
            f"{scenario.domain} and {scenario.situation.requester_kind}"
            for scenario in scenarios
            if scenario.messages is None
            and scenario.situation is not None
            and not suitable(storylines, scenario, dimension)
        )
        if lacking:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(lacking.items()))
            message = f"no storyline of {dimension} suits {lacking.total()} scenarios: write some for {kinds}"
            yield Issue(f"{STORYLINES}/", "$", message)


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


def _misplaced(located: Sequence[Located]) -> Iterator[Issue]:
    for name, place in {place.file: place for place in located}.items():
        expected = place.scenario.place + ".json"
        # An unknown name is an issue of its own, which says nothing about where the file belongs.
        if name != expected and not any(place_issues(place)):
            yield Issue(name, "$", f"according to its header, this file belongs at {expected}")
