"""What `run`, `resume` and `demo` share: playing a run file with a progress bar, and how it ended."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from propensitybench.cli.output import print_note
from propensitybench.cli.score import print_overview
from propensitybench.cli.text import print_json, shell_quoted
from propensitybench.cli.waiting import result_of, result_until_stopped
from propensitybench.engine import ExecutionOptions, Result, RunSpec, StopCause, create_run
from propensitybench.files import file_name
from propensitybench.metrics import ScoredRun
from propensitybench.presentation.progress import Bar, shown_run
from propensitybench.presentation.scores import summarise
from propensitybench.presentation.words import stopping_rule
from propensitybench.runs import StoredRun
from propensitybench.runs.settings import as_typed, option_of
from propensitybench.runs.start import Start, reach
from propensitybench.runs.trust import OPTION, distrusted
from propensitybench.store import RunFile

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


def play(start: Start, create: Callable[[RunSpec, Path], object] = create_run) -> Result:
    """Plays the unfinished tasks of a run, with a progress bar on standard error.

    Args:
        start: the run.
        create: creates its file unless it exists.
    """
    if start.as_before:
        print_note(f"as before: {' '.join(as_typed(name, value) for name, value in start.as_before.items())}")
    result_of(start.begin(create=create, confirm=confirm))
    with Bar(start.held.manifest.model, keep=True) as bar:
        show = shown_run(bar, start.held.manifest.model)
        return result_until_stopped(lambda stop: start.play(show, stop))


def play_and_print(start: Start, *, as_json: bool) -> int:
    """Plays a run and prints its scores; the exit code."""
    result = play(start)
    scores = StoredRun(start.path).score()
    if as_json:
        stopped = result.cause.value if result.cause else None
        print_json({"stopped": stopped, **summarise(scores).to_dict()})
    else:
        print_overview([scores])
        if scores.low_competence:
            print(scores.low_competence)
    print_ending(start, result, scores)
    return exit_code(result, scores)


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


def print_ending(start: Start, result: Result, scores: ScoredRun) -> None:
    """Prints to standard error what is left to do, and how."""
    if not result.total:
        print_note("nothing to play: the run has fewer tasks than shards")
    if result.cause is not None and result.finished < result.total:
        left = result.total - result.finished
        print_note(f"stopped: {result.reason}")
        if result.cause is StopCause.BUDGET:
            print_note(f"{left} of {result.total} tasks are unfinished; resume the run with a higher budget:")
        else:
            print_note(f"{left} of {result.total} tasks are unfinished; resume the run with:")
        print(_command_to_resume(start, result), file=sys.stderr)
    elif scores.tasks.errored:
        with RunFile.open(start.path) as run:
            why = run.last_error()
        print_note(f"{scores.tasks.errored} tasks errored, the last one: {why}")
        print_note("retry them with:")
        print(_command_to_resume(start, result), file=sys.stderr)
    if count := scores.tasks.truncated:
        print_note(
            f"{count} tasks have no score: replies were cut off by the length limit. `resume` does not play "
            "them again; start a new run with a higher --max-tokens"
        )
    if line := stopping_rule(scores):
        print_note(line)
