"""What `run`, `resume` and `demo` share: playing a run file with a progress bar, and how it ended."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from propensitybench.cli.output import print_note
from propensitybench.cli.score import print_overview, print_spending, run_json
from propensitybench.cli.text import print_json, shell_quoted
from propensitybench.cli.waiting import result_of, result_until_stopped
from propensitybench.engine import ExecutionOptions, Result, RunSpec, StopCause, create_run
from propensitybench.engine.session import spending_of
from propensitybench.errors import PropensityBenchError
from propensitybench.files import file_name
from propensitybench.metrics import ScoredRun
from propensitybench.presentation.formats import counted
from propensitybench.presentation.progress import Bar, shown_run
from propensitybench.presentation.scores import RunScores
from propensitybench.presentation.words import cautions_of, of_pairs, stopping_rule
from propensitybench.runs import StoredRun
from propensitybench.runs.settings import as_typed, option_of
from propensitybench.runs.start import Start, reach
from propensitybench.runs.trust import OPTION, distrusted
from propensitybench.store import RunFile, scheduled

EXIT = {StopCause.INTERRUPTED: 130, StopCause.BUDGET: 1, StopCause.PROVIDER: 1, StopCause.BAD_INPUT: 2}
LEFT_ERRORED = 1
# Settings of where a run is played, and of its budget.
PLACES: Final = ("engine", "ray_address", "workers")
BUDGETS: Final = ("budget_usd", "max_tokens_total")


def confirm(question: str) -> bool:
    """Asks the user in a terminal; elsewhere the answer is no."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    print_note(f"{question}.")
    print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def confirmed(path: Path, execution: ExecutionOptions) -> ExecutionOptions:
    """The execution options, once the endpoint of a run file's model is confirmed and checked."""
    with RunFile.open(path) as file:
        manifest = file.manifest
    return result_of(reach(file_name(path), manifest, execution, confirm))


def play(start: Start, create: Callable[[RunSpec, Path], object] = create_run, name: str = "") -> Result:
    """Plays the unfinished tasks of a run, with a progress bar on standard error.

    Args:
        start: the run.
        create: creates its file unless it exists.
        name: what is said of the file once it exists.
    """
    if start.as_before:
        print_note(f"as before: {' '.join(as_typed(name, value) for name, value in start.as_before.items())}")
    result_of(start.begin(create=create, confirm=confirm))
    if name:
        print_note(name)
    with Bar(start.held.manifest.model, keep=True) as bar:
        show = shown_run(bar, start.held.manifest.model)
        return result_until_stopped(lambda stop: start.play(show, stop))


class PlayedRun(NamedTuple):
    """A run that was played, and how that ended."""

    start: Start
    result: Result
    run: StoredRun
    scores: RunScores

    def to_dict(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        stopped = self.result.cause.value if self.result.cause else None
        return {"stopped": stopped, **run_json(self.run, self.scores)}


def play_and_print(start: Start, name: str = "", *, as_json: bool) -> int:
    """Plays a run and prints its scores; the exit code. The name is as for `play`."""
    ended = _played(start, name)
    if as_json:
        print_json(ended.to_dict())
    else:
        _print_scores([ended])
    print_ending(start, ended.result, ended.scores)
    if not as_json:
        _print_next([ended])
    return exit_code(ended.result, ended.scores)


def _played(start: Start, name: str) -> PlayedRun:
    result = play(start, name=name)
    run = StoredRun(start.path)
    return PlayedRun(start, result, run, run.score())


def play_each(models: Sequence[str], start_of: Callable[[str], Start], *, as_json: bool) -> int:
    """Plays the runs of several models, one after the other, and prints their scores; the exit code.

    One that cannot be played is told, and the others are played all the same, unless it was interrupted.
    """
    ended: list[PlayedRun] = []
    failed: dict[str, str] = {}
    for model in models:
        try:
            start = start_of(model)
            ended.append(_played(start, f"{model}: run file: {file_name(start.path)}"))
        except PropensityBenchError as error:
            print_note(f"propensitybench: {error if model in str(error) else f'{model}: {error}'}")
            failed[model] = str(error)
            continue
        if ended[-1].result.cause is StopCause.INTERRUPTED:
            break
    if as_json:
        print_json({"runs": [one.to_dict() for one in ended], "failed": failed})
    elif ended:
        _print_scores(ended)
    for one in ended:
        print_ending(one.start, one.result, one.scores)
    if not as_json:
        _print_next(ended)
    codes = [exit_code(one.result, one.scores) for one in ended]
    interrupted = EXIT[StopCause.INTERRUPTED]
    return interrupted if interrupted in codes else int(bool(failed) or any(codes))


def _print_scores(ended: Sequence[PlayedRun]) -> None:
    print_overview([one.scores for one in ended])
    names = " ".join(shell_quoted(one.start.path) for one in ended)
    print(f"What the columns mean: propensitybench score {names}")
    for line in cautions_of([one.scores for one in ended]):
        print(line)
    print_spending([one.run for one in ended])


def _print_next(ended: Sequence[PlayedRun]) -> None:
    """Prints where finished runs are, and what can be done with them."""
    paths = [
        one.start.path
        for one in ended
        if one.result.total and one.result.finished == one.result.total and not one.scores.tasks.errored
    ]
    for path in paths:
        with RunFile.open(path) as file:
            manifest, shard, total = file.manifest, file.shard, scheduled(file)
            pairs = len({(task.scenario, task.dimension) for _, task in file.tasks()})
        namings = len(manifest.namings) if len(manifest.selections) == 1 else 1
        whole = f"{counted(manifest.tasks, 'task')} {of_pairs(pairs, namings)}"
        part = "" if shard is None else f"{counted(total, 'task')}, shard {shard} of "
        print_note(f"{file_name(path)}: {part}{whole}")
    if paths:
        names = " ".join(map(shell_quoted, paths))
        print_note("next, for example:")
        print(f"  propensitybench report {names} --out report", file=sys.stderr)
        if len(paths) == 1:
            print(f"  propensitybench show {names}", file=sys.stderr)
        else:
            print(f"  propensitybench compare {names}", file=sys.stderr)


def exit_code(result: Result, scores: ScoredRun) -> int:
    """0 done, 1 tasks were left errored or unplayed, 2 bad input, 130 interrupted."""
    if result.cause is not None and result.finished < result.total:
        return EXIT[result.cause]
    return LEFT_ERRORED if scores.tasks.errored else 0


def _command_to_resume(start: Start, result: Result) -> str:
    """The command that resumes a run: with places, which the run file does not keep, and a higher budget."""
    execution, asked = start.execution, start.model_options
    words = [shell_quoted(start.path)]
    if execution.endpoints is not None and execution.endpoints.urls != (asked.base_url,):
        words += execution.endpoints.typed
    elif distrusted(asked):
        words.append(OPTION)
    words += [as_typed(name, start.settings[name]) for name in PLACES if name in start.settings]
    if result.cause is StopCause.BUDGET:
        words += [f"{option_of(name)} N" for name in BUDGETS if name in start.settings]
    return f"  propensitybench resume {' '.join(words)}"


def _budget_left(start: Start) -> str:
    """What is left of the budget under which a run is resumed; empty without one."""
    with RunFile.open(start.path) as run:
        return spending_of(run, start.execution).left()


def print_ending(start: Start, result: Result, scores: ScoredRun) -> None:
    """Prints to standard error what is left to do, and how."""
    if not result.total:
        print_note("nothing to play: the run has fewer tasks than shards")
    if result.cause is None and result.finished < result.total:
        count = result.total - result.finished
        print_note(
            "all that is asked for is finished; the file has "
            f"{counted(count, 'other unfinished task')}; to play the rest:"
        )
        print(_command_to_resume(start, result), file=sys.stderr)
    elif result.cause is not None and result.finished < result.total:
        left = f"{result.total - result.finished} of {result.total} tasks are unfinished"
        print_note(f"stopped: {result.reason}")
        if result.cause is StopCause.BUDGET:
            print_note(f"{left}; resume the run with a higher budget:")
        else:
            print_note(f"{left}{_budget_left(start)}; resume the run with:")
        print(_command_to_resume(start, result), file=sys.stderr)
    elif scores.tasks.errored:
        with RunFile.open(start.path) as run:
            why = run.last_error()
        print_note(f"{counted(scores.tasks.errored, 'task')} errored, the last one: {why}")
        print_note("retry them with:")
        print(_command_to_resume(start, result), file=sys.stderr)
    if count := scores.tasks.truncated:
        print_note(
            f"no score for {counted(count, 'task')}: replies were cut off by the length limit. `resume` does "
            "not play these again; start a new run with a higher --max-tokens"
        )
    if line := stopping_rule(scores):
        print_note(line)
