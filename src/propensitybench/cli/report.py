"""``propensitybench report``: an HTML report of runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options


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
        bool, typer.Option("--figures/--no-figures", help="Also write the figures for a paper.")
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
    from propensitybench.cli.output import tell
    from propensitybench.cli.reading import read
    from propensitybench.cli.text import safe
    from propensitybench.pages.page_write import write_report
    from propensitybench.pages.publishing import PublishableRun
    from propensitybench.runs import comparable

    runs = read(files)
    found = comparable([PublishableRun(run) for run in runs] if publishable else runs)
    for note in found.notes:
        tell(f"note: {note}")
    written = write_report(found, out, transcripts, figures=figures)
    count = "1 run" if len(found.runs) == 1 else f"{len(found.runs)} runs"
    print(f"{safe(str(written.page))}: {count}, {written.transcripts} transcripts")
    if transcripts != "none" and not all(run.has_transcripts for run in found.runs):
        tell("transcripts of Inspect logs are not included; use `inspect view`")
