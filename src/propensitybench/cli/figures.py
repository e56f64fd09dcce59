"""``propensitybench figures``: the figures of runs, as files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.fits import fit_hazards
from propensitybench.cli.output import print_note
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import analyse
from propensitybench.pages.figures import FORMATS, write_figures
from propensitybench.presentation.progress import Bar
from propensitybench.presentation.words import cautions_of
from propensitybench.runs import comparable
from propensitybench.runs.read import runs_in


def command(
    files: options.RunPaths,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder for the figures; earlier figures are replaced."),
    ],
    form: Annotated[
        Literal["svg", "png", "both"],
        typer.Option("--format", help="SVG, PNG at 300 dots per inch, or both."),
    ] = "both",
    hierarchical: options.Hierarchical = False,
) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder")
    runs = comparable(runs_in(files))
    for note in runs.notes:
        print_note(f"note: {note}")
    hazards = fit_hazards(runs.runs) if hierarchical else None
    forms = FORMATS if form == "both" else (form,)
    with Bar("figures") as bar:
        written = write_figures(analyse(runs.runs), out, forms, hazards, on_figure=bar.count)
    for figure in written:
        print(f"{figure.title} ({figure.width} in wide): {', '.join(map(str, figure.files))}")
        print(f"  {figure.caption}")
    for line in cautions_of([run.score() for run in runs.runs]):
        print(line)
