"""What `run`, `resume` and `demo` share: playing a run file with progress, and how it ended."""

import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from propensitybench.engine import Progress as Finished
from propensitybench.engine import Result, client_for, run_tasks
from propensitybench.episode import Ending
from propensitybench.metrics import RunScores, score_run
from propensitybench.store import RunFile

INTERRUPTED = 130
LEFT_ERRORED = 1


def play_file(path: Path, concurrency: int) -> Result:
    """Plays the unfinished tasks of a run file, with a bar on standard error."""
    with RunFile.open(path) as run:
        tasks, endings = run.manifest.tasks, run.endings()
    if sum(endings.values()) == tasks and Ending.ERRORED not in endings:
        return Result(tasks, tasks, interrupted=False)  # nothing to do: the file is left alone
    with RunFile.open(path, write=True) as run:
        client = client_for(run.manifest.model)
        with _bar() as bar:
            before = run.count("outcome") - run.endings().get(Ending.ERRORED, 0)
            row = bar.add_task(run.manifest.model, total=run.manifest.tasks, completed=before, rate="")
            result = run_tasks(run, client, concurrency=concurrency, on_progress=_advance(bar, row))
    return result


def _bar() -> Progress:
    # Without a terminal there is nobody to look at a moving bar, and no end of lines in the log.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
    )


def _advance(bar: Progress, row: TaskID) -> Callable[[Finished], None]:
    def advance(finished: Finished) -> None:
        speed = bar.tasks[0].speed
        rate = f"{speed:.1f} tasks/s" if speed else ""
        bar.update(row, completed=finished.finished, rate=rate)

    return advance


def scores_of(path: Path) -> RunScores:
    """The scores of a run file."""
    with RunFile.open(path) as run:
        manifest = run.manifest
        levels = manifest.protocol.levels
        return score_run(str(path), manifest.model, manifest.tasks, run.records(), levels=levels)


def exit_code(result: Result, scores: RunScores) -> int:
    """0 done, 1 tasks were left errored, 130 interrupted."""
    if result.interrupted and result.finished < result.total:
        return INTERRUPTED
    return LEFT_ERRORED if scores.tasks.errored else 0


def say_how_it_ended(path: Path, result: Result, scores: RunScores) -> None:
    """On standard error: what is left to do, and how."""
    if result.interrupted and result.finished < result.total:
        left = result.total - result.finished
        print(f"stopped with {left} of {result.total} tasks to go; go on with:", file=sys.stderr)
        print(f"  propensitybench resume {path}", file=sys.stderr)
    elif scores.tasks.errored:
        print(f"{scores.tasks.errored} tasks could not be finished; try them again with:", file=sys.stderr)
        print(f"  propensitybench resume {path}", file=sys.stderr)
