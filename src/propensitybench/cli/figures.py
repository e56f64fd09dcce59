"""``propensitybench figures``: the figures of runs, as files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.errors import BadInput


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
    from propensitybench.cli import hierarchy
    from propensitybench.cli.output import tell
    from propensitybench.cli.reading import read_comparable
    from propensitybench.cli.text import safe
    from propensitybench.metrics.analysis import analyse
    from propensitybench.pages.figures import FORMATS, write_figures

    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out}: is a file; give a folder")
    runs = read_comparable(files)
    for note in runs.notes:
        tell(f"note: {note}")
    fits = hierarchy.fits(runs.runs) if hierarchical else None
    for figure in write_figures(analyse(runs.runs), out, FORMATS if form == "both" else (form,), fits):
        print(f"{safe(figure.title)} ({figure.width} in wide): {safe(', '.join(map(str, figure.files)))}")
        print(f"  {safe(figure.caption)}")
