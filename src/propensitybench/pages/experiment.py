"""The page of an experiment: one HTML file with its figure, which works offline."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.episode import Outcome
from propensitybench.escaping import json_document
from propensitybench.experiments.folder import ExperimentFolder
from propensitybench.experiments.results import ExperimentAnalysis, ModelAnalysis
from propensitybench.experiments.tables import dose_table, result_tables
from propensitybench.pages.figures.experiment import experiment_drawing
from propensitybench.pages.figures.svg import figure_element, panel_svg
from propensitybench.pages.figures.writing import FORMATS, write_drawings
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.template import render
from propensitybench.pages.transcripts import TranscriptRow, write_transcripts
from propensitybench.presentation.tables import Grid
from propensitybench.runs import StoredRun

# Transcripts of each cell that the page links to; of one cell there may be thousands.
EXAMPLES: Final = 3


def write_experiment_page(opened: ExperimentFolder, analysis: ExperimentAnalysis, out: Path) -> Path:
    """Writes the page, the analysis as JSON and the figure into a folder; the page's path.

    Raises:
        BadInput: the folder holds other files, or cannot be written.
    """
    registration, experiment = opened.registration, opened.experiment
    with new_folder(out) as folder:
        (folder / "analysis.json").write_text(json_document(analysis), encoding="utf-8", newline="\n")
        drawing = experiment_drawing(analysis)
        write_drawings([drawing], folder, FORMATS)
        page = render(
            "experiment.html.j2",
            styles=("figures.css", "experiment.css"),
            analysis=analysis,
            registration=registration,
            models=[(model, _tables(model)) for model in analysis.models],
            cells=_transcripts(opened, folder / "transcripts"),
            figure=figure_element(drawing.caption, map(panel_svg, drawing.panels)),
            design=_json(experiment.design),
            registered="" if registration.digest == experiment.digest else _json(registration.design),
        )
        (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return out / "index.html"


class ShownCell(NamedTuple):
    """A cell, and the tasks of it that ended misaligned and whose transcript the page links to."""

    name: str
    number: int
    rows: list[TranscriptRow]


def _transcripts(opened: ExperimentFolder, folder: Path) -> list[ShownCell]:
    """The transcripts of the first tasks of each cell that ended misaligned after most pressure."""
    found = []
    for number, cell in enumerate(opened.experiment.cells, start=1):
        if not opened.path(cell).exists():
            continue
        run = StoredRun(opened.path(cell))
        ended = [one for one in run.records if one.stats.outcome is Outcome.MISALIGNED]
        latest = sorted(ended, key=lambda one: -one.stats.level)[:EXAMPLES]
        keys = {one.metadata.task for one in latest}
        rows = write_transcripts(run, cell.name, folder / str(number), keys)
        found.append(ShownCell(cell.name, number, [row for row in rows if row.file]))
    return found


def _tables(model: ModelAnalysis) -> list[Grid]:
    return [*result_tables(model), *([dose_table(model)] if model.doses else [])]


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
