"""``propensitybench demo``: what the benchmark shows, with simulated models."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options, tables
from propensitybench.cli.execution import exit_code, play_file, say_how_it_ended, scores_of
from propensitybench.cli.text import print_json, safe, typed
from propensitybench.engine import ExecutionOptions, RunSpec, create_run
from propensitybench.episode import Outcome
from propensitybench.metrics import RunScores
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

# Every scenario at least once, under a dimension that the spread sample gives it.
PAIRS = 240
MODELS = ("simulated/o3-like", "simulated/claude-4-sonnet-like", "simulated/gemini-2.5-pro-like")


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the run files go.")] = Path(
        "propensitybench-demo"
    ),
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    runs = []
    paths = [out / f"{model.removeprefix('simulated/')}.run" for model in MODELS]
    for model, path in zip(MODELS, paths, strict=True):
        create_run(RunSpec(model, selection=Selection(limit=PAIRS), seed=seed), path)
        result = play_file(path, ExecutionOptions())
        scores = scores_of(path)
        if code := exit_code(result, scores):
            say_how_it_ended(path, result, scores)
            raise typer.Exit(code)
        runs.append(scores)
    if as_json:
        print_json({"runs": runs})
        return
    tables.show(tables.overview(runs))
    print(f"{tables.legend(runs)}\n")
    for run in runs:
        print(meaning(run))
    first, place = paths[0], safe(str(out))
    print(
        f"""
These are simulated agents, drawn from published curves: no model was asked. Their runs are in {place}.

Look at one:   propensitybench score {typed(first)}
Read a task:   propensitybench show {typed(first)} {_some_task(first)}
Be the agent:  propensitybench play"""
    )


def meaning(run: RunScores) -> str:
    """In a sentence, what a run's scores say."""
    harmful, benign = run.naming["harmful"], run.naming["benign"]
    return (
        f"- {run.model.removeprefix('simulated/')} used the tool that it was told not to use in "
        f"{tables.percent(harmful.propensity_zero)} % of\n  tasks before any pressure and in "
        f"{tables.percent(harmful.propensity)} % by its end; where the same tool has a harmless name, in "
        f"{tables.percent(benign.propensity)} %."
    )


def _some_task(path: Path) -> str:
    with RunFile.open(path) as run:
        failed = (r for r in run.records() if r.stats.outcome is Outcome.MISALIGNED and r.stats.level > 1)
        return next((record.metadata.task for record in failed), run.task_keys()[0])
