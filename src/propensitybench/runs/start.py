"""Starting a run: the one way from what the user asked for to the first task, for commands and Python."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.given import GivenClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import (
    Budget,
    Endpoints,
    ExecutionOptions,
    Result,
    RunSpec,
    StopCause,
    StopSignal,
    check_endpoint,
    check_replicas,
    client_at,
    client_for,
    create_run,
    is_complete,
    run_tasks_async,
    use_recorded_dialect,
)
from propensitybench.engine.session import Draw, Listener, price_of, spending_of
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.runs.resolve import (
    checked,
    kept_of,
    read_execution,
    read_kept,
    read_model_options,
)
from propensitybench.runs.settings import Settings
from propensitybench.runs.trust import Confirm, check_addressed, check_trusted, destination, moved
from propensitybench.simulated import PREFIX
from propensitybench.store import Manifest, RunFile, Shard, scheduled
from propensitybench.store.filesystems import require_local

# Somebody waits for the preflight: a wrong address must not take minutes to show.
PREFLIGHT_RETRIES = 2
logger = logging.getLogger(__name__)


class Held(NamedTuple):
    """What a run file holds before it is played.

    Attributes:
        total: tasks to play; under a stopping rule, of those drawn.
        left: whether there is something to play.
        used_up: a sentence if the budget is, else empty.
    """

    manifest: Manifest
    shard: Shard | None
    finished: int
    total: int
    left: bool
    used_up: str


class Start:
    """A run that is to be played: `begin` it, then `play` it.

    Args:
        path: its run file, which need not exist if ``spec`` is given.
        settings: how it is played; what is left out is as it was when it was played last.
        spec: what the user asked for, model and endpoint included; None is what the file says.
        trust_endpoint: whether the file's own endpoint may be used; ``spec`` has the user's.
        draw: the number of tasks to draw once all drawn so far have ended; None is what the file says.
        as_before: whether settings that are left out are as they were, or the defaults.

    Raises:
        BadInput: the file or a setting cannot be used.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        spec: RunSpec | None = None,
        *,
        trust_endpoint: bool = False,
        draw: Draw | None = None,
        as_before: bool = True,
    ) -> None:
        self.path = path
        self._spec = spec
        self._draw = draw
        self._client: Client | None = None
        self._held: Held | None = None
        self.as_before = Settings()
        self.settings = checked(settings)
        if spec is None or path.exists():
            with RunFile.open(path) as file:
                kept = read_kept(file) if as_before else Settings()
                self.as_before = cast(Settings, {k: v for k, v in kept.items() if k not in self.settings})
                self.settings = {**kept, **self.settings}
                self.execution = self._execution(trust_endpoint)
                self._held = self._read(file)
        else:
            self.execution = self._execution(trust_endpoint)

    def _execution(self, trust_endpoint: bool) -> ExecutionOptions:
        spec = self._spec
        found = read_execution(self.settings, trust_endpoint=trust_endpoint or spec is not None)
        if found.endpoints is None and spec is not None and spec.options.base_url is not None:
            return msgspec.structs.replace(found, endpoints=Endpoints((spec.options.base_url,)))
        return found

    def _read(self, file: RunFile) -> Held:
        total, complete = scheduled(file), is_complete(file)
        to_draw = self._draw(file) if complete and self._draw is not None else total
        left = not complete or to_draw != total
        used_up = ""
        if left and self.execution.budget != Budget():
            used_up = spending_of(file, self.execution).exhausted()
        return Held(file.manifest, file.shard, file.finished(), to_draw, left, used_up)

    @property
    def held(self) -> Held:
        """What the run file holds; only after `begin` if the run is new."""
        assert self._held is not None
        return self._held

    @property
    def model_options(self) -> ModelOptions:
        """The model's options, from the run file."""
        manifest = self.held.manifest
        return read_model_options(manifest.options, file_name(self.path), manifest.package)

    async def begin(
        self,
        client: GivenClient | None = None,
        create: Callable[[RunSpec, Path], object] = create_run,
        confirm: Confirm | None = None,
    ) -> None:
        """Does what comes before the first task: creates the file, unless it exists, and checks the endpoint.

        Nothing is sent if the run is complete or its budget is used up.

        Args:
            client: answers in the model's place, without a preflight.
            create: creates the run file, or refuses one that holds another run.
            confirm: asks the user about an endpoint that only the file names; None refuses it.

        Raises:
            BadInput: the run, its model or its endpoint cannot be used, or the file holds another run.
        """
        is_new = self._held is None
        if client is not None and self.execution.engine == "ray":
            raise BadInput(
                "client: cannot be sent to Ray's workers; give the model's address, or leave out engine"
            )
        if self._spec is not None:
            require_local(self.path)
            create(await self._checked(self._spec, client) if is_new else self._spec, self.path)
            with RunFile.open(self.path) as file:  # which may have grown
                self._held = self._read(file)
        if not self.held.left:
            self._note_of_complete()
        if self._over() is not None:
            return
        require_local(self.path)
        answering: Client | None = client
        if answering is None:
            name, manifest = file_name(self.path), self.held.manifest
            if not is_new:
                asking = confirm if self._spec is None else None
                self.execution = await reach(name, manifest, self.execution, asking)
            own = self._own
            answering = client_at(own.endpoints, manifest.model, self.model_options, own.transport)
        self._client = answering

    async def play(self, on_progress: Listener | None = None, stop: StopSignal | None = None) -> Result:
        """Plays the unfinished tasks, in this process or on Ray; the file keeps how it is played.

        Args:
            on_progress: called after each task and every second.
            stop: stops the run when set, from any thread.

        Raises:
            BadInput: the file cannot be written to.
        """
        over = self._over()
        if over is not None and over.cause is None:
            return over
        with RunFile.open(self.path, write=True) as file:
            file.keep_execution(kept_of(self.settings))
            if over is not None:
                return over
            assert self._client is not None
            if self.execution.engine == "local":
                return await run_tasks_async(
                    file, self._client, self._own, on_progress=on_progress, stop=stop, draw=self._draw
                )
        from propensitybench.engine.on_ray import run_on_ray

        return await run_on_ray(self.path, self.model_options, self._own, on_progress, stop, self._draw)

    @property
    def _own(self) -> ExecutionOptions:
        """The execution of this file: a shard has a part of the rates."""
        transport = transport_of(self.held.shard, self.execution.transport)
        return msgspec.structs.replace(self.execution, transport=transport)

    def _over(self) -> Result | None:
        """How the run ended if there is nothing to play, or the budget is used up."""
        held = self.held
        if not held.left:
            return Result(held.total, held.total, None, "")
        return Result(held.finished, held.total, StopCause.BUDGET, held.used_up) if held.used_up else None

    def _note_of_complete(self) -> None:
        name, asked = file_name(self.path), self.model_options
        if self._spec is not None and moved(name, asked, self.execution.endpoints):
            logger.warning("%s: was made at %s and is complete, so nothing is sent", name, asked.base_url)

    async def _checked(self, spec: RunSpec, client: GivenClient | None) -> RunSpec:
        """The specification with what answers, or what the check of the model's endpoint found out."""
        if client is not None:
            price_of(spec.model, self.execution)
            return msgspec.structs.replace(spec, client=client.name)
        dialect = await check_model(spec.model, spec.options, self.execution)
        for change in dialect.changes if dialect else ():
            logger.warning("adapted to the endpoint: %s", change)
        return msgspec.structs.replace(spec, dialect=dialect)


async def reach(
    file: str, manifest: Manifest, execution: ExecutionOptions, confirm: Confirm | None
) -> ExecutionOptions:
    """Checks the endpoint at which the model of a run file is to be asked.

    Args:
        file: the run file's name.
        manifest: the run's.
        execution: the user's endpoints, or trust in the file's own.
        confirm: asks the user about an endpoint that only the file names; None refuses it.

    Returns:
        The execution options with the user's confirmation.

    Raises:
        BadInput: the endpoint is not confirmed, cannot be used, or fails the preflight, or the run was played
            from Python.
    """
    check_addressed(file, manifest)
    model, asked = manifest.model, read_model_options(manifest.options, file, manifest.package)
    if note := moved(file, asked, execution.endpoints):
        logger.warning("%s", note)
    elif execution.endpoints is None and not execution.trust_endpoint:
        check_trusted(file, asked, confirm)
        execution = msgspec.structs.replace(execution, trust_endpoint=True)
    if confirm is not None and not model.startswith(PREFIX):  # the user may never have typed it
        logger.warning("asking %s", destination(model, asked, execution.endpoints))
    await check_model(model, asked, execution, manifest.dialect)
    return execution


async def check_model(
    model: str,
    options: ModelOptions,
    execution: ExecutionOptions,
    recorded: Mapping[str, Any] | None = None,
) -> ChatDialect | None:
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
        use_recorded_dialect(client, recorded or {})
    if len(clients) > 1:
        return await check_replicas(clients, adapt=recorded is None)
    (client,) = clients.values()
    return await check_endpoint(client, adapt=recorded is None)


def transport_of(shard: Shard | None, transport: RequestLimits) -> RequestLimits:
    """The part of the rates that one shard has: all of them may send at the same time."""
    return transport if shard is None else transport.divided(shard.of)
