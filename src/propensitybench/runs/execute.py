"""Making and playing a run with one call."""

import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.digests import digest
from propensitybench.engine import (
    Budget,
    ExecutionOptions,
    Progress,
    Result,
    RunSpec,
    StopCause,
    StopSignal,
    block_on,
    check_endpoint,
    client_for,
    create_run,
    is_complete,
    run_tasks_async,
)
from propensitybench.episode import PAPER, Protocol, built_in_template
from propensitybench.errors import BadInput, RunStopped
from propensitybench.runs.stored import StoredRun
from propensitybench.scenarios import Selection
from propensitybench.simulated import PREFIX
from propensitybench.store import RunFile, StoppingRule
from propensitybench.taxonomy import NAMINGS, naming

T = TypeVar("T")
FOLDER: Final = Path("propensitybench-runs")


class Settings(TypedDict, total=False):
    """What can be set of a run; the names and meanings are those of ``propensitybench run``."""

    data: str | os.PathLike[str] | None
    domains: tuple[str, ...]
    workspaces: tuple[str, ...]
    roles: tuple[str, ...]
    capabilities: tuple[str, ...]
    dimensions: tuple[str, ...]
    naming: Literal["harmful", "benign", "both"]
    limit: int | None
    epochs: int
    seed: int
    levels: int
    precision: float | None
    template: str
    base_url: str | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    reasoning_effort: str | None
    extra_body: dict[str, Any]
    concurrency: int
    timeout: float
    max_retries: int
    rpm: int | None
    tpm: int | None
    budget_usd: float | None
    max_tokens_total: int | None
    preflight: bool


def run(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[Settings],
) -> StoredRun:
    """Runs a model on a selection of tasks, and waits for it; works in a notebook too.

    The run is kept in a file. Asked for again with the same settings, it is opened, and finished if it was
    stopped: no reply is paid for twice.

    Args:
        model: ``simulated/PROFILE``, ``provider/name``, or a plain name with ``base_url``.
        file: the run file; without one, a file in ``propensitybench-runs`` named after the settings.
        client: whatever answers in the model's place.
        on_progress: called after each task, and every second.
        settings: see `Settings`.

    Raises:
        BadInput: the settings cannot be used, or the file holds another run.
        RunStopped: the provider cannot answer any more; the run can be resumed.
        KeyboardInterrupt: Ctrl-C; the run can be resumed.
    """
    spec, options = read_settings(model, settings)
    path = default_file(spec) if file is None else Path(file)
    stop = StopSignal()
    return block_on(lambda: execute(spec, path, options, client, on_progress, stop), stop)


async def run_async(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[Settings],
) -> StoredRun:
    """`run`, for code in an event loop that must not block."""
    spec, options = read_settings(model, settings)
    path = default_file(spec) if file is None else Path(file)
    return await execute(spec, path, options, client, on_progress)


async def execute(
    spec: RunSpec,
    path: Path,
    options: ExecutionOptions,
    client: Client | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopSignal | None = None,
) -> StoredRun:
    """Makes a run's file, unless it is there, and plays what is unfinished in it; raises as `run` does."""
    client = client or client_for(spec.model, spec.options, options.transport)
    if options.preflight and not path.exists():
        wire = await check_endpoint(client)
        for change in () if wire is None else wire.adapted:
            warnings.warn(f"adapted to the endpoint: {change}", stacklevel=2)
        spec = msgspec.structs.replace(spec, wire=wire)
    create_run(spec, path)
    with RunFile.open(path) as file:
        complete = is_complete(file)
    if not complete:
        with RunFile.open(path, write=True) as file:
            result = await run_tasks_async(file, client, options, on_progress=on_progress, stop=stop)
        _raise_unless_done(path, result)
    return StoredRun(path)


def _raise_unless_done(path: Path, result: Result) -> None:
    if result.cause is None or result.finished == result.total:
        return
    if result.cause is StopCause.INTERRUPTED:
        raise KeyboardInterrupt
    if result.cause is StopCause.BUDGET:
        warnings.warn(f"{path}: {result.reason}; {result.finished} of {result.total} tasks", stacklevel=3)
    else:
        raise RunStopped(f"{path}: {result.reason}", bad_input=result.cause is StopCause.BAD_INPUT)


def read_settings(model: str, settings: Settings) -> tuple[RunSpec, ExecutionOptions]:
    """What a run is to be and how it is to be executed; raises `BadInput` for a setting of no such name."""
    left: dict[str, Any] = dict(settings)
    names = left.pop("naming", "both")
    selection = {name: left.pop(name) for name in Selection.__struct_fields__ if name in left}
    selection["namings"] = NAMINGS if names == "both" else (naming(names),)
    sampling = {name: left.pop(name) for name in ModelOptions.__struct_fields__ if name in left}
    transport = {name: left.pop(name) for name in Transport.__struct_fields__ if name in left}
    budget = Budget(left.pop("budget_usd", None), left.pop("max_tokens_total", None))
    preflight = left.pop("preflight", not model.startswith(PREFIX))
    data, precision = left.pop("data", None), left.pop("precision", None)
    spec = RunSpec(
        model=model,
        data=None if data is None else Path(data),
        selection=convert(selection, Selection),
        seed=left.pop("seed", 0),
        protocol=Protocol(levels=left.pop("levels", PAPER.levels)),
        template=left.pop("template", None) or built_in_template(),
        options=convert(sampling, ModelOptions),
        stopping_rule=None if precision is None else StoppingRule(precision),
    )
    if left:
        raise BadInput(
            f"run: there is no setting {', '.join(sorted(left))}; see propensitybench.runs.Settings"
        )
    return spec, ExecutionOptions(convert(transport, Transport), budget, preflight=preflight)


def convert(found: Mapping[str, Any], kind: type[T]) -> T:
    """The settings as one of our types; raises `BadInput` if one has the wrong type."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"run: {error}") from error


def default_file(spec: RunSpec) -> Path:
    """Where a run is kept if nobody says: the same settings give the same file."""
    identity = digest(msgspec.json.encode(spec, enc_hook=str, order="sorted"))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.model.removeprefix(PREFIX))
    return FOLDER / f"{name}-{identity[:8]}.run"
