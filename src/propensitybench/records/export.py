"""A run as a table, or as Inspect logs."""

import os
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import file_name
from propensitybench.presentation.progress import OnStage, Stage, shown_stages
from propensitybench.runs import Run
from propensitybench.runs.read import needs_inspect, run_file_of
from propensitybench.store import RunFile
from propensitybench.store.export import export_run

ExportFormat = Literal["jsonl", "csv", "parquet", "eval"]


class Exported(NamedTuple):
    """What was written.

    Attributes:
        files: a table, or one Inspect log for each domain and naming.
        rows: number of rows of the table; None of logs.
    """

    files: tuple[Path, ...]
    rows: int | None = None

    def __repr__(self) -> str:
        if self.rows is None:
            return "\n".join(map(str, self.files))
        return f"{self.rows} rows: {self.files[0]}"


def export(
    run: Run | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    format: ExportFormat | None = None,  # noqa: A002 - as the option is called
    transcripts: bool = False,
    on_progress: OnStage | None = None,
) -> Exported:
    """Exports a run.

    Args:
        run: a run in a run file, or the file.
        path: the file to write, which must not exist, or the folder for Inspect logs; by default next to the
            run file.
        format: ``jsonl``, ``csv`` or ``parquet`` with one row per task, or ``eval`` for Inspect logs, one per
            domain and naming; by default that of the suffix of ``path``, or else ``jsonl``.
        transcripts: adds each task's conversation as JSON; Inspect logs always have it.
        on_progress: is told each stage of a table; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: the run cannot be read, Inspect AI is not installed, or ``path`` cannot be written or
            has the suffix of another format.
    """
    file = run_file_of(run)
    if not file.name:  # "." and "/" have no name for the default output
        raise BadInput(f"{file}: is not a run file")
    form = _format(path, format)
    if form == "eval":
        return _export_logs(file, file.with_suffix(".logs") if path is None else Path(path))
    out = file.with_suffix(f".{form}") if path is None else Path(path)
    if form == "parquet" and file_name(out) != str(out):
        raise BadInput(f"{out}: is not valid UTF-8, which Parquet needs; give another name with --out FILE")
    with RunFile.open(file) as opened, shown_stages("rows", on_progress) as tell:
        rows = export_run(
            opened,
            out,
            form,
            transcripts=transcripts,
            on_row=lambda done, total: tell(Stage("rows", done, total)),
        )
    return Exported((out,), rows)


def _format(path: str | os.PathLike[str] | None, given: ExportFormat | None) -> ExportFormat:
    """The format that is given, or else that of the suffix; raises `BadInput` if they contradict."""
    known = get_args(ExportFormat)
    if given is not None and given not in known:
        raise UnknownName("format", str(given), known)
    suffix = "" if path is None else Path(path).suffix.removeprefix(".").lower()
    if suffix not in known:
        return given or "jsonl"
    if given not in (None, suffix):
        raise BadInput(f"{path}: is not the name of a {given} file; leave --format out, or give another name")
    return cast(ExportFormat, suffix)


def _export_logs(file: Path, out: Path) -> Exported:
    try:
        from propensitybench.inspect_adapter.eval_export import export_logs
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; give a folder: --out DIR")
    with RunFile.open(file) as opened:
        return Exported(tuple(export_logs(opened, out)))
