"""What `run`, `resume` and `demo` share: playing a run file with a progress bar, and how it ended."""

import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import msgspec
from rich.progress import Progress, TaskID

from propensitybench.cli.output import tell
from propensitybench.cli.progress import progress_bar
from propensitybench.cli.score import print_overview, stopping_rule
from propensitybench.cli.text import name_of, print_json, safe, typed
from propensitybench.cli.waiting import result_of, result_until_stopped
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import (
    ExecutionOptions,
    Result,
    RunSpec,
    StopCause,
    create_run,
    is_complete,
)
from propensitybench.engine import Progress as Finished
from propensitybench.engine.session import Draw
from propensitybench.episode import TEMPLATES, built_in_template
from propensitybench.errors import BadInput
from propensitybench.files import MIB, read_text
from propensitybench.metrics import RunScores
from propensitybench.metrics.summary import summarise
from propensitybench.runs import StoredRun
from propensitybench.runs.execute import check_model, check_moved, finish, typed_by_user, used_up
from propensitybench.runs.resolve import read_model_options, with_kept
from propensitybench.runs.settings import Settings, as_typed
from propensitybench.runs.trust import OPTION, check_trusted, destination, distrusted, moved
from propensitybench.simulated import PREFIX
from propensitybench.store import RunFile, scheduled
from propensitybench.store.filesystems import require_local

EXIT = {StopCause.INTERRUPTED: 130, StopCause.BUDGET: 1, StopCause.PROVIDER: 1, StopCause.BAD_INPUT: 2}
LEFT_ERRORED = 1
LARGEST_TEMPLATE_FILE = MIB


def read_extra_body(text: str | None) -> dict[str, Any]:
    """The object that --extra-body gives."""
    try:
        body = msgspec.json.decode(text) if text else {}
    except msgspec.DecodeError as error:
        raise BadInput(f"--extra-body: is not valid JSON ({error})") from error
    except RecursionError:
        raise BadInput("--extra-body: is nested too deeply") from None
    if not isinstance(body, dict):
        raise BadInput("--extra-body: must be a JSON object, like '{\"seed\": 1}'")
    return body


def read_price(text: str | None) -> tuple[float, ...] | None:
    """The numbers that --price gives."""
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
        if not 2 <= len(numbers) <= 3 or not all(0 <= number < inf for number in numbers):
            raise ValueError(text)
    except ValueError as error:
        raise BadInput(f"--price {text}: must be like 2.5,10 or 2.5,10,1.25") from error
    return numbers


def kept_or(path: Path, given: Settings) -> Settings:
    """The options given and, of the others, those that the run file keeps, which are printed."""
    settings = with_kept(path, given)
    kept = [as_typed(name, value) for name, value in settings.items() if given.get(name) is None]
    if kept:
        tell(f"as before: {' '.join(kept)}")
    return settings


def read_template(given: str | None) -> str | None:
    """The text of one of the package's templates, or of a file."""
    if given is None:
        return None
    if given in TEMPLATES:
        return built_in_template(given)
    return read_text(Path(given), f"--template {given}", LARGEST_TEMPLATE_FILE)


def create(spec: RunSpec, path: Path, execution: ExecutionOptions) -> None:
    """Creates a run file after a check of its model, unless the file exists."""
    require_local(path)
    is_new = not path.exists()
    if is_new:  # a model that cannot be used leaves no file behind
        spec = checked(spec, execution)
    for warning in create_run(spec, path).warnings:
        tell(f"note: {warning}")
    if not is_new:
        result_of(check_moved(path, typed_by_user(spec, execution)))


def checked(spec: RunSpec, execution: ExecutionOptions) -> RunSpec:
    """The specification with what the check of its model found out about the endpoint."""
    wire = result_of(check_model(spec.model, spec.options, execution))
    for change in wire.adapted if wire else ():
        tell(f"note: adapted to the endpoint: {change}")
    return msgspec.structs.replace(spec, wire=wire)


def start(spec: RunSpec, path: Path, execution: ExecutionOptions, *, as_json: bool) -> int:
    """Creates a run file, unless it exists, and plays it; the exit code."""
    create(spec, path, execution)
    return play_and_print(path, typed_by_user(spec, execution), as_json=as_json)


def resume(path: Path, execution: ExecutionOptions, *, as_json: bool) -> int:
    """Plays the unfinished tasks of a run file; the exit code."""
    with RunFile.open(path) as run:
        complete = is_complete(run)
    if not complete and not used_up(path, execution):
        require_local(path)
        execution = confirmed(path, execution)
    return play_and_print(path, execution, as_json=as_json)


def confirmed(path: Path, execution: ExecutionOptions) -> ExecutionOptions:
    """The execution options, once the model that a run file names is confirmed and checked."""
    with RunFile.open(path) as run:
        manifest = run.manifest
    asked = read_model_options(manifest.options, name_of(path), manifest.package)
    if execution.endpoints is None:
        execution = with_trust(name_of(path), asked, execution)
    elif note := moved(name_of(path), asked, execution.endpoints):
        tell(f"note: {note}")
    if not manifest.model.startswith(PREFIX):  # the user may never have typed it
        tell(f"asking {destination(manifest.model, asked, execution.endpoints)}")
    result_of(check_model(manifest.model, asked, execution, manifest.wire))
    return execution


def with_trust(file: str, asked: ModelOptions, execution: ExecutionOptions) -> ExecutionOptions:
    """The execution options, with the user's confirmation of the endpoint; asks for it in a terminal.

    Args:
        file: the name of the file that names the endpoint.
        asked: the model's options, from that file.
        execution: may have the confirmation already.

    Raises:
        BadInput: the endpoint needs to be confirmed, and is not.
    """
    why = "" if execution.trust_endpoint else distrusted(asked)
    if why and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        tell(f"{file}: {why}.")
        print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return msgspec.structs.replace(execution, trust_endpoint=True)
    if why:
        check_trusted(file, asked)
    return execution


def play_file(path: Path, execution: ExecutionOptions, draw: Draw | None = None) -> Result:
    """Plays the unfinished tasks of a run file, with a progress bar on standard error."""
    with RunFile.open(path) as run:
        model, tasks, finished = run.manifest.model, scheduled(run), run.finished()
    with progress_bar() as bar:
        row = bar.add_task(safe(model), total=tasks, completed=finished, note="")
        advance = _advance(bar, row)
        return result_until_stopped(
            lambda stop: finish(path, execution, on_progress=advance, stop=stop, draw=draw)
        )


def _advance(bar: Progress, row: TaskID) -> Callable[[Finished], None]:
    def advance(now: Finished) -> None:
        elapsed = bar.tasks[0].elapsed or 0.0
        notes = [f"{now.calls / elapsed:.1f} calls/s"] if elapsed > 1 else []
        if now.tokens:
            notes.append(f"{now.tokens / 1e6:.2f}M tokens, " + cost(now.usd))
        notes += [f"{safe(key)} has waited {seconds:.0f} s" for key, seconds in now.stalled]
        bar.update(row, total=now.total, completed=now.finished, note="; ".join(notes))

    return advance


def cost(usd: float | None) -> str:
    """A cost for people; an unknown one is not 0."""
    return "price unknown" if usd is None else f"${usd:.2f}"


def play_and_print(path: Path, execution: ExecutionOptions, *, as_json: bool) -> int:
    """Plays a run file and prints its scores; the exit code."""
    result = play_file(path, execution)
    scores = StoredRun(path).score()
    if as_json:
        stopped = result.cause.value if result.cause else None
        print_json({"stopped": stopped, **msgspec.structs.asdict(summarise(scores))})
    else:
        print_overview([scores])
        if scores.low_competence:
            print(scores.low_competence)
    print_ending(path, result, scores, execution)
    return exit_code(result, scores)


def exit_code(result: Result, scores: RunScores) -> int:
    """0 done, 1 tasks were left errored or unplayed, 2 bad input, 130 interrupted."""
    if result.cause is not None and result.finished < result.total:
        return EXIT[result.cause]
    return LEFT_ERRORED if scores.tasks.errored else 0


def _options_to_resume(path: Path, execution: ExecutionOptions) -> str:
    """The options that `resume` needs, for the printed command: places, which the run file does not keep."""
    with RunFile.open(path) as run:
        manifest = run.manifest
    asked = read_model_options(manifest.options, name_of(path), manifest.package)
    endpoints = execution.endpoints
    words: list[str] = []
    if endpoints is not None and endpoints.urls != (asked.base_url,):
        words += endpoints.typed
    elif distrusted(asked):
        words.append(OPTION)
    if execution.engine != "local":
        words += ["--engine", execution.engine]
    if execution.ray_address is not None:
        words += ["--ray-address", execution.ray_address]
    if execution.workers is not None:
        words += ["--workers", str(execution.workers)]
    return "".join(f" {typed(word)}" for word in words)


def _higher_budget(execution: ExecutionOptions) -> str:
    budget = execution.budget
    usd = "" if budget.usd is None else " --budget-usd N"
    return usd if budget.tokens is None else f"{usd} --max-tokens-total N"


def print_ending(
    path: Path, result: Result, scores: RunScores, execution: ExecutionOptions = ExecutionOptions()
) -> None:
    """Prints to standard error what is left to do, and how; ``execution`` is how the run was executed."""
    command = f"  propensitybench resume {typed(path)}{_options_to_resume(path, execution)}"
    if not result.total:
        tell("nothing to play: the run has fewer tasks than shards")
    if result.cause is not None and result.finished < result.total:
        left = result.total - result.finished
        tell(f"stopped: {result.reason}")
        if result.cause is StopCause.BUDGET:
            tell(f"{left} of {result.total} tasks are unfinished; resume the run with a higher budget:")
            command += _higher_budget(execution)
        else:
            tell(f"{left} of {result.total} tasks are unfinished; resume the run with:")
        print(command, file=sys.stderr)
    elif scores.tasks.errored:
        with RunFile.open(path) as run:
            why = run.last_error()
        tell(f"{scores.tasks.errored} tasks errored, the last one: {why}")
        tell("retry them with:")
        print(command, file=sys.stderr)
    if count := scores.tasks.truncated:
        tell(
            f"{count} tasks have no score: replies were cut off by the length limit. `resume` does not play "
            "them again; start a new run with a higher --max-tokens"
        )
    if line := stopping_rule(scores):
        tell(line)
