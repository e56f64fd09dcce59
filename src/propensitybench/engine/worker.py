"""A worker of a run: plays the jobs that it is given, in a process of its own, and says what comes of them.

It knows neither the run file nor how what it says is carried.
"""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from logging.handlers import QueueHandler
from typing import Any, Final

import msgspec

from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine.agents import use_recorded_dialect
from propensitybench.engine.endpoints import Endpoints, client_at
from propensitybench.engine.episodes import Entry, run_episode
from propensitybench.engine.local import GC_THRESHOLDS
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.stop import StopCause, Stopped, StopSignal
from propensitybench.episode import EpisodeJob
from propensitybench.errors import BadInput

CANNOT_PLAY: Final = (
    "a machine of the Ray cluster cannot play this run: "
    "install the same version of propensitybench on all of them"
)


class Setup(msgspec.Struct, frozen=True):
    """What a worker needs to know.

    Attributes:
        package: version of this package.
        model: the model's address.
        options: the model's.
        dialect: how its requests are written; see `use_recorded_dialect`.
        transport: how the worker sends them.
        endpoints: where they go; None is where the model's options say.
        variables: environment variables that hold keys; nothing prints them.
    """

    package: str
    model: str
    options: ModelOptions
    dialect: Mapping[str, Any]
    transport: RequestLimits
    endpoints: Endpoints | None = None
    variables: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Setup({self.model}, {len(self.variables)} variables)"

    def client(self) -> Client:
        """The worker's client; raises `BadInput` if it cannot play this run."""
        if (here := version("propensitybench")) != self.package:
            raise BadInput(f"{CANNOT_PLAY} (propensitybench {here}, and {self.package} here)")
        os.environ.update(self.variables)
        possible = within_open_files(self.transport.concurrency)
        transport = msgspec.structs.replace(self.transport, concurrency=possible)
        client = client_at(self.endpoints, self.model, self.options, transport)
        use_recorded_dialect(client, self.dialect)
        return client


class WorkerStep(msgspec.Struct, frozen=True):
    """The next entries of a task's journal; none if its episode was stopped."""

    task: int
    entries: tuple[Entry, ...]


class WorkerEnd(msgspec.Struct, frozen=True):
    """Why a worker cannot go on, and with it the run."""

    cause: StopCause
    reason: str


# An exception is an error of this program, and a log record a note for the user.
News = WorkerStep | WorkerEnd | Exception | logging.LogRecord


class Worker:
    """Plays episodes in a process of its own."""

    def __init__(self) -> None:
        gc.set_threshold(*GC_THRESHOLDS)
        self._news: asyncio.Queue[News] = asyncio.Queue()
        self._stop = StopSignal()
        notes = QueueHandler(self._news)
        notes.setLevel(logging.WARNING)
        logging.getLogger("propensitybench").addHandler(notes)

    async def news(self, setup: Setup) -> AsyncIterator[list[News]]:
        """What happens, as it happens; first of all that the worker is ready.

        Keys come with this call and not with the actor's creation: Ray keeps what an actor is created from.
        """
        try:
            self._client = setup.client()
        except BadInput as error:
            yield [WorkerEnd(StopCause.BAD_INPUT, str(error))]
            return
        self._stop.on_stop_requested(self._client.stop_requests)
        yield []
        while True:
            news = [await self._news.get()]
            while not self._news.empty():
                news.append(self._news.get_nowait())
            errors = [one for one in news if isinstance(one, Exception)]
            yield [one for one in news if one not in errors]
            if errors:
                raise errors[0]

    async def play(self, job: EpisodeJob) -> None:
        """Plays a job; what comes of it is news."""
        try:
            async for entries in run_episode(self._client, self._stop, job):
                self._news.put_nowait(WorkerStep(job.number, entries))
        except (Stopped, BadInput) as error:
            self._stop.request_stop(StopCause.BAD_INPUT, str(error))  # unless it was stopped before
            assert self._stop.cause is not None
            self._news.put_nowait(WorkerEnd(self._stop.cause, self._stop.reason))
            self._news.put_nowait(WorkerStep(job.number, ()))
        except Exception as error:  # noqa: BLE001 - raised where the run is
            self._news.put_nowait(error)

    async def stop(self) -> None:
        """Sends no more requests; replies in flight may arrive."""
        self._stop.request_stop()
