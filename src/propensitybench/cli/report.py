"""``propensitybench report``: an HTML report of runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.pages.page_write import report
from propensitybench.runs.read import runs_in


def command(
    files: options.RunPaths,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="A folder that does not exist yet, or that holds an earlier report.",
            show_default=False,
        ),
    ],
    transcripts: Annotated[
        Literal["all", "failed", "none"],
        typer.Option("--transcripts", help="Tasks that get a transcript page; failed: ended misaligned."),
    ] = "all",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw figures: in the page, and as SVG for papers.")
    ] = True,
    publishable: Annotated[
        bool,
        typer.Option(
            "--publishable",
            help="Leave out what names your machine or people: folders, addresses of endpoints, texts of "
            "errors, readers of transcripts.",
        ),
    ] = False,
) -> None:
    written = report(runs_in(files), out, transcripts=transcripts, figures=figures, publishable=publishable)
    for note in written.notes:
        print_note(f"note: {note}")
    print(written)
