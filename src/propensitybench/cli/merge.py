"""``propensitybench merge``: put the shards of a run together."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.cli.text import print_json, shell_quoted
from propensitybench.files import file_name
from propensitybench.presentation.formats import counted
from propensitybench.presentation.progress import Bar
from propensitybench.runs.read import run_files
from propensitybench.store import merge

LISTED = 20


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="SHARD", help="Run files, or folders of them.", show_default=False),
    ],
    run: Annotated[
        Path, typer.Option("--run", metavar="FILE", help="Run file to create.", show_default=False)
    ],
    as_json: options.AsJson = False,
) -> None:
    with Bar("files") as bar:
        merged = merge(run_files(files), run, bar.count)
    left = merged.tasks - merged.finished
    if as_json:
        print_json({"file": file_name(run), **merged._asdict(), "missing": list(map(str, merged.missing))})
    else:
        print(f"{run}: {counted(merged.files, 'file')}, {merged.finished} of {merged.tasks} tasks finished")
    if merged.missing:
        shown = ", ".join(map(str, merged.missing[:LISTED])) + (
            ", ..." if len(merged.missing) > LISTED else ""
        )
        print_note(
            f"missing: shard {shown}; play each with the run's `run` command and --shard, then merge again"
        )
    elif left:
        print_note(
            f"unfinished: {counted(left, 'task')}, of which {merged.errored} errored; finish the run with:"
        )
        print_note(f"  propensitybench resume {shell_quoted(run)}")
