"""``propensitybench export``: a run as a table, or as Inspect logs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.records.export import export


def command(
    file: options.RunPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="File to write, or folder for Inspect logs. Default: next to the run file.",
        ),
    ] = None,
    form: Annotated[
        Literal["jsonl", "parquet", "eval"],
        typer.Option(
            "--format",
            help="JSON lines or Parquet with one row per task, or Inspect logs, one per domain and naming.",
        ),
    ] = "jsonl",
    transcripts: Annotated[
        bool,
        typer.Option(
            "--transcripts", help="Add each task's conversation as JSON; Inspect logs always have it."
        ),
    ] = False,
) -> None:
    print(export(file, out, format=form, transcripts=transcripts))
