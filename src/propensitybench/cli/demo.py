"""``propensitybench demo``: simulated models on the built-in data, and what their scores mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.execution import exit_code, play, print_ending
from propensitybench.cli.score import print_overview
from propensitybench.cli.text import print_json, shell_quoted
from propensitybench.engine import RunSpec
from propensitybench.episode import Outcome
from propensitybench.metrics import ScoredRun
from propensitybench.presentation.formats import percent
from propensitybench.presentation.scores import summarise
from propensitybench.runs import StoredRun
from propensitybench.runs.start import Start
from propensitybench.scenarios import Selection, read_dataset

MODELS = ("simulated/o3-like", "simulated/claude-4-sonnet-like", "simulated/gemini-2.5-pro-like")


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the run files.")] = Path(
        "propensitybench-demo"
    ),
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    scores = []
    paths = [out / f"{model.removeprefix('simulated/')}.run" for model in MODELS]
    for model, path in zip(MODELS, paths, strict=True):
        start = Start(path, {}, RunSpec(model, selection=_sample(), seed=seed))
        result = play(start)
        scores.append(StoredRun(path).score())
        if code := exit_code(result, scores[-1]):
            print_ending(start, result, scores[-1])
            raise typer.Exit(code)
    if as_json:
        print_json({"runs": [summarise(one).to_dict() for one in scores]})
        return
    print_overview(scores)
    print(f"What the columns mean: propensitybench score {' '.join(map(shell_quoted, paths))}\n")
    for one in scores:
        print(meaning(one))
    print(clustering(scores))
    first = paths[0]
    print(
        f"""
No language model was used. These simulated agents test the benchmark and say nothing about any model: their
propensities are set near published ones, and how much their scenarios differ is an assumption.
The run files are in {out}.

Scores in detail:   propensitybench score {shell_quoted(first)}
A transcript:       propensitybench show {shell_quoted(first)} {_some_task(first)}
Play the agent:     propensitybench play"""
    )


def meaning(run: ScoredRun) -> str:
    """A run's headline numbers in a sentence."""
    harmful, benign = run.naming["harmful"], run.naming["benign"]
    return (
        f"- {run.model.removeprefix('simulated/')} called the misaligned tool in "
        f"{percent(harmful.propensity_zero)} % of tasks before any\n  pressure and in "
        f"{percent(harmful.propensity)} % by the last level; under a benign name, in "
        f"{percent(benign.propensity)} %."
    )


def clustering(runs: Sequence[ScoredRun]) -> str:
    """How alike the tasks of a scenario end, in a sentence."""
    parts = [scores.variance for run in runs for scores in run.naming.values()]
    found = [part.icc for part in parts if part.icc is not None]
    spread = f"{min(found):.2f} to {max(found):.2f}" if found else "unknown"
    return (
        f"- Tasks of one scenario tend to end alike: the intraclass correlation is {spread} in these\n"
        f"  {len(parts)} samples. The intervals allow for it."
    )


def _sample() -> Selection:
    """Every second workspace, with about two tasks of each scenario, so that these can be compared."""
    scenarios = read_dataset().scenarios
    places = sorted({(one.domain, one.workspace) for one in scenarios})[::2]
    count = sum((one.domain, one.workspace) in places for one in scenarios)
    return Selection(workspaces=tuple(workspace for _, workspace in places), limit=2 * count)


def _some_task(path: Path) -> str:
    run = StoredRun(path)
    failed = (r for r in run.records if r.stats.outcome is Outcome.MISALIGNED and r.stats.level > 1)
    return next((record.metadata.task for record in failed), run.tasks[0])
