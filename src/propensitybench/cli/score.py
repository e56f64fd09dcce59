"""``propensitybench score``: the metrics of runs."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import effects, options, tables
from propensitybench.cli.reading import read
from propensitybench.cli.text import print_json
from propensitybench.cli.uncertainty import LEGEND, uncertainty
from propensitybench.metrics.analysis import tables_of
from propensitybench.metrics.regression import regression


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Run files.", show_default=False)],
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    found = read(files)
    fitted = regression(tables_of(found)) if regress else None
    runs = [run.score() for run in found]
    if as_json:
        print_json({"runs": runs, **({} if fitted is None else {"regression": fitted})})
        return
    tables.show(tables.overview(runs))
    for run in runs:
        tables.show(uncertainty(run))
        tables.show(tables.breakdown(run))
    print(tables.legend(runs))
    print(LEGEND)
    if fitted is not None:
        effects.print_regression(fitted)
    for run in runs:
        for line in filter(None, (tables.missing(run), tables.stopping_rule(run))):
            print(line)
