"""``propensitybench score``: the metrics of runs."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import effects, options, tables
from propensitybench.cli.runs import read_sources
from propensitybench.cli.sureness import LEGEND, sureness
from propensitybench.cli.text import print_json
from propensitybench.metrics.analysis import tables_of
from propensitybench.metrics.regression import regression


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Run files.", show_default=False)],
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    played = [source.played for source in read_sources(files)]
    fitted = regression(tables_of(played)) if regress else None
    runs = [run.scores() for run in played]
    if as_json:
        print_json({"runs": runs, **({} if fitted is None else {"regression": fitted})})
        return
    tables.show(tables.overview(runs))
    for run in runs:
        tables.show(sureness(run))
        tables.show(tables.breakdown(run))
    print(tables.legend(runs))
    print(LEGEND)
    if fitted is not None:
        effects.print_regression(fitted)
    for run in runs:
        for line in filter(None, (tables.missing(run), tables.stopping_rule(run))):
            print(line)
