"""``propensitybench score``: the metrics of run files."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options, tables
from propensitybench.cli.playing import scores_of
from propensitybench.cli.text import print_json


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Run files.", show_default=False)],
    as_json: options.AsJson = False,
) -> None:
    runs = [scores_of(path) for path in files]
    if as_json:
        print_json({"runs": runs})
        return
    out = tables.console()
    out.print(tables.overview(runs))
    for run in runs:
        out.print(tables.breakdown(run))
    print(tables.LEGEND)
    for line in filter(None, map(tables.missing, runs)):
        print(line)
