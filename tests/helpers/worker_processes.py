"""Workers in processes of their own, which tests can kill: a cluster of one machine, without Ray.

``python -m helpers.worker_processes FILE LOG`` is one of them. It plays the run file of that name and appends
a line to the log for every request before it is answered.
"""

import asyncio
import os
import pickle
import shutil
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from helpers.clients import ByTask

from propensitybench.chat import Reply, Request
from propensitybench.clients import Conversation
from propensitybench.engine.episodes import Entry
from propensitybench.engine.exchange import Order, Report
from propensitybench.engine.worker import Worker, rest_of
from propensitybench.engine.workers import WorkerLost
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile

TESTS = Path(__file__).parents[1]
# So that requests are in flight when a worker is killed.
LATENCY_S = 0.002


class LoggingClient(ByTask):
    """A simulated client that writes every request to a file."""

    def __init__(self, model: str, log: Path) -> None:
        self._inner = SimulatedClient(model.removeprefix("simulated/"))
        self.model = model
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Logged(self._inner.open_task(task, replies), self._log, task.task, replies)

    async def close(self) -> None:
        os.close(self._log)


class _Logged:
    def __init__(self, inner: Conversation, log: int, task: str, turn: int) -> None:
        self._inner, self._log, self._task, self._turn = inner, log, task, turn

    async def reply(self, request: Request) -> Reply:
        os.write(self._log, f"{self._task} {self._turn}\n".encode())
        self._turn += 1
        await asyncio.sleep(LATENCY_S)
        return await self._inner.reply(request)


class Processes:
    """A cluster of processes; each worker's file lies in one folder.

    Args:
        folder: for the workers' files.
        blank: a blank copy of the run.
        exchanged: called after every exchange with the worker's number and its report.
    """

    def __init__(
        self, folder: Path, blank: Path, exchanged: Callable[[int, Report], None] = lambda *_: None
    ) -> None:
        self.log = folder / "requests"
        self._folder, self._blank, self._exchanged = folder, blank, exchanged
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self.replaced: list[tuple[int, int | None]] = []

    def kill(self, worker: int) -> None:
        self._workers[worker].kill()

    def file(self, worker: int) -> Path:
        return self._folder / f"{worker}.run"

    async def start(self, worker: int, slots: int, replaces: int | None) -> None:
        shutil.copy(self._blank, self.file(worker))
        self.replaced.append((worker, replaces))
        self._workers[worker] = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "helpers.worker_processes", str(self.file(worker)), str(self.log), str(slots)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        )

    async def exchange(self, worker: int, order: Order) -> Report:
        report: Report = await self._call(worker, order)
        self._exchanged(worker, report)
        return report

    async def rescue(self, worker: int, lost: int, stored: Mapping[int, int]) -> tuple[Entry, ...]:
        entries: tuple[Entry, ...] = await self._call(worker, (self.file(lost), dict(stored)))
        return entries

    async def drop(self, worker: int) -> None:
        if worker in self._workers:
            process = self._workers.pop(worker)
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def close(self) -> None:
        for worker in list(self._workers):
            await self.drop(worker)

    async def _call(self, worker: int, message: object) -> Any:
        process = self._workers[worker]
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(packed(message))
            await process.stdin.drain()
            return await unpacked(process.stdout)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise WorkerLost(f"worker {worker}: {error}") from error


def packed(value: object) -> bytes:
    body = pickle.dumps(value)
    return struct.pack("!Q", len(body)) + body


async def unpacked(stream: asyncio.StreamReader) -> Any:
    (length,) = struct.unpack("!Q", await stream.readexactly(8))
    return pickle.loads(await stream.readexactly(length))


async def serve(path: Path, log: Path, slots: int) -> None:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    run = RunFile.open(path, write=True)
    worker = Worker(run, LoggingClient(run.manifest.model, log), slots)
    while True:
        message = await unpacked(orders)
        answer = await worker.exchange(message) if isinstance(message, Order) else rest_of(*message)
        sys.stdout.buffer.write(packed(answer))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
