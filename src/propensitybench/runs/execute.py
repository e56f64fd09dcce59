"""Running a model with one call."""

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.wire_policy import WirePolicy
from propensitybench.engine import (
    Budget,
    Endpoints,
    ExecutionOptions,
    Progress,
    Result,
    RunSpec,
    StopCause,
    StopSignal,
    adopt,
    block_on,
    check_endpoint,
    check_replicas,
    client_for,
    create_run,
    is_complete,
    run_tasks_async,
)
from propensitybench.engine.session import Draw, price_of, spending_of
from propensitybench.errors import BadInput, RunStopped
from propensitybench.files import file_name
from propensitybench.runs.resolve import (
    default_file,
    read_execution,
    read_model_options,
    read_settings,
    with_kept,
)
from propensitybench.runs.settings import Settings
from propensitybench.runs.stored import StoredRun
from propensitybench.runs.trust import client_of_run, moved
from propensitybench.store import RunFile, Shard, scheduled
from propensitybench.store.filesystems import require_local

OnProgress = Callable[[Progress], None]
# Somebody waits for the preflight: a wrong address must not take minutes to show.
PREFLIGHT_RETRIES = 2


def run(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | None = None,
    on_progress: OnProgress | None = None,
    **settings: Unpack[Settings],
) -> StoredRun:
    """Runs a model on a selection of tasks and waits for it; also works in a notebook.

    The run is kept in a run file. The same call opens that file again and finishes what is unfinished: no
    reply is paid for twice.

    Signals, limits and garbage collection of your process stay as they are. Ctrl-C stops the run: replies in
    flight have five seconds to arrive and are stored; a second Ctrl-C does not wait for them. SIGTERM ends
    Python at once, unless you handle it, and only replies in flight are lost.

    Args:
        model: ``simulated/PROFILE``, ``provider/name``, or with ``base_url`` the endpoint's own name.
        file: the run file; by default one in ``propensitybench-runs`` whose name depends on the settings.
        client: answers in the model's place, without a preflight; ``client.model`` must be ``model``.
        on_progress: called after each task and every second.
        settings: see `Settings`.

    Raises:
        BadInput: a setting cannot be used, or the file holds another run.
        RunStopped: the provider can no longer answer; the same call resumes the run.
        KeyboardInterrupt: Ctrl-C; the same call resumes the run.
    """
    spec = read_settings(model, settings).spec
    path = default_file(spec) if file is None else Path(file)
    options = read_execution(with_kept(path, settings))
    stop = StopSignal()
    try:
        result = block_on(lambda: execute(spec, path, options, client, on_progress, stop), stop)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{file_name(path)}: interrupted; the same call resumes the run") from None
    return _opened(path, result)


async def run_async(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | None = None,
    on_progress: OnProgress | None = None,
    **settings: Unpack[Settings],
) -> StoredRun:
    """`run` for asynchronous code: other tasks of the event loop continue meanwhile, several runs among them.

    Cancelling it stops the run as Ctrl-C stops `run`, and raises `CancelledError` once it has stopped. To
    stop it on a signal, cancel its task in your handler of that signal.
    """
    spec = read_settings(model, settings).spec
    path = default_file(spec) if file is None else Path(file)
    options = read_execution(with_kept(path, settings))
    return _opened(path, await execute(spec, path, options, client, on_progress))


async def execute(
    spec: RunSpec,
    path: Path,
    options: ExecutionOptions,
    client: Client | None = None,
    on_progress: OnProgress | None = None,
    stop: StopSignal | None = None,
) -> Result:
    """Creates a run file, unless it exists, and plays its unfinished tasks; raises as `run` does."""
    require_local(path)
    is_new = not path.exists()
    options = typed_by_user(spec, options)
    if client is None and is_new:
        wire = await check_model(spec.model, spec.options, options)
        for change in wire.adapted if wire else ():
            warnings.warn(f"adapted to the endpoint: {change}", stacklevel=2)
        spec = msgspec.structs.replace(spec, wire=wire)
    for warning in create_run(spec, path).warnings:
        warnings.warn(warning, stacklevel=2)
    if client is None and not is_new:
        await check_moved(path, options)
    return await finish(path, options, client, on_progress, stop)


def typed_by_user(spec: RunSpec, options: ExecutionOptions) -> ExecutionOptions:
    """The options for a run whose endpoint the user has just given: it is trusted, and used."""
    endpoints, url = options.endpoints, spec.options.base_url
    if endpoints is None and url is not None:
        endpoints = Endpoints((url,))
    return msgspec.structs.replace(options, endpoints=endpoints, trust_endpoint=True)


async def check_moved(path: Path, options: ExecutionOptions) -> None:
    """Checks the endpoints at which an existing run goes on, if it was not made there, and warns of the move.

    Raises:
        BadInput: as `check_model`, or the run was not made at a base URL.
    """
    with RunFile.open(path) as file:
        manifest, complete = file.manifest, is_complete(file)
    asked = read_model_options(manifest.options, file_name(path), manifest.package)
    note = moved(file_name(path), asked, options.endpoints)
    if complete and note:
        note = f"{file_name(path)}: was made at {asked.base_url} and is complete, so nothing is sent"
    if note:
        warnings.warn(note, stacklevel=2)
        if not complete and not used_up(path, options):
            await check_model(manifest.model, asked, options, manifest.wire)


async def check_model(
    model: str,
    options: ModelOptions,
    execution: ExecutionOptions,
    recorded: Mapping[str, Any] | None = None,
) -> WirePolicy | None:
    """Checks that a model can be used; with preflight, that its endpoint answers as a run needs.

    Args:
        model: its address.
        options: the model's.
        execution: says whether there is a preflight, and how requests are sent.
        recorded: how the run's requests are written; None for a new run, which may adapt to the endpoint.

    Returns:
        How requests are to be written; None without a preflight.

    Raises:
        BadInput: its address or options cannot be used, the endpoint fails the preflight, or a budget in US
            dollars has no price.
    """
    price_of(model, execution)
    transport = execution.transport
    retries = min(PREFLIGHT_RETRIES, transport.max_retries)
    transport = msgspec.structs.replace(transport, max_retries=retries)
    urls = (options.base_url,) if execution.endpoints is None else execution.endpoints.read()
    clients = {
        url or "": client_for(model, msgspec.structs.replace(options, base_url=url), transport)
        for url in urls
    }
    if not execution.preflight or not all(client.has_endpoint for client in clients.values()):
        return None
    for client in clients.values():
        adopt(client, recorded or {})
    if len(clients) > 1:
        return await check_replicas(clients, adapt=recorded is None)
    (client,) = clients.values()
    return await check_endpoint(client, adapt=recorded is None)


async def finish(
    path: Path,
    options: ExecutionOptions,
    client: Client | None = None,
    on_progress: OnProgress | None = None,
    stop: StopSignal | None = None,
    draw: Draw | None = None,
) -> Result:
    """Plays the unfinished tasks of a run file; a complete file is not touched.

    The file keeps how it is played. Once the budget is used up, nothing is sent and no client is made. More
    than the file asks for is played as ``draw`` says, see `run_tasks_async`.

    Raises:
        BadInput: the file, its model or its options cannot be used, or the file names an endpoint that
            ``options`` neither trusts nor replaces.
    """
    with RunFile.open(path) as file:
        manifest, shard, total = file.manifest, file.shard, scheduled(file)
        to_draw = total if draw is None or not is_complete(file) else draw(file)
        if is_complete(file) and to_draw == total:
            return Result(total, total, None, "")
        finished = file.finished()
    stop = stop or StopSignal()
    if reason := used_up(path, options):
        _keep(path, options)
        return Result(finished, to_draw, StopCause.BUDGET, reason)
    if client is not None and options.engine == "ray":
        raise BadInput(
            "client: cannot be sent to Ray's workers; give the model's address, or leave out engine"
        )
    asked = ModelOptions()
    own = msgspec.structs.replace(options, transport=transport_of(shard, options.transport))
    if client is None:
        asked = read_model_options(manifest.options, file_name(path), manifest.package)
        client = client_of_run(file_name(path), manifest.model, asked, own)
    _keep(path, options)
    if options.engine == "ray":
        from propensitybench.engine.on_ray import run_on_ray

        return await run_on_ray(path, asked, own, on_progress, stop, draw)
    with RunFile.open(path, write=True) as file:
        return await run_tasks_async(file, client, own, on_progress=on_progress, stop=stop, draw=draw)


def _keep(path: Path, options: ExecutionOptions) -> None:
    with RunFile.open(path, write=True) as file:
        file.keep_execution(options.kept)


def used_up(path: Path, options: ExecutionOptions) -> str:
    """A sentence if an existing run has used up its budget; empty if not, or if it has none.

    Raises:
        BadInput: the file cannot be read, or a budget in US dollars has no price.
    """
    if options.budget == Budget():
        return ""
    with RunFile.open(path) as file:
        return spending_of(file, options).exhausted()


def transport_of(shard: Shard | None, transport: Transport) -> Transport:
    """The part of the rates that one shard has: all of them may send at the same time."""
    return transport if shard is None else transport.divided(shard.of)


def _opened(path: Path, result: Result) -> StoredRun:
    """The run, if it ended as it should; a budget that is spent is a warning."""
    if result.cause is not None and result.finished < result.total:
        progress = f"{file_name(path)}: {result.finished} of {result.total} tasks are finished"
        if result.cause is not StopCause.BUDGET:
            bad_input = result.cause is StopCause.BAD_INPUT
            raise RunStopped(f"{progress}; stopped: {result.reason}", bad_input=bad_input)
        warnings.warn(f"{progress}; {result.reason}; a higher one resumes the run", stacklevel=3)
    return StoredRun(path)
