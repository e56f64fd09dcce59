"""Workers as Ray actors (extra ``ray``): the only module that imports Ray.

Ray places the workers, starts new ones for those that are lost, and carries what they and the coordinator say
to each other. It knows nothing of tasks: the run file and every decision are the coordinator's.
"""

import asyncio
import gc
import logging
import os
import tempfile
import uuid
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine.agents import variables_of
from propensitybench.engine.endpoints import Endpoints, client_at
from propensitybench.engine.episodes import Entry
from propensitybench.engine.exchange import Order, Rates, Report
from propensitybench.engine.local import GC_THRESHOLDS, begin
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.session import Draw, Listener, Result, Session
from propensitybench.engine.stop import StopSignal
from propensitybench.engine.worker import Worker, rest_of
from propensitybench.engine.workers import WorkerLost, WorkersPlayer, slots_of
from propensitybench.errors import BadInput
from propensitybench.store import RunFile, blank_copy
from propensitybench.store.opening import besides

# How long workers have to close their files at the end; then they are ended all the same.
CLOSED_S: Final = 5.0
# A worker that has no place after so long needs a machine that is not there yet.
PLACED_S: Final = 60.0
REACHED_S: Final = 10.0
LAST_PORT: Final = 65535


class Environment(msgspec.Struct, frozen=True):
    """Variables that hold keys: nothing prints them."""

    variables: dict[str, str]

    def __repr__(self) -> str:
        return f"Environment({len(self.variables)} variables)"


class Setup(msgspec.Struct, frozen=True):
    """What every worker of a run needs to know.

    Attributes:
        folder: name of the folder for their files, in the folder for temporary files of each machine.
        package: version of this package.
        model: the model's address.
        options: the model's.
        transport: how a worker sends requests.
        endpoints: where they go; None is where the model's options say.
    """

    folder: str
    package: str
    model: str
    options: ModelOptions
    transport: Transport
    endpoints: Endpoints | None

    def file(self, worker: int) -> Path:
        """The file of a worker, on its machine."""
        return Path(tempfile.gettempdir()) / self.folder / f"{worker}.run"


class _Actor:
    """A worker in a process of its own.

    Keys come with a call, not with the actor's creation: Ray keeps what an actor is created from, and shows
    its runtime environment to everybody who may look at the cluster.
    """

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._files: list[Path] = []

    async def open(self, setup: Setup, blank: bytes, number: int, environment: Environment) -> str:
        """Begins to play; returns the id of its node."""
        if (here := version("propensitybench")) != setup.package:
            raise BadInput(
                f"a machine of the Ray cluster has propensitybench {here}, and this one {setup.package}: "
                "install the same version on all of them"
            )
        gc.set_threshold(*GC_THRESHOLDS)
        warnings.showwarning = lambda message, *_, **__: self._notes.append(str(message))
        os.environ.update(environment.variables)
        client = client_at(setup.endpoints, setup.model, setup.options, setup.transport)
        self._setup, path = setup, setup.file(number)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(blank)
        self._files.append(path)
        self._worker = Worker(RunFile.open(path, write=True), client, setup.transport.concurrency)
        return str(ray.get_runtime_context().get_node_id())

    async def exchange(self, order: Order) -> Report:
        """See `Worker.exchange`."""
        report = await self._worker.exchange(order)
        notes, self._notes[:] = tuple(self._notes), []
        return msgspec.structs.replace(report, notes=notes)

    async def rescue(self, lost: int, stored: dict[int, int]) -> tuple[Entry, ...]:
        """See `Cluster.rescue`."""
        path = self._setup.file(lost)
        self._files.append(path)
        return rest_of(path, stored)

    async def close(self) -> None:
        """Ends the worker, and removes its file and those that it rescued: all of it has been reported."""
        await self._worker.close()
        for path in self._files:
            for one in (path, *besides(path), path.with_name(path.name + ".lock")):
                one.unlink(missing_ok=True)
        with suppress(OSError):  # another worker of this machine has not ended yet
            self._files[0].parent.rmdir()


class RayCluster:
    """Workers on a Ray cluster; see `Cluster`.

    Args:
        blank: a blank copy of the run file.
        setup: of the workers.
        environment: the variables that hold the keys.
    """

    def __init__(self, blank: bytes, setup: Setup, environment: Environment) -> None:
        self._setup = setup
        self._blank = ray.put(blank)
        self._environment = environment
        self._actors: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}

    async def start(self, worker: int, slots: int, replaces: int | None) -> None:
        """See `Cluster.start`."""
        node = self._nodes.get(replaces) if replaces is not None else None
        strategy = NodeAffinitySchedulingStrategy(node, soft=True) if node else "SPREAD"
        actor: Any = (
            ray.remote(_Actor).options(num_cpus=1, max_restarts=0, scheduling_strategy=strategy).remote()
        )
        self._actors[worker] = actor
        transport = msgspec.structs.replace(self._setup.transport, concurrency=slots)
        setup = msgspec.structs.replace(self._setup, transport=transport)
        opening = asyncio.ensure_future(
            _answer(actor.open.remote(setup, self._blank, worker, self._environment))
        )
        try:
            await asyncio.wait({opening}, timeout=PLACED_S)
            if not opening.done():
                warnings.warn("a worker waits for a free CPU of the Ray cluster", stacklevel=2)
            self._nodes[worker] = await opening
        finally:
            opening.cancel()

    async def exchange(self, worker: int, order: Order) -> Report:
        """See `Cluster.exchange`."""
        report: Report = await _answer(self._actors[worker].exchange.remote(order))
        return report

    async def rescue(self, worker: int, lost: int, stored: Mapping[int, int]) -> tuple[Entry, ...]:
        """See `Cluster.rescue`."""
        entries: tuple[Entry, ...] = await _answer(self._actors[worker].rescue.remote(lost, dict(stored)))
        return entries

    async def drop(self, worker: int) -> None:
        """See `Cluster.drop`."""
        if actor := self._actors.pop(worker, None):
            ray.kill(actor)

    async def close(self) -> None:
        """See `Cluster.close`."""
        closing = [asyncio.ensure_future(_answer(actor.close.remote())) for actor in self._actors.values()]
        if closing:
            await asyncio.wait(closing, timeout=CLOSED_S)
        for one in closing:
            one.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for worker in list(self._actors):
            await self.drop(worker)


async def _answer(call: Any) -> Any:
    try:
        return await call
    except RayTaskError as error:
        if isinstance(error.cause, BadInput):
            raise error.cause from None
        raise WorkerLost(_line(error.cause)) from error
    except RayError as error:
        raise WorkerLost(_line(error)) from error


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
        BadInput: the cluster cannot be reached, or no worker can play this run.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "blank.run"
        blank_copy(path, copy)
        blank = copy.read_bytes()
    stop = stop or StopSignal()
    with RunFile.open(path, write=True) as run:
        spending = begin(run, options)
        async with _connection(options.ray_address, options.workers) as workers:
            slots = slots_of(options.transport.concurrency, workers)
            setup = Setup(
                folder=f"propensitybench-{uuid.uuid4().hex}",
                package=version("propensitybench"),
                model=run.manifest.model,
                options=asked,
                transport=options.transport.divided(len(slots)),
                endpoints=_anywhere(options.endpoints),
            )
            environment = Environment(variables_of(run.manifest.model, asked.base_url))
            cluster = RayCluster(blank, setup, environment)
            rates = Rates(options.transport.rpm, options.transport.tpm)
            player = WorkersPlayer(run, cluster, slots, rates, spending, stop)
            return await Session(run, player, spending, stop, on_progress, draw).run()


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


def _anywhere(endpoints: Endpoints | None) -> Endpoints | None:
    """The endpoints as workers find them: a file of them by its whole path, on every machine."""
    if endpoints is None or endpoints.file is None:
        return endpoints
    return Endpoints(file=endpoints.file.resolve())
