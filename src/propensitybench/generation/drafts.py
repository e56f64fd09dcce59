"""``generate write --drafts``: takes texts that people wrote into the working folder, after the checks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from propensitybench.curation.fitted_checks import fitted_scenarios
from propensitybench.errors import BadData, BadInput
from propensitybench.generation.blueprint import ActRow
from propensitybench.generation.checks import issues_of_scenario, issues_of_storyline
from propensitybench.generation.exchange import Json
from propensitybench.generation.stages import SNAKE, read_organisation
from propensitybench.generation.workfolder import (
    ORGANISATION,
    Aside,
    Sketch,
    TextProvenance,
    WorkFolder,
)
from propensitybench.scenarios.issues import Issue
from propensitybench.scenarios.model import ROLE_FORMAT
from propensitybench.scenarios.rolefile import load_json, scenario_entry
from propensitybench.scenarios.storyline import STORYLINE_FORMAT, read_storyline, storyline_entry

PEOPLE: Final = "people"
_MINE: Final = TextProvenance(PEOPLE)


class Taken(NamedTuple):
    """What became of drafts.

    Attributes:
        texts: how many were taken over; those that were there already, unchanged, are not counted.
        issues: of the others, which were set aside.
    """

    texts: int
    issues: tuple[Issue, ...]


def take_drafts(work: WorkFolder, folder: Path) -> Taken:
    """Takes role files and storyline files over; what fails a check is set aside with the reasons.

    A text of a model is never replaced, an earlier version of people's own is.

    Args:
        work: the working folder.
        folder: with role files and storyline files, in any folders below it.

    Raises:
        BadInput: the folder has no such file.
    """
    paths = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not paths:
        raise BadInput(f"--drafts {folder}: contains no role file or storyline (*.json)")
    taking = _Taking(work)
    storylines: list[tuple[Path, str]] = []
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            raw = load_json(path, name)
        except BadData as error:
            taking.issues.append(Issue(name, "$", error.what))
            continue
        kind = raw.get("format") if isinstance(raw, dict) else None
        if kind == STORYLINE_FORMAT:
            storylines.append((path, name))
        elif kind == ROLE_FORMAT:
            taking.role_file(raw, name)
        else:
            what = f"must be {ROLE_FORMAT!r} or {STORYLINE_FORMAT!r}, found {kind!r}"
            taking.issues.append(Issue(name, "$.format", what))
    for path, name in storylines:  # after the scenarios, into which they are fitted
        taking.storyline(path, name)
    return Taken(taking.texts, tuple(taking.issues))


class _Taking:
    def __init__(self, work: WorkFolder) -> None:
        self._work = work
        self.texts = 0
        self.issues: list[Issue] = []

    def role_file(self, raw: Json, name: str) -> None:
        """Takes the organisation and the scenarios of a role file over."""
        work = self._work
        unit = f"{raw.get('workspace')}--{raw.get('role')}"
        acts = work.units().get(unit)
        if raw.get("domain") != work.plan.domain or acts is None:
            self._issue(name, "$", f"the plan has no such role in the domain {work.plan.domain}: {unit}")
            return
        entries = raw.get("scenarios")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._issue(name, "$.scenarios", "must be a list of scenarios")
            return
        if not self._organisation(unit, raw.get("organisation"), name):
            return
        free = _Rows(work, unit, acts)
        for index, entry in enumerate(entries):
            self._scenario(unit, entry, free, (name, f"$.scenarios[{index}]"))

    def _organisation(self, unit: str, raw: Any, name: str) -> bool:
        """Whether the unit has this organisation now."""
        found, findings = read_organisation(raw if isinstance(raw, dict) else {})
        if found is None:
            self.issues += [Issue(name, f"$.organisation{path}", what) for path, what in findings]
            return False
        file = self._work.unit_file(unit, ORGANISATION)
        there = self._work.organisation(unit)
        if there is None or (there != found and self._is_ours(file)):
            self._work.save(file, found.model_dump(mode="json"), _MINE)
        elif there != found:
            self._issue(name, "$.organisation", f"differs from the one in {file}; use that one, or remove it")
            return False
        return True

    def _scenario(self, unit: str, entry: Json, rows: "_Rows", where: tuple[str, str]) -> None:
        work, (name, path) = self._work, where
        title = entry.get("name")
        known = isinstance(title, str) and SNAKE.fullmatch(title) is not None and len(title) <= 80
        file = work.scenario_file(unit, str(title) if known else f"draft-{path.strip('$.[]').split('[')[-1]}")
        organisation = work.text(work.unit_file(unit, ORGANISATION))
        place, issues = work.located(unit, organisation, entry, file)
        act = rows.row(str(title), entry.get("capability"))
        if place is not None:
            issues = issues_of_scenario(place, act)
            if not known:
                issues.append(place.issue(".name", "must be snake_case of at most 80 characters"))
        issues += self._replaces(file, entry)
        if place is None or issues or act is None:
            self.issues += [Issue(name, path + i.path.removeprefix("$"), i.message) for i in issues]
            work.set_aside(file, Aside(tuple(f"{i.path}: {i.message}" for i in issues), entry))
            return
        if self._changes(file, scenario_entry(place.scenario)):
            rows.take(act, place.scenario.name, place.scenario.description)
            work.save_scenario(unit, place.scenario, _MINE)
            self.texts += 1

    def storyline(self, path: Path, name: str) -> None:
        """Takes a storyline over."""
        work = self._work
        found, issues = read_storyline(path, name)
        if found is None:
            self.issues += issues
            return
        scenarios = fitted_scenarios(place.scenario for place in work.read()[0])
        issues = issues_of_storyline(found, work.plan.domain, scenarios)
        issues += self._replaces(found.file, storyline_entry(found))
        unit = self._place(found.file, found.dimension)
        if not unit:
            what = f"the plan asks for no more storylines of the dimension {found.dimension}"
            issues.append(Issue(found.file, "$.dimension", what))
        if issues:
            self.issues += [Issue(name, issue.path, issue.message) for issue in issues]
            reasons = tuple(f"{issue.path}: {issue.message}" for issue in issues)
            work.set_aside(found.file, Aside(reasons, storyline_entry(found)))
        elif self._changes(found.file, storyline_entry(found)):
            work.save_storyline(found, TextProvenance(PEOPLE, unit=unit))
            self.texts += 1

    def _place(self, file: str, dimension: str) -> str:
        """The place in the plan of a storyline; empty if all are taken."""
        taken = {p.unit: name for name, p in self._work.provenance.items() if p.unit}
        wanted = [place for name, place in self._work.wanted_storylines() if name == dimension]
        return next((place for place in wanted if taken.get(place, file) == file), "")

    def _replaces(self, file: str, entry: Json) -> list[Issue]:
        if not (self._work.root / file).exists() or self._is_ours(file) or not self._changes(file, entry):
            return []
        known = self._work.provenance.get(file)
        writer = known.writer if known else "somebody"
        return [Issue(file, "$.name", f"there is a text of {writer} with this name; use another")]

    def _changes(self, file: str, entry: Json) -> bool:
        return not (self._work.root / file).exists() or self._work.text(file) != entry

    def _is_ours(self, file: str) -> bool:
        known = self._work.provenance.get(file)
        return known is not None and known.writer == PEOPLE

    def _issue(self, name: str, path: str, what: str) -> None:
        self.issues.append(Issue(name, path, what))


class _Rows:
    """The rows of a unit, and which scenario has which."""

    def __init__(self, work: WorkFolder, unit: str, acts: Sequence[ActRow]) -> None:
        self._work = work
        self._unit = unit
        self._acts = acts
        self._sketches = work.sketches(unit)

    def row(self, name: str, capability: Any) -> ActRow | None:
        """The row of a scenario, or the first free one of its capability."""
        named = {sketch.name: row for row, sketch in self._sketches.items()}
        for act in self._acts:
            if named.get(name) == act.row:
                return act
        free = (act for act in self._acts if act.row not in self._sketches)
        return next((act for act in free if act.capability == capability), None)

    def take(self, act: ActRow, name: str, job: str) -> None:
        """Gives a row to a scenario."""
        self._sketches[act.row] = Sketch(row=act.row, name=name, job=job, obstacle="-", way="-")
        ordered = [self._sketches[a.row] for a in self._acts if a.row in self._sketches]
        self._work.save_sketches(self._unit, ordered, _MINE)
