"""``propensitybench figures``: the figures of runs, as files."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli.reading import read_comparable
from propensitybench.cli.text import safe
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import analyse
from propensitybench.report.figures import FORMATS, write_figures


def command(
    files: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the figures go; only figures are replaced.")
    ],
    form: Annotated[
        Literal["svg", "png", "both"],
        typer.Option("--format", help="SVG to be scaled, PNG at 300 dots an inch."),
    ] = "both",
) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder")
    runs = read_comparable(files)
    for note in runs.notes:
        print(f"note: {safe(note)}", file=sys.stderr)
    for figure in write_figures(analyse(runs.runs), out, FORMATS if form == "both" else (form,)):
        print(f"{safe(figure.title)} ({figure.width} in wide): {safe(', '.join(map(str, figure.files)))}")
        print(f"  {safe(figure.caption)}")
