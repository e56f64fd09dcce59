"""Running a model with one call."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from propensitybench.clients import Client
from propensitybench.engine import Progress, Result, StopCause, StopSignal, block_on
from propensitybench.errors import RunStopped
from propensitybench.files import file_name
from propensitybench.runs.resolve import default_file, read_spec
from propensitybench.runs.settings import Settings
from propensitybench.runs.start import Start
from propensitybench.runs.stored import StoredRun

OnProgress = Callable[[Progress], None]
logger = logging.getLogger(__name__)


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
    start, stop = _start(model, file, settings), StopSignal()
    try:
        result = block_on(lambda: _result(start, client, on_progress, stop), stop)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{file_name(start.path)}: interrupted; the same call resumes the run"
        ) from None
    return _ended(start, result)


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
    start = _start(model, file, settings)
    return _ended(start, await _result(start, client, on_progress))


def _start(model: str, file: str | os.PathLike[str] | None, settings: Settings) -> Start:
    spec = read_spec(model, settings)
    return Start(default_file(spec) if file is None else Path(file), settings, spec)


async def _result(
    start: Start, client: Client | None, on_progress: OnProgress | None, stop: StopSignal | None = None
) -> Result:
    await start.begin(client)
    return await start.play(on_progress, stop)


def _ended(start: Start, result: Result) -> StoredRun:
    """The run, if it ended as it should; a budget that is spent is a note."""
    if result.cause is not None and result.finished < result.total:
        progress = f"{file_name(start.path)}: {result.finished} of {result.total} tasks are finished"
        if result.cause is not StopCause.BUDGET:
            bad_input = result.cause is StopCause.BAD_INPUT
            raise RunStopped(f"{progress}; stopped: {result.reason}", bad_input=bad_input)
        logger.warning("%s; %s; a higher one resumes the run", progress, result.reason)
    return StoredRun(start.path)
