"""Plans a set of scenarios: one unit of work for each role, and the act grid, drawn by lot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.digests import digest, seed_from, shuffled
from propensitybench.errors import BadData, BadInput, UnknownName
from propensitybench.files import read_file
from propensitybench.generation.blueprint import MAX_FILE, ActRow, read_rows, whole
from propensitybench.generation.workfolder import PLAN_FORMAT, WorkFolder, WorkPlan
from propensitybench.scenarios.storyline import NEUTRAL
from propensitybench.taxonomy import Slot, taxonomy

SEVERITIES: Final = 4
# CONTENT rule: at most two scenarios in a cell mechanism x target x gain, never in one workspace.
MAX_IN_CELL: Final = 2
# Six for each dimension and domain: then no two messages of a sitting share a script.
STORYLINES: Final = 6
Cell = tuple[str, str, str]


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases of a capability from which acts are drawn."""

    mechanisms: tuple[str, ...]
    targets: tuple[str, ...]
    gains: tuple[str, ...]

    def cells(self) -> list[Cell]:
        """Every combination."""
        return [(m, t, g) for m in self.mechanisms for t in self.targets for g in self.gains]


class _Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    capabilities: dict[str, Phrases]
    note: str = ""


class Wanted(NamedTuple):
    """What to plan.

    Attributes:
        domain: of all scenarios.
        allocation: a file in the form of the built-in allocation, which is the default.
        vocabulary: a file of phrases; by default the one of the package.
        storylines: how many for each dimension.
        seed: random seed.
    """

    domain: str
    allocation: Path | None = None
    vocabulary: Path | None = None
    storylines: Mapping[str, int] | None = None
    seed: int = 0


def make_plan(wanted: Wanted, out: Path) -> WorkFolder:
    """Plans a set in a folder that does not exist yet or is empty.

    The same arguments give the same files, byte for byte.

    Raises:
        BadInput: the domain or a dimension does not exist, the folder is not empty, or the vocabulary has too
            few phrases.
        BadData: the allocation or the vocabulary cannot be read.
    """
    taxonomy().domain(wanted.domain, "--domain")
    slots = [slot for slot in read_allocation(wanted.allocation) if slot.domain == wanted.domain]
    if not slots:
        raise BadInput(f"--allocation {wanted.allocation}: has no row of the domain {wanted.domain}")
    phrases, source = read_vocabulary(wanted.domain, wanted.vocabulary)
    storylines = dict(wanted.storylines if wanted.storylines is not None else every_dimension(STORYLINES))
    for name in storylines:
        if name != NEUTRAL:
            taxonomy().dimension(name, "--dimension")
    plan = WorkPlan(
        format=PLAN_FORMAT,
        domain=wanted.domain,
        seed=wanted.seed,
        storylines=storylines,
        allocation=digest(*(f"{slot}" for slot in slots)),
        version=version("propensitybench"),
    )
    return WorkFolder.create(out, plan, draw_acts(slots, phrases, source, wanted.seed))


def every_dimension(number: int) -> dict[str, int]:
    """That many storylines for each dimension and without pressure."""
    return dict.fromkeys((*taxonomy().dimensions, NEUTRAL), number)


def read_allocation(path: Path | None) -> Sequence[Slot]:
    """The rows of an allocation file, or of the built-in one; every name in it exists.

    Raises:
        BadData: a row cannot be read, or comes twice.
        UnknownName: a domain, workspace, role or capability does not exist.
    """
    if path is None:
        return taxonomy().allocation
    lists = taxonomy()
    slots: dict[Slot, int] = {}
    for line, row in read_rows(path, Slot._fields):
        where = f"{path} line {line}"
        domain, workspace = lists.domain(row["domain"], where), lists.workspace(row["workspace"], where)
        lists.role(row["role"], workspace.name, where)
        capability = lists.capability(row["capability"], where)
        for name in (workspace, capability):
            if name.domain != domain.name:
                raise BadData(where, f"{name.name} belongs to {name.domain}, not to {domain.name}")
        numbers = (whole(row[name], f"{where}: {name}") for name in ("nth", "getters"))
        slot = Slot(domain.name, workspace.name, row["role"], capability.name, *numbers)
        if slot.getters not in range(4, 7):
            raise BadData(f"{where}: getters", f"must be 4 to 6, found {slot.getters}")
        first = slots.setdefault(slot, line)
        if first != line:
            raise BadData(where, f"repeats line {first}")
    return tuple(slots)


def read_vocabulary(domain: str, path: Path | None) -> tuple[Mapping[str, Phrases], str]:
    """The phrases of each capability of a domain, and the file's name for messages.

    Raises:
        BadData: the file cannot be read.
    """
    if path is None:
        source = f"generation/data/acts/{domain}.json"
        raw = resources.files(__package__).joinpath("data", "acts", f"{domain}.json").read_bytes()
    else:
        source = f"--vocabulary {path}"
        raw = read_file(path, source, MAX_FILE)
    try:
        found = msgspec.json.decode(raw, type=_Vocabulary).capabilities
    except msgspec.DecodeError as error:
        raise BadData(source, str(error)) from error
    known = taxonomy().domains[domain].capabilities
    for name, phrases in found.items():
        if name not in known:
            raise UnknownName("capability", name, known, source)
        for kind in Phrases.__struct_fields__:
            texts = getattr(phrases, kind)
            if not texts or not all(text.strip() for text in texts) or len(set(texts)) < len(texts):
                raise BadData(
                    f"{source} $.capabilities.{name}.{kind}", "must be a list of different, non-empty phrases"
                )
    return found, source


def draw_acts(slots: Sequence[Slot], phrases: Mapping[str, Phrases], source: str, seed: int) -> list[ActRow]:
    """The act grid: a cell and a severity for each row, in the order of the rows.

    A row gets the cell whose phrases were used least, first in its workspace and then in all; ties are
    broken by lot.

    Raises:
        BadInput: a capability has no phrases, or too few.
    """
    severities = shuffled(range(len(slots)), seed, "severity")
    drawn = _Grid(seed)
    acts: dict[int, ActRow] = {}
    for index in shuffled(range(len(slots)), seed, "order"):
        slot = slots[index]
        if slot.capability not in phrases:
            raise BadInput(f"{source}: has no phrases for the capability {slot.capability!r}")
        cell = drawn.cell(slot, phrases[slot.capability].cells())
        if cell is None:
            raise BadInput(
                f"{source}: has too few phrases for {slot.capability!r}: all cells are used; "
                "add mechanisms, targets or gains"
            )
        unit = f"{slot.workspace}--{slot.role}"
        severity = severities[index] % SEVERITIES + 1
        acts[index] = ActRow(unit, *slot[1:], severity, *cell)
    return [acts[index] for index in sorted(acts)]


class _Grid:
    """The cells that have been drawn."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._uses: Counter[Cell] = Counter()
        self._in_workspace: set[tuple[str, Cell]] = set()
        self._phrases: Counter[tuple[str, ...]] = Counter()

    def cell(self, slot: Slot, cells: Iterable[Cell]) -> Cell | None:
        """A cell for a row; None if there is none left."""
        free = [
            cell
            for cell in cells
            if self._uses[cell] < MAX_IN_CELL and (slot.workspace, cell) not in self._in_workspace
        ]
        if not free:
            return None
        chosen = min(
            free,
            key=lambda cell: (*self._wear(slot, cell), seed_from(self._seed, *slot[1:4], slot.nth, *cell)),
        )
        self._uses[chosen] += 1
        self._in_workspace.add((slot.workspace, chosen))
        for phrase in chosen:
            self._phrases[phrase, slot.workspace] += 1
            self._phrases[phrase, ""] += 1
        return chosen

    def _wear(self, slot: Slot, cell: Cell) -> tuple[int, int, int]:
        here = sum(self._phrases[phrase, slot.workspace] for phrase in cell)
        return self._uses[cell], here, sum(self._phrases[phrase, ""] for phrase in cell)
