"""Running a model with one call."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from propensitybench.clients import Client
from propensitybench.clients.function import AgentFunction
from propensitybench.clients.given import GivenClient, given_client
from propensitybench.engine import Progress, Result, StopCause, StopSignal, block_on
from propensitybench.errors import RunStopped
from propensitybench.files import file_name
from propensitybench.presentation.progress import Bar, shown_run
from propensitybench.runs.resolve import default_file, read_spec
from propensitybench.runs.settings import Settings
from propensitybench.runs.start import Start
from propensitybench.runs.stored import StoredRun
from propensitybench.store import RunFile

OnProgress = Callable[[Progress], None]
logger = logging.getLogger(__name__)


def run(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | AgentFunction | None = None,
    on_progress: OnProgress | None = None,
    progress: bool = True,
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
        client: answers in the model's place, without a preflight: a function of messages and tools, or a
            `Client`; ``model`` is then the name that it has in the run file.
        on_progress: called after each task and every second, in place of the bar.
        progress: whether to show a bar, in a terminal or a notebook.
        settings: see `Settings`.

    Raises:
        BadInput: a setting or the client cannot be used, or the file holds another run.
        RunStopped: the provider can no longer answer, or the client fails again and again; the same call
            resumes the run.
        KeyboardInterrupt: Ctrl-C; the same call resumes the run.
    """
    start, given, stop = _start(model, file, settings), _given(client, model), StopSignal()
    try:
        with _shown(model, on_progress, progress=progress) as listener:
            result = block_on(lambda: _result(start, given, listener, stop), stop)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{file_name(start.path)}: interrupted; the same call resumes the run"
        ) from None
    return _ended(start, result, stop)


async def run_async(
    model: str,
    file: str | os.PathLike[str] | None = None,
    *,
    client: Client | AgentFunction | None = None,
    on_progress: OnProgress | None = None,
    **settings: Unpack[Settings],
) -> StoredRun:
    """`run` for asynchronous code: other tasks of the event loop continue meanwhile, several runs among them.

    It shows no bar.

    Cancelling it stops the run as Ctrl-C stops `run`, and raises `CancelledError` once it has stopped. To
    stop it on a signal, cancel its task in your handler of that signal.
    """
    start, given, stop = _start(model, file, settings), _given(client, model), StopSignal()
    return _ended(start, await _result(start, given, on_progress, stop), stop)


def _start(model: str, file: str | os.PathLike[str] | None, settings: Settings) -> Start:
    spec = read_spec(model, settings)
    return Start(default_file(spec) if file is None else Path(file), settings, spec)


@contextmanager
def _shown(model: str, on_progress: OnProgress | None, *, progress: bool) -> Iterator[OnProgress | None]:
    if on_progress is not None or not progress:
        yield on_progress
        return
    with Bar(model) as bar:
        yield shown_run(bar, model)


def _given(client: Client | AgentFunction | None, model: str) -> GivenClient | None:
    return None if client is None else given_client(client, model)


async def _result(
    start: Start, client: GivenClient | None, on_progress: OnProgress | None, stop: StopSignal
) -> Result:
    await start.begin(client)
    return await start.play(on_progress, stop)


def _ended(start: Start, result: Result, stop: StopSignal) -> StoredRun:
    """The run, if it ended as it should; a budget that is spent is a note."""
    if result.cause is not None and result.finished < result.total:
        with RunFile.open(start.path) as file:
            finished = file.finished()
        progress = f"{file_name(start.path)}: {finished} of {result.total} tasks are finished"
        if result.cause is not StopCause.BUDGET:
            bad_input = result.cause is StopCause.BAD_INPUT
            raise RunStopped(f"{progress}; stopped: {result.reason}", bad_input=bad_input) from stop.error
        logger.warning("%s; %s; a higher one resumes the run", progress, result.reason)
    return StoredRun(start.path)
