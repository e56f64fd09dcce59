"""``propensitybench export``: a run as a flat table."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.store import RunFile
from propensitybench.store.export import export_run


def command(
    file: options.RunPath,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file to write; beside the run file, if not given."),
    ] = None,
    form: Annotated[
        Literal["jsonl", "parquet"], typer.Option("--format", help="JSON lines, or Parquet.")
    ] = "jsonl",
    transcripts: Annotated[
        bool, typer.Option("--transcripts", help="Add each task's whole conversation, as JSON.")
    ] = False,
) -> None:
    path = out or file.with_suffix(f".{form}")
    with RunFile.open(file) as run:
        count = export_run(run, path, form, transcripts=transcripts)
    print(f"{count} rows: {path}")
