"""What `run`, `resume` and `demo` share: playing a run file with progress, and how it ended."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any

import msgspec
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

from propensitybench.cli import tables
from propensitybench.cli.text import print_json, safe, typed
from propensitybench.clients.options import ModelOptions
from propensitybench.clients.wire_policy import WirePolicy
from propensitybench.engine import (
    ExecutionOptions,
    Price,
    Result,
    StopCause,
    adopt,
    check_endpoint,
    client_for,
    is_complete,
    run_tasks,
    tasks_drawn,
)
from propensitybench.engine import Progress as Finished
from propensitybench.errors import BadInput
from propensitybench.metrics import RunScores
from propensitybench.runs import StoredRun
from propensitybench.simulated import PREFIX
from propensitybench.store import RunFile

EXIT = {StopCause.INTERRUPTED: 130, StopCause.BUDGET: 1, StopCause.PROVIDER: 1, StopCause.BAD_INPUT: 2}
LEFT_ERRORED = 1


def read_extra_body(text: str | None) -> dict[str, Any]:
    """The object that --extra-body gives."""
    try:
        found = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError as error:
        raise BadInput(f"--extra-body: is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise BadInput("--extra-body: must be a JSON object, like '{\"seed\": 1}'")
    return found


def read_price(text: str | None) -> Price | None:
    """The price that --price gives."""
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
        if not 2 <= len(numbers) <= 3 or not all(0 <= number < inf for number in numbers):
            raise ValueError(text)
    except ValueError as error:
        raise BadInput(f"--price {text}: must be like 2.5,10 or 2.5,10,1.25") from error
    return Price(*numbers)


def check_model(
    model: str,
    model_options: ModelOptions,
    options: ExecutionOptions,
    recorded: Mapping[str, Any] | None = None,
) -> WirePolicy | None:
    """Makes sure that the model answers and calls tools, unless that is not wanted.

    Args:
        model: its address.
        model_options: what is set of it.
        options: how the run is executed.
        recorded: how the run's requests are written; None for a new run, which may adapt.
    """
    if not options.preflight or model.startswith(PREFIX):
        return None
    # Somebody is waiting for it: a wrong address should not take minutes of retries to show.
    quick = msgspec.structs.replace(options.transport, max_retries=min(2, options.transport.max_retries))
    client = client_for(model, model_options, quick)
    adopt(client, recorded or {})
    wire = asyncio.run(check_endpoint(client, adapt=recorded is None))
    for change in () if wire is None or recorded is not None else wire.adapted:
        print(f"note: adapted to the endpoint: {safe(change)}", file=sys.stderr)
    return wire


def play_file(path: Path, options: ExecutionOptions) -> Result:
    """Plays the unfinished tasks of a run file, with a bar on standard error."""
    with RunFile.open(path) as run:
        tasks, finished = tasks_drawn(run), run.finished()
        if is_complete(run):
            return Result(tasks, tasks, None, "")  # nothing to do: the file is left alone
    with RunFile.open(path, write=True) as run:
        model = run.manifest.model
        client = client_for(model, msgspec.convert(run.manifest.options, ModelOptions), options.transport)
        with _bar() as bar:
            row = bar.add_task(safe(model), total=tasks, completed=finished, note="")
            return run_tasks(run, client, options, on_progress=_advance(bar, row))


def _bar() -> Progress:
    # Without a terminal there is nobody to look at a moving bar, and no end of lines in the log.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
    )


def _advance(bar: Progress, row: TaskID) -> Callable[[Finished], None]:
    def advance(now: Finished) -> None:
        elapsed = bar.tasks[0].elapsed or 0.0
        notes = [f"{now.calls / elapsed:.1f} calls/s"] if elapsed > 1 else []
        if now.tokens:
            notes.append(f"{now.tokens / 1e6:.2f}M tokens, " + cost(now.usd))
        notes += [f"{safe(key)} waits {seconds:.0f} s" for key, seconds in now.stalled]
        bar.update(row, total=now.total, completed=now.finished, note="; ".join(notes))

    return advance


def cost(usd: float | None) -> str:
    """A cost for people; an unknown one is called so, and is not 0."""
    return "price unknown" if usd is None else f"${usd:.2f}"


def scores_of(path: Path) -> RunScores:
    """The scores of a run file."""
    return StoredRun(path).score()


def play_and_print(path: Path, options: ExecutionOptions, *, as_json: bool) -> int:
    """Plays a run file, prints its scores, and gives the exit code."""
    result = play_file(path, options)
    scores = scores_of(path)
    if as_json:
        stopped = result.cause.value if result.cause else None
        print_json({"stopped": stopped, **msgspec.structs.asdict(scores)})
    else:
        tables.show(tables.overview([scores]))
        print(tables.legend([scores]))
    say_how_it_ended(path, result, scores)
    return exit_code(result, scores)


def exit_code(result: Result, scores: RunScores) -> int:
    """0 done, 1 tasks were left errored or unplayed, 2 something has to be mended, 130 interrupted."""
    if result.cause is not None and result.finished < result.total:
        return EXIT[result.cause]
    return LEFT_ERRORED if scores.tasks.errored else 0


def say_how_it_ended(path: Path, result: Result, scores: RunScores) -> None:
    """On standard error: what is left to do, and how."""
    if result.cause is not None and result.finished < result.total:
        left = result.total - result.finished
        print(f"stopped, {safe(result.reason)}", file=sys.stderr)
        print(f"{left} of {result.total} tasks are left; go on with:", file=sys.stderr)
        print(f"  propensitybench resume {typed(path)}", file=sys.stderr)
    elif scores.tasks.errored:
        with RunFile.open(path) as run:
            why = run.last_error()
        count = scores.tasks.errored
        print(f"{count} tasks could not be finished, the last: {safe(why)}", file=sys.stderr)
        print("try them again with:", file=sys.stderr)
        print(f"  propensitybench resume {typed(path)}", file=sys.stderr)
    if line := tables.stopping_rule(scores):
        print(line, file=sys.stderr)
