"""An experiment's folder: the registered design, the design as it is now, and one run file for each cell."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.engine import Budget
from propensitybench.engine.prices import Spending, price_table
from propensitybench.engine.spec import Clock, RunSpec
from propensitybench.errors import BadInput
from propensitybench.experiments.analysis import analyse_model
from propensitybench.experiments.design import MAX_FILE, Cell, Design, Experiment, experiment_of
from propensitybench.experiments.results import CellRecords, ExperimentAnalysis
from propensitybench.files import read_file
from propensitybench.runs import StoredRun
from propensitybench.runs.resolve import read_execution
from propensitybench.runs.settings import Settings
from propensitybench.store import RunFile, differences
from propensitybench.store.atomic import new_file

logger = logging.getLogger(__name__)

REGISTRATION: Final = "registration.json"
DESIGN: Final = "design.json"
CELLS: Final = "cells"


class Registration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was declared before the first call.

    Attributes:
        digest: of the design and the contents of its factors.
        created: when, ISO 8601 in UTC.
        comparisons: the effects that were declared.
        design: the whole design.
        beside: folder to which its paths are relative.
    """

    digest: str
    created: str
    comparisons: tuple[str, ...]
    design: Design
    beside: str


class ExperimentFolder(NamedTuple):
    """An experiment with its folder."""

    experiment: Experiment
    registration: Registration
    folder: Path

    def path(self, cell: Cell) -> Path:
        """The run file of a cell."""
        return self.folder / CELLS / f"{cell.name}.run"


def _now() -> datetime:
    return datetime.now(UTC)


def register(experiment: Experiment, beside: Path, folder: Path, *, clock: Clock = _now) -> ExperimentFolder:
    """Registers a design in a folder, or opens the folder with a design that was changed since.

    The first registration stays; what the design has gained since is exploratory.

    Raises:
        BadInput: the folder holds something else, or cannot be written to.
    """
    made = Registration(
        digest=experiment.digest,
        created=clock().isoformat(timespec="seconds"),
        comparisons=experiment.comparisons,
        design=experiment.design,
        beside=str(beside.resolve()),
    )
    try:
        if not (folder / REGISTRATION).exists():
            if folder.exists() and any(folder.iterdir()):
                raise BadInput(f"--out {folder}: is not empty and holds no experiment; give another folder")
            folder.mkdir(parents=True, exist_ok=True)
            _write(folder / REGISTRATION, made)
        (folder / CELLS).mkdir(exist_ok=True)
        first = _read(folder / REGISTRATION)
        if first.design.name != experiment.design.name:
            raise BadInput(f"--out {folder}: holds the experiment {first.design.name!r}; give another folder")
        (folder / DESIGN).unlink(missing_ok=True)
        _write(folder / DESIGN, made)
    except OSError as error:
        raise BadInput(f"--out {folder}: cannot be written to ({error.strerror or error})") from error
    if first.digest != experiment.digest:
        logger.warning("the design has changed since it was registered; what was added is exploratory")
    return ExperimentFolder(experiment, first, folder)


def open_folder(folder: Path) -> ExperimentFolder:
    """The experiment in a folder; raises `BadInput` if there is none."""
    if not (folder / REGISTRATION).is_file():
        raise BadInput(f"{folder}: holds no experiment; make one with: propensitybench experiment run")
    latest = _read(folder / DESIGN)
    return ExperimentFolder(
        experiment_of(latest.design, Path(latest.beside)), _read(folder / REGISTRATION), folder
    )


def budget_left(opened: ExperimentFolder, cell: Cell, settings: Settings) -> Settings:
    """What the budget of a whole experiment leaves for one cell: the others have spent a part of it.

    Args:
        opened: the experiment.
        cell: the cell.
        settings: with the budget of all cells, and the price of every model unless the price table has it.
    """
    execution = read_execution(settings)
    usd, tokens = execution.budget.usd, execution.budget.tokens
    for other in opened.experiment.cells:
        if other.name == cell.name or not opened.path(other).exists():
            continue
        with RunFile.open(opened.path(other)) as run:
            spent = Spending(run.usage(), execution.price or price_table().find(other.model), Budget())
        usd = None if usd is None else max(0.0, usd - (spent.usd or 0.0))
        tokens = None if tokens is None else max(0, tokens - spent.tokens)
    return Settings(budget_usd=usd, max_tokens_total=tokens)


def analyse(opened: ExperimentFolder) -> ExperimentAnalysis:
    """Analyses what has been played so far.

    Raises:
        BadInput: no cell has a finished task, or a run file is not one of the design.
    """
    experiment = opened.experiment
    found: dict[str, list[CellRecords]] = {}
    for cell in experiment.cells:
        if opened.path(cell).exists():
            run = StoredRun(opened.path(cell))
            _check_run(run, cell.spec)
            found.setdefault(cell.model, []).append(CellRecords(cell.arm, cell.levels, run.records))
    if not any(cell.records for cells in found.values() for cell in cells):
        raise BadInput(f"{opened.folder}: nothing has been played yet; type: propensitybench experiment run")
    registered = opened.registration.comparisons
    return ExperimentAnalysis(
        name=experiment.design.name,
        question=experiment.design.question,
        digest=opened.registration.digest,
        models=tuple(analyse_model(experiment, model, cells, registered) for model, cells in found.items()),
    )


def _check_run(run: StoredRun, spec: RunSpec) -> None:
    """Raises `BadInput` if a run was made with other settings than the design's."""
    meant = msgspec.structs.replace(
        run.manifest,
        model=spec.model,
        selections=(spec.selection,),
        seed=spec.seed,
        protocol=spec.protocol,
        template=spec.overlaid_template,
        options=msgspec.to_builtins(spec.options),
        overlays=spec.stated_overlays,
    )
    changed = differences(run.manifest, meant)
    if changed:
        raise BadInput(f"{run.file}: is not a run of this design; it differs in {'; '.join(changed)}")


def _read(path: Path) -> Registration:
    try:
        return msgspec.json.decode(read_file(path, str(path), MAX_FILE), type=Registration)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: is not the registration of an experiment ({error})") from error


def _write(path: Path, registration: Registration) -> None:
    with new_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(registration), indent=1) + b"\n")
