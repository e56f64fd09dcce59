"""``propensitybench export``: a run as a flat table, or as Inspect logs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.text import name_of, safe
from propensitybench.errors import BadInput
from propensitybench.runs.read import needs_inspect
from propensitybench.store import RunFile
from propensitybench.store.export import export_run


def command(
    file: options.RunPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="The file to write, or the folder for Inspect logs; beside the run file, if not given.",
        ),
    ] = None,
    form: Annotated[
        Literal["jsonl", "parquet", "eval"],
        typer.Option(
            "--format", help="JSON lines, Parquet, or Inspect logs, one for each domain and naming."
        ),
    ] = "jsonl",
    transcripts: Annotated[
        bool,
        typer.Option(
            "--transcripts", help="Add each task's whole conversation, as JSON; Inspect logs have it anyway."
        ),
    ] = False,
) -> None:
    if form == "eval":
        for log in _export_logs(file, out or file.with_suffix(".logs")):
            print(safe(str(log)))
        return
    path = out or file.with_suffix(f".{form}")
    if form == "parquet" and name_of(path) != str(path):
        raise BadInput(f"{path}: is no UTF-8, as the name of a Parquet file must be; give another --out FILE")
    with RunFile.open(file) as run:
        count = export_run(run, path, form, transcripts=transcripts)
    print(f"{count} rows: {safe(str(path))}")


def _export_logs(file: Path, out: Path) -> list[Path]:
    try:
        from propensitybench.inspect_adapter.eval_export import export_logs
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; give a folder: --out DIR")
    with RunFile.open(file) as run:
        return export_logs(run, out)
