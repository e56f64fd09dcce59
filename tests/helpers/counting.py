"""A program that executes a run file and writes a line for every request before it is answered.

Run as ``python -m helpers.counting FILE``; killed by the tests of crashes.
"""

import os
import sys
from pathlib import Path

from helpers.clients import ByTask, at

from propensitybench.chat import Reply, Request
from propensitybench.clients import Conversation
from propensitybench.engine import run_tasks
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile


class CountingClient(ByTask):
    """A simulated client that writes every request to standard output."""

    def __init__(self, name: str) -> None:
        self._inner = SimulatedClient(name)
        self.model = self._inner.model

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Counting(self._inner.open_task(task, replies), task.task, replies)

    async def close(self) -> None:
        await self._inner.close()


class _Counting:
    def __init__(self, inner: Conversation, task: str, turn: int) -> None:
        self._inner, self._task, self._turn = inner, task, turn

    async def reply(self, request: Request) -> Reply:
        # One write to a pipe: it is whole even if the process dies right after it.
        os.write(1, f"{self._task} {self._turn}\n".encode())
        self._turn += 1
        return await self._inner.reply(request)


def main() -> None:
    with RunFile.open(Path(sys.argv[1]), write=True) as run:
        name = run.manifest.model.removeprefix("simulated/")
        run_tasks(run, CountingClient(name), at(16))


if __name__ == "__main__":
    main()
