"""``propensitybench export``: a run as a table, or as Inspect logs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.text import name_of, safe
from propensitybench.errors import BadInput


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
    from propensitybench.store import RunFile
    from propensitybench.store.export import export_run

    if not file.name:  # "." and "/" have no name for the default output
        raise BadInput(f"{file}: is not a run file")
    if form == "eval":
        for log in _export_logs(file, out or file.with_suffix(".logs")):
            print(safe(str(log)))
        return
    path = out or file.with_suffix(f".{form}")
    if form == "parquet" and name_of(path) != str(path):
        raise BadInput(f"{path}: is not valid UTF-8, which Parquet needs; give another name with --out FILE")
    with RunFile.open(file) as run:
        count = export_run(run, path, form, transcripts=transcripts)
    print(f"{count} rows: {safe(str(path))}")


def _export_logs(file: Path, out: Path) -> list[Path]:
    from propensitybench.runs.readers import needs_inspect
    from propensitybench.store import RunFile

    try:
        from propensitybench.inspect_adapter.eval_export import export_logs
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; give a folder: --out DIR")
    with RunFile.open(file) as run:
        return export_logs(run, out)
