"""``propensitybench export``: a run as a table, or as Inspect logs."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.records.export import ExportFormat, export


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
        ExportFormat | None,
        typer.Option(
            "--format",
            help="JSON lines, CSV or Parquet with one row per task, or Inspect logs, one per domain and "
            "naming. Default: that of the suffix of --out, or else jsonl.",
        ),
    ] = None,
    transcripts: Annotated[
        bool,
        typer.Option(
            "--transcripts", help="Add each task's conversation as JSON; Inspect logs always have it."
        ),
    ] = False,
) -> None:
    print(export(file, out, format=form, transcripts=transcripts))
