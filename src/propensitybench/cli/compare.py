"""``propensitybench compare``: runs on the tasks that they share."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import fits, options
from propensitybench.cli.score import print_remarks, print_spending
from propensitybench.cli.tables import show_grid
from propensitybench.cli.text import print_json
from propensitybench.metrics.analysis import Analysis
from propensitybench.presentation.comparison import comparison_tables, index_sentence, stated_tables
from propensitybench.presentation.words import COMPARISON, STATED, wrapped
from propensitybench.runs import compare
from propensitybench.runs.read import runs_in


def command(
    files: options.RunPaths,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="FILE",
            help="JSON file with a capability index of three or more models, to correlate with their "
            "propensity; its format is in docs/metrics.md.",
        ),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, to compare what the model said "
            "with what it did; give one or more for each model.",
        ),
    ] = None,
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    runs = runs_in(files)
    found = compare(*runs, index=index, regress=regress, stated=stated or ())
    if as_json:
        print_json(found.to_dict())
        return
    for note in found.notes:
        print(f"note: {note}")
    _print_analysis(found.analysis)
    if found.regression is not None:
        fits.print_regression(found.regression)
    if found.stated is not None:
        for grid, lines in stated_tables(found.stated):
            show_grid(grid)
            print(*lines, "", sep="\n")
        print(wrapped(STATED))
    print_remarks([run.scores for run in found.analysis.runs])
    print_spending(runs)


def _print_analysis(analysis: Analysis) -> None:
    for grid in comparison_tables(analysis):
        show_grid(grid)
    if analysis.index is not None:
        print(index_sentence(analysis.index))
        missing = sorted({run.scores.model for run in analysis.runs} - set(analysis.index.models))
        if missing:
            print(f"Not in the index under this name, or without a propensity: {', '.join(missing)}.")
    print(wrapped(COMPARISON))
