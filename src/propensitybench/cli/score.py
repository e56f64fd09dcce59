"""``propensitybench score``: the scores of runs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from propensitybench.cli import fits, options
from propensitybench.cli.tables import show_grid
from propensitybench.cli.text import print_json
from propensitybench.metrics import ScoredRun
from propensitybench.metrics.analysis import tables_of
from propensitybench.metrics.regression import regression
from propensitybench.presentation.scores import RunScores, summarise
from propensitybench.presentation.tables import details, overview
from propensitybench.presentation.words import (
    UNCERTAINTY,
    overview_legend,
    protocol_notes,
    remarks,
    spent,
    stopping_rule,
    wrapped,
)
from propensitybench.runs import Run
from propensitybench.runs.read import runs_in


def command(
    files: options.RunPaths,
    regress: options.Regress = False,
    hierarchical: options.Hierarchical = False,
    as_json: options.AsJson = False,
    everything: options.Everything = False,
) -> None:
    runs = runs_in(files)
    fitted = regression(tables_of(runs)) if regress else None
    hazards = fits.fit_hazards(runs) if hierarchical else None
    scores = [run.score() for run in runs]
    if as_json:
        found = {
            "runs": [run_json(*both, everything=everything) for both in zip(runs, scores, strict=True)],
            "regression": fitted,
            "hierarchical": hazards,
        }
        print_json({name: value for name, value in found.items() if value is not None})
        return
    show_grid(overview(scores))
    for one in scores:
        for grid in details(one):
            show_grid(grid)
    print(overview_legend(scores))
    print(wrapped(UNCERTAINTY))
    if fitted is not None:
        fits.print_regression(fitted)
    if hazards:
        fits.print_hazards(hazards)
    print_remarks(scores)
    for one in scores:
        if line := stopping_rule(one):
            print(line)
    print_spending(runs)


def run_json(run: Run, scores: RunScores, *, everything: bool = False) -> dict[str, Any]:
    """The scores of a run as JSON, with its tokens and its cost in US dollars (None if it is unknown)."""
    found = msgspec.to_builtins(scores) if everything else summarise(scores).to_dict()
    return {**found, "usage": msgspec.structs.asdict(run.usage), "usd": run.cost}


def print_overview(scores: Sequence[ScoredRun]) -> None:
    """Prints the published metrics, one row for each run and naming, and where they are no propensity."""
    show_grid(overview(scores))
    for note in protocol_notes(scores):
        print(wrapped(note))


def print_spending(runs: Sequence[Run]) -> None:
    """Prints the tokens and the cost of each run that has used tokens."""
    for run in runs:
        if line := spent(run.usage, run.cost):
            print(f"{run.file}: {line}")


def print_remarks(scores: Sequence[ScoredRun]) -> None:
    """Prints what a reader of the scores has to know."""
    for line in remarks(scores):
        print(line)
