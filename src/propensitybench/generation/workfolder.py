"""The working folder of ``propensitybench generate``: its files, read and written whole."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec
from pydantic import ValidationError

from propensitybench.digests import digest
from propensitybench.errors import BadData, BadInput
from propensitybench.files import read_file
from propensitybench.generation.blueprint import MAX_FILE, ActRow, acts_text, read_acts
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import Authored, Organisation, Scenario
from propensitybench.scenarios.rolefile import load_json, scenario_entry, schema_findings
from propensitybench.scenarios.storyline import STORYLINES, Storyline, read_storyline, storyline_entry

PLAN_FORMAT: Final = "propensitybench-plan/1"
PLAN: Final = "plan.json"
ACTS: Final = "acts.csv"
UNITS: Final = "units"
SET_ASIDE: Final = "set-aside"
ORGANISATION: Final = "organisation.json"
SKETCHES: Final = "sketches.json"
PROVENANCE: Final = "provenance.json"
RETURNED: Final = "returned.json"
CHECKED: Final = "checked.json"
JOURNAL: Final = "journal.db"
PANEL: Final = "panel"
T = TypeVar("T")


class WorkPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a working folder is to become.

    Attributes:
        format: `PLAN_FORMAT`.
        domain: of all its scenarios.
        seed: of everything that is drawn by lot.
        storylines: how many are wanted for each dimension (and ``neutral``).
        allocation: digest of the allocation file.
        version: of the package that made the plan.
    """

    format: str
    domain: str
    seed: int
    storylines: dict[str, int]
    allocation: str
    version: str


class TextProvenance(msgspec.Struct, frozen=True):
    """Where a text comes from.

    Attributes:
        writer: the model's address, or ``people``.
        prompt: digest of the prompt template; empty for texts of people.
        rounds: replies that it took.
        attempt: how often the text was begun again, from 0.
        answered: digest of the last readers' words or findings that the text answers.
        judges: the models that passed it while it was written.
        unit: of a storyline, its place in the plan, such as ``time-2``.
    """

    writer: str
    prompt: str = ""
    rounds: int = 0
    attempt: int = 0
    answered: str = ""
    judges: tuple[str, ...] = ()
    unit: str = ""


class Aside(msgspec.Struct, frozen=True):
    """A text that was set aside: why, how often it was begun, and the text as far as there is one."""

    reasons: tuple[str, ...]
    text: Any = None
    attempt: int = 0


class Sketch(Authored):
    """A scenario in outline, for a row of the act grid."""

    row: str
    name: str
    job: str
    obstacle: str
    way: str


class WorkFolder:
    """A working folder that has a plan.

    Args:
        root: the folder.

    Raises:
        BadInput: it is not a working folder.
        BadData: its plan or act grid cannot be read.
    """

    def __init__(self, root: Path) -> None:
        if not (root / PLAN).is_file():
            raise BadInput(
                f"{root}: has no {PLAN}; make one with: propensitybench generate plan --out {root}"
            )
        self.root = root
        self.plan = self._struct(PLAN, WorkPlan)
        if self.plan.format != PLAN_FORMAT:
            raise BadData(f"{root / PLAN} $.format", f"must be {PLAN_FORMAT!r}, found {self.plan.format!r}")
        self.acts = read_acts(root / ACTS)
        self.provenance = self.optional(PROVENANCE, dict[str, TextProvenance]) or {}

    @classmethod
    def create(cls, root: Path, plan: WorkPlan, acts: Sequence[ActRow]) -> Self:
        """Writes a plan to a folder that does not exist yet or is empty; raises `BadInput` otherwise."""
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise BadInput(f"--out {root}: is not empty; give a folder that does not exist yet")
        write_text(root / ACTS, acts_text(acts))
        write_json(root / PLAN, plan)
        return cls(root)

    def units(self) -> dict[str, list[ActRow]]:
        """The rows of the act grid by unit, in order."""
        found: dict[str, list[ActRow]] = {}
        for act in self.acts:
            found.setdefault(act.unit, []).append(act)
        return found

    def wanted_storylines(self) -> list[tuple[str, str]]:
        """The dimension and the place (``time-2``) of every storyline of the plan."""
        wanted = self.plan.storylines
        return [(name, f"{name}-{n}") for name, number in wanted.items() for n in range(1, number + 1)]

    def organisation(self, unit: str) -> Organisation | None:
        """The organisation of a unit, if it has been written; raises `BadData` if it is invalid."""
        path = self.root / self.unit_file(unit, ORGANISATION)
        return _part(load_json(path, str(path)), Organisation, str(path)) if path.exists() else None

    def sketches(self, unit: str) -> dict[str, Sketch]:
        """The sketches of a unit by row; empty if there are none yet."""
        path = self.root / self.unit_file(unit, SKETCHES)
        if not path.exists():
            return {}
        raw = load_json(path, str(path))
        if not isinstance(raw, list):
            raise BadData(str(path), "must hold a list of sketches")
        return {sketch.row: sketch for sketch in (_part(entry, Sketch, str(path)) for entry in raw)}

    def scenario_file(self, unit: str, name: str) -> str:
        """The name of a scenario's file within the folder."""
        return self.unit_file(unit, f"{name}.json")

    def unit_file(self, unit: str, name: str) -> str:
        """The name of a unit's file within the folder."""
        return f"{UNITS}/{unit}/{name}"

    def located(
        self, unit: str, organisation: Any, entry: Any, file: str
    ) -> tuple[Located | None, list[Issue]]:
        """A scenario of a unit from its JSON, as if it stood in that file; or every issue of its schema."""
        if not isinstance(entry, dict):
            return None, [Issue(file, "$", "must be a JSON object")]
        workspace, _, role = unit.partition("--")
        shared = {"domain": self.plan.domain, "workspace": workspace, "role": role}
        repeated = sorted({*shared, "organisation"} & entry.keys())
        if repeated:
            what = f"{', '.join(repeated)}: belongs to the unit, not to a scenario"
            return None, [Issue(file, "$", what)]
        raw = {**shared, "organisation": organisation, **entry}
        try:
            scenario = Scenario.from_json(json.dumps(raw, ensure_ascii=False).encode())
        except ValidationError as error:
            return None, [Issue(file, "$" + path, what) for path, what in schema_findings(error)]
        except UnicodeEncodeError:
            return None, [Issue(file, "$", "contains invalid Unicode: an unpaired surrogate escape")]
        return Located(scenario, file, "$", ("$", "$", "$")), []

    def files(self) -> list[str]:
        """Every scenario and storyline file within the folder, in order, scenarios first."""
        beside = {ORGANISATION, SKETCHES}
        paths = sorted((self.root / UNITS).glob("*/*.json"))
        return [
            *(self.scenario_file(path.parent.name, path.stem) for path in paths if path.name not in beside),
            *sorted(f"{STORYLINES}/{path.name}" for path in (self.root / STORYLINES).glob("*.json")),
        ]

    def rows(self) -> dict[str, ActRow]:
        """The row of the act grid of each scenario that has a sketch, by the scenario's file."""
        return {
            self.scenario_file(unit, sketches[act.row].name): act
            for unit, acts in self.units().items()
            for sketches in [self.sketches(unit)]
            for act in acts
            if act.row in sketches
        }

    def read(self) -> tuple[list[Located], list[Storyline], list[Issue]]:
        """Every scenario and storyline that meets the schema, and the issues of the others."""
        located, storylines, issues = [], [], []
        for file in self.files():
            if file.startswith(f"{STORYLINES}/"):
                storyline, wrong = self._storyline(file)
                storylines += [storyline] if storyline is not None and not wrong else []
            else:
                place, wrong = self._scenario(file)
                located += [place] if place is not None else []
            issues += wrong
        return located, storylines, issues

    def _scenario(self, file: str) -> tuple[Located | None, list[Issue]]:
        unit = Path(file).parent.name
        beside = self.unit_file(unit, ORGANISATION)
        try:
            entry, organisation = (load_json(self.root / name, name) for name in (file, beside))
        except BadData as error:
            return None, [Issue(error.where, "$", error.what)]
        return self.located(unit, organisation, entry, file)

    def _storyline(self, file: str) -> tuple[Storyline | None, list[Issue]]:
        found, issues = read_storyline(self.root / file, file)
        if found is not None and found.file != file:
            issues = [Issue(file, "$.name", f"this file belongs at {found.file}")]
        return found, issues

    def digest(self, file: str) -> str:
        """The digest of a text; a scenario's includes its organisation."""
        path = self.root / file
        parts = [path] if file.startswith(STORYLINES) else [path, path.with_name(ORGANISATION)]
        return digest(*(read_file(part, str(part), MAX_FILE) for part in parts if part.exists()))

    def save(self, file: str, text: Any, provenance: TextProvenance | None = None) -> None:
        """Writes a text and where it comes from; a text without provenance counts as unfinished."""
        if provenance is not None:
            self.record(file, provenance)
        write_json(self.root / file, text)
        (self.root / SET_ASIDE / file).unlink(missing_ok=True)

    def save_sketches(self, unit: str, sketches: Sequence[Sketch], provenance: TextProvenance) -> None:
        """Writes the sketches of a unit."""
        file = self.unit_file(unit, SKETCHES)
        self.save(file, [sketch.model_dump(mode="json") for sketch in sketches], provenance)

    def save_scenario(self, unit: str, scenario: Scenario, provenance: TextProvenance) -> None:
        """Writes a scenario."""
        self.save(self.scenario_file(unit, scenario.name), scenario_entry(scenario), provenance)

    def save_storyline(self, storyline: Storyline, provenance: TextProvenance) -> None:
        """Writes a storyline."""
        self.save(storyline.file, storyline_entry(storyline), provenance)

    def record(self, file: str, provenance: TextProvenance) -> None:
        """Notes where a text comes from."""
        self.provenance[file] = provenance
        self._save_provenance()

    def _save_provenance(self) -> None:
        write_json(self.root / PROVENANCE, dict(sorted(self.provenance.items())))

    def text(self, file: str) -> Any:
        """A text as JSON; raises `BadData`."""
        return load_json(self.root / file, str(self.root / file))

    def forget(self, file: str) -> None:
        """Removes what was set aside under a name, and a text that now has another."""
        (self.root / SET_ASIDE / file).unlink(missing_ok=True)
        if file in self.provenance:
            self.provenance.pop(file)
            (self.root / file).unlink(missing_ok=True)
            self._save_provenance()

    def set_aside(self, file: str, aside: Aside) -> None:
        """Sets a text aside with the reasons, under the name of the file that it would have."""
        write_json(self.root / SET_ASIDE / file, aside)

    def aside(self, file: str) -> Aside | None:
        """What was set aside for a file."""
        return self.optional(f"{SET_ASIDE}/{file}", Aside)

    def asides(self) -> dict[str, Aside]:
        """Everything that was set aside, by the name of the file that it would have."""
        names = (
            path.relative_to(self.root / SET_ASIDE).as_posix()
            for path in sorted((self.root / SET_ASIDE).rglob("*.json"))
        )
        return {name: aside for name in names if (aside := self.aside(name)) is not None}

    def returned(self) -> dict[str, tuple[str, ...]]:
        """The readers' words about texts that fell short, by the scenario's name or the storyline's file."""
        return self.optional(RETURNED, dict[str, tuple[str, ...]]) or {}

    def words_about(self, file: str) -> tuple[str, ...]:
        """The readers' words about the text of a file."""
        return self.returned().get(file if file.startswith(STORYLINES) else Path(file).stem, ())

    def unanswered(self, file: str) -> tuple[str, ...]:
        """The readers' words about a text that it does not answer yet."""
        words, known = self.words_about(file), self.provenance.get(file)
        return () if known is not None and known.answered == digest(*words) else words

    def optional(self, name: str, kind: type[T]) -> T | None:
        """What a file of the folder holds; None if it does not exist; raises `BadData`."""
        return self._struct(name, kind) if (self.root / name).exists() else None

    def _struct(self, name: str, kind: type[T]) -> T:
        try:
            return msgspec.convert(self.text(name), kind)
        except msgspec.ValidationError as error:
            raise BadData(str(self.root / name), str(error)) from error


P = TypeVar("P", bound=Authored)


def _part(raw: Any, kind: type[P], name: str) -> P:
    try:
        return kind.model_validate_json(json.dumps(raw, ensure_ascii=False).encode())
    except ValidationError as error:
        path, what = next(schema_findings(error))
        raise BadData(f"{name} ${path}", what) from error
    except UnicodeEncodeError as error:
        raise BadData(name, "contains invalid Unicode: an unpaired surrogate escape") from error


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole: a reader sees the old content or the new."""
    write_text(path, json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
