"""``propensitybench report``: an HTML report of run files."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli.reading import read_comparable
from propensitybench.cli.text import safe
from propensitybench.report.page_write import write_report
from propensitybench.runs import StoredRun


def command(
    files: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run files.", show_default=False)],
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
        typer.Option("--transcripts", help="Which get a page; failed: those in which the agent gave in."),
    ] = "all",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Draw the figures for a paper as well.")
    ] = True,
) -> None:
    found = read_comparable(files)
    for note in found.notes:
        print(f"note: {safe(note)}", file=sys.stderr)
    written = write_report(found, out, transcripts, figures=figures)
    count = "1 run" if len(found.runs) == 1 else f"{len(found.runs)} runs"
    print(f"{safe(str(written.page))}: {count}, {written.transcripts} transcripts")
    if transcripts != "none" and not all(isinstance(run, StoredRun) for run in found.runs):
        print("the transcripts of Inspect logs are not among them: see inspect view", file=sys.stderr)
