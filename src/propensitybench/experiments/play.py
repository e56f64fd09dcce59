"""Plays the cells of an experiment: `propensitybench.experiment`."""

import os
from pathlib import Path
from typing import Unpack

from propensitybench.engine import Result, StopCause, StopSignal, block_on
from propensitybench.engine.agents import check_address
from propensitybench.errors import BadInput, RunStopped
from propensitybench.experiments.design import Cell, read_experiment
from propensitybench.experiments.folder import (
    ExperimentFolder,
    analyse,
    budget_left,
    open_folder,
    register,
)
from propensitybench.experiments.results import ExperimentAnalysis
from propensitybench.files import file_name
from propensitybench.runs.execute import OnProgress
from propensitybench.runs.settings import KEPT, Settings
from propensitybench.runs.start import Start
from propensitybench.runs.stored import StoredRun
from propensitybench.runs.trust import Confirm, check_trusted


def experiment(
    design: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    trust_endpoint: bool = False,
    on_progress: OnProgress | None = None,
    **settings: Unpack[Settings],
) -> ExperimentAnalysis:
    """Registers a design, plays its cells, a run file each, and analyses them; also works in a notebook.

    The same call plays what is unfinished: no reply is paid for twice. Once all is played it only analyses.

    Args:
        design: the file of the design.
        out: the experiment's folder.
        trust_endpoint: whether any endpoint that the design names may be used.
        on_progress: called after each task and every second, with the progress of the cell.
        settings: those that say how a run is played, such as ``concurrency``; ``budget_usd`` and
            ``max_tokens_total`` are for all cells together.

    Raises:
        BadInput: the design, the folder or a setting cannot be used.
        RunStopped: a budget is used up, the provider can no longer answer, or tasks errored; the same call
            goes on.
        KeyboardInterrupt: Ctrl-C; the same call goes on.
    """
    if wrong := sorted(settings.keys() - set(KEPT)):
        raise BadInput(f"experiment: {wrong[0]}: is no setting of how cells are played: {', '.join(KEPT)}")
    opened, stop = registered(Path(design), Path(out), trust_endpoint=trust_endpoint), StopSignal()

    async def play() -> None:
        for cell in opened.experiment.cells:
            start = start_cell(opened, cell, settings)
            await start.begin()
            _check_ended(opened, cell, await start.play(on_progress, stop))

    block_on(play, stop)
    return analyse(opened)


def analyse_experiment(folder: str | os.PathLike[str]) -> ExperimentAnalysis:
    """Analyses what has been played so far of an experiment.

    Args:
        folder: the experiment's.

    Raises:
        BadInput: it holds no experiment, no finished task, or a run that is not of its design.
    """
    return analyse(open_folder(Path(folder)))


def registered(
    design: Path, out: Path, *, trust_endpoint: bool, confirm: Confirm | None = None
) -> ExperimentFolder:
    """The folder of a design, which is registered there before its first call.

    Args:
        design: its file.
        out: the folder.
        trust_endpoint: whether any endpoint that the design names may be used.
        confirm: asks the user about one that is not known; None refuses it.

    Raises:
        BadInput: the design, a model or the folder cannot be used, or an endpoint is not confirmed.
    """
    made = read_experiment(design)
    for model in made.design.models:
        check_address(model.name, model.options)
    for model in () if trust_endpoint else made.design.models:
        check_trusted(file_name(design), model.options, confirm)
    return register(made, design.parent, out)


def start_cell(opened: ExperimentFolder, cell: Cell, settings: Settings) -> Start:
    """The run of a cell, whose budget is what the others leave of that of all cells together."""
    settings = Settings(**{**settings, **budget_left(opened, cell, settings)})
    return Start(opened.path(cell), settings, cell.spec, as_before=False)


def _check_ended(opened: ExperimentFolder, cell: Cell, result: Result) -> None:
    """Raises `RunStopped` unless every task of a cell has ended."""
    why = ""
    if result.cause is not None and result.finished < result.total:
        why = result.reason
    elif errored := StoredRun(opened.path(cell)).score().tasks.errored:
        why = f"{errored} tasks errored"
    if why:
        bad_input = result.cause is StopCause.BAD_INPUT
        raise RunStopped(f"{cell.name}: {why}; the same call resumes the experiment", bad_input=bad_input)
