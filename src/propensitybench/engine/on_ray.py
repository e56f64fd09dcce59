"""Playing a run on a Ray cluster (extra ``ray``): the only module that imports Ray.

The run file and every decision are in the process that was started (the driver). It plays a run as on one
machine (`Session`), except that each episode is at a worker, a Ray actor, which streams its journal entries
back as they come. A worker that is lost is replaced, and its episodes go on from the replies that are stored.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any, Final

import msgspec
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from propensitybench.clients.options import ModelOptions
from propensitybench.engine.agents import variables_of
from propensitybench.engine.episodes import Entry
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.session import Draw, Listener, Result, Session
from propensitybench.engine.stop import StopCause, Stopped, StopSignal, until_stopped
from propensitybench.engine.worker import CANNOT_PLAY, Setup, Worker, WorkerEnd, WorkerStep
from propensitybench.episode import EpisodeJob
from propensitybench.errors import BadInput
from propensitybench.store import OutcomeEntry, RunFile

logger = logging.getLogger(__name__)

# Workers lost with not one entry between them, for each worker of the run: something kills them all.
MAX_LOSSES: Final = 3
# A worker that has no place after so long needs a machine that is not there yet.
PLACED_S: Final = 60.0
REACHED_S: Final = 10.0
LAST_PORT: Final = 65535


class _Employed:
    """A worker as its run sees it.

    Attributes:
        steps: of its unfinished tasks, as they come; None at the end if it was lost.
    """

    def __init__(self, seats: int) -> None:
        # Besides episodes, it streams news and can be stopped.
        create: Any = ray.remote(Worker).options(
            num_cpus=1, max_restarts=0, max_concurrency=seats + 2, scheduling_strategy="SPREAD"
        )
        self.actor = create.remote()
        self.steps: dict[int, asyncio.Queue[WorkerStep | None]] = {}
        self.is_lost = False

    def lose(self) -> None:
        """Nothing that it may still say counts, so that no task gets two journals."""
        self.is_lost = True
        ray.kill(self.actor)
        for steps in self.steps.values():
            steps.put_nowait(None)


class _Workers:
    """The workers of a run. Each has seats for as many episodes as it plays at once.

    Args:
        setup: of each.
        number: how many there are to be.
        stop: requested if a worker cannot go on, or if one after another is lost.
    """

    def __init__(self, setup: Setup, number: int, stop: StopSignal) -> None:
        self._setup = setup
        self._number = number
        self._stop = stop
        self._workers: set[_Employed] = set()
        self._free: asyncio.Queue[_Employed | None] = asyncio.Queue()
        self._losses = 0

    async def play(self, job: EpisodeJob) -> AsyncGenerator[tuple[Entry, ...]]:
        """Plays a job at a worker, and yields its entries; ends early if the worker is lost."""
        worker = await self._seat()
        steps = worker.steps[job.number] = asyncio.Queue()
        worker.actor.play.remote(job)
        try:
            while (step := await steps.get()) is not None:
                if not step.entries:
                    raise Stopped
                yield step.entries
                if isinstance(step.entries[-1], OutcomeEntry):
                    return
        finally:
            del worker.steps[job.number]
            self._free.put_nowait(worker)

    async def employed(self, work: Coroutine[Any, Any, None]) -> None:
        """Waits for work that needs the workers; raises what it or they raise."""
        try:
            async with asyncio.TaskGroup() as group:
                employing = [group.create_task(self._employ()) for _ in range(self._number)]
                await work
                for one in employing:
                    one.cancel()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    def stop_requests(self) -> None:
        """Sends no more requests; replies in flight may arrive."""
        for worker in self._workers:
            worker.actor.stop.remote()
        self._free.put_nowait(None)

    async def close(self) -> None:
        """Ends the workers."""
        for worker in self._workers:
            worker.lose()

    async def _seat(self) -> _Employed:
        while (worker := await self._free.get()) is not None:
            if not worker.is_lost:
                return worker
        self._free.put_nowait(None)  # for the others that wait
        raise Stopped

    async def _employ(self) -> None:
        """One worker after another."""
        seats = self._setup.transport.concurrency
        while not self._stop.stop_requested:
            worker = _Employed(seats)
            self._workers.add(worker)
            try:
                await self._follow(worker, seats)
            except RayTaskError as error:  # an error of this program, no loss
                raise error.cause from error
            except RayError as error:
                if isinstance(error, RayActorError) and error.actor_init_failed:
                    raise BadInput(f"{CANNOT_PLAY} ({str(error).splitlines()[-1]})") from error
                self._workers.discard(worker)
                worker.lose()
                self._count_loss(error)
            else:
                return

    def _count_loss(self, error: RayError) -> None:
        self._losses += 1
        if self._losses < MAX_LOSSES * self._number:
            logger.warning("a worker was lost, and its tasks go on at others (%s)", _line(error))
        else:
            why = f"one worker after another was lost, the last with: {_line(error)}"
            self._stop.request_stop(StopCause.PROVIDER, why)

    async def _follow(self, worker: _Employed, seats: int) -> None:
        waits = "a worker waits for a free CPU of the Ray cluster"
        waiting = asyncio.get_running_loop().call_later(PLACED_S, logger.warning, waits)
        try:
            async for reference in worker.actor.news.options(num_returns="streaming").remote(self._setup):
                news = await reference
                if not waiting.cancelled():  # the first
                    waiting.cancel()
                    for _ in range(seats):
                        self._free.put_nowait(worker)
                for one in news:
                    self._hear(worker, one)
        finally:
            waiting.cancel()

    def _hear(self, worker: _Employed, news: WorkerStep | WorkerEnd | logging.LogRecord) -> None:
        if isinstance(news, WorkerEnd):
            self._stop.request_stop(news.cause, news.reason)
        elif isinstance(news, logging.LogRecord):
            logging.getLogger(news.name).handle(news)
        elif steps := worker.steps.get(news.task):
            self._losses = 0
            steps.put_nowait(news)


def _line(error: BaseException) -> str:
    """The first line of an error, since Ray adds pages about the cluster."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


async def run_on_ray(
    path: Path,
    asked: ModelOptions,
    options: ExecutionOptions,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
    draw: Draw | None = None,
) -> Result:
    """Plays the unfinished tasks of a run file on a Ray cluster; see `run_tasks_async`.

    Args:
        path: the run file, which only this process writes to.
        asked: the options of its model.
        options: concurrency and rates of all workers together, their number, and where they run.
        on_progress: called after each task and every second.
        stop: stops the run when set, from any thread.
        draw: says how many tasks to play once all drawn so far have ended.

    Raises:
        BadInput: the cluster cannot be reached.
    """
    stop, at_once = stop or StopSignal(), options.transport.concurrency
    with RunFile.open(path, write=True) as run:
        async with _connection(options.ray_address, options.workers) as possible:
            number = min(at_once, possible)
            setup = Setup(
                package=version("propensitybench"),
                model=run.manifest.model,
                options=asked,
                dialect=run.manifest.dialect,
                transport=msgspec.structs.replace(
                    options.transport.divided(number), concurrency=ceil(at_once / number)
                ),
                endpoints=options.endpoints,
                variables=variables_of(run.manifest.model, asked.base_url),
            )
            workers = _Workers(setup, number, stop)
            session = Session(run, workers.play, options, stop, on_progress, draw)
            await until_stopped(workers.employed(session.play(at_once)), stop, [workers])
            return session.result()


@asynccontextmanager
async def _connection(address: str | None, workers: int | None) -> AsyncIterator[int]:
    """A connection to a Ray cluster; gives the number of workers that it is to have.

    A program that has connected to Ray already keeps its connection.
    """
    if ray.is_initialized():
        yield workers or _nodes()
        return
    address = address or os.environ.get("RAY_ADDRESS")
    if address == "local":
        address = None
    if address not in (None, "auto"):
        await _check_reachable(address)
    cpus = workers or os.cpu_count() or 1
    local: dict[str, Any] = {"address": "local", "num_cpus": cpus, "num_gpus": 0, "include_dashboard": False}
    given = local if address is None else {"address": address}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        # In a thread, since it takes seconds, and there it leaves the signals alone.
        await asyncio.to_thread(ray.init, log_to_driver=False, logging_level=logging.ERROR, **given)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        what = "Ray cannot be started on this machine" if address is None else f"--ray-address {address}"
        token = (
            ""
            if address is None
            else "; if the cluster asks for a token, copy its ~/.ray/auth_token to this machine and type: "
            "export RAY_AUTH_MODE=token"
        )
        raise BadInput(f"{what}: {_line(error)}{token}") from error
    try:
        yield cpus if address is None else workers or _nodes()
    finally:
        await asyncio.to_thread(ray.shutdown)


async def _check_reachable(address: str) -> None:
    """Checks that something listens at an address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) > LAST_PORT:
        raise BadInput(f"--ray-address {address}: must be like 10.0.0.5:6379, or auto")
    try:
        async with asyncio.timeout(REACHED_S):
            _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
    except OSError as error:  # a timeout is one
        why = error.strerror or f"no answer within {REACHED_S:g} s"
        raise BadInput(f"--ray-address {address}: no Ray cluster can be reached there ({why})") from error


def _nodes() -> int:
    """Number of machines of the cluster that can have a worker."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return max(1, len([node for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]))
