"""Runs that are played in a scratch folder: nothing is paid twice, played twice, or overwritten."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from helpers.openai_server import Behaviour, Json, Server, serving, simulated
from helpers.program import Done, argv, call, hear_interrupts, until
from helpers.runs import finish, journal, make, scores

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs signals")]
RUN = "a.run"
CONCURRENCY = 4
RESUME = ("resume", RUN, "--no-preflight", "--concurrency", str(CONCURRENCY))


def quick(*arguments: str | Path, copy_every: float = 1e9) -> list[str]:
    """The command line of a call in which every kind of waiting is short."""
    settings = (
        "from propensitybench.engine import local; from propensitybench.runs import scratch; "
        f"local.GRACE_S, scratch.COPY_EVERY_S, scratch.BEAT_S, scratch.POLL_S = 0.1, {copy_every}, 0.02, 0.02; "
    )
    program = argv(*arguments)
    return [program[0], "-c", settings + program[2], *program[3:]]


class World:
    """A folder as if on a network disk with the file of a run, a local disk, and the run's endpoint.

    Attributes:
        answers: how many replies the endpoint gives before it keeps everybody waiting.
    """

    def __init__(self, tmp_path: Path) -> None:
        self.folder, self.local = tmp_path / "net", tmp_path / "local"
        self.run = self.folder / RUN
        self.answers = 10**9
        self._inner = simulated("never")

    def answer(self, body: Json, number: int) -> Answer:
        return self._inner(body, number) if number <= self.answers else STALL

    @property
    def copies(self) -> list[Path]:
        """The scratch copies on the local disk."""
        return sorted(self.local.glob("*.run"))

    def start(self, *, scratch: str = "local", copy_every: float = 1e9) -> "subprocess.Popen[str]":
        """Resumes the run in a process of its own."""
        return subprocess.Popen(
            quick(*RESUME, "--scratch", f"../{scratch}", copy_every=copy_every),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )

    def killed(self, server: Server, *, scratch: str = "local") -> Path:
        """Plays until the endpoint keeps everybody waiting, and kills; the scratch copy that is left."""
        process = self.start(scratch=scratch)
        until(process, lambda: server.calls >= self.answers + CONCURRENCY)
        process.kill()
        process.communicate()
        (copy,) = (self.folder.parent / scratch).glob("*.run")
        return copy

    def resume(self, *options: str) -> Done:
        return call(*RESUME, "--scratch", "../local", *options, cwd=self.folder)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path)


@contextmanager
def served(world: World) -> Iterator[Server]:
    """Serves the endpoint and makes the run's file: 12 tasks of two levels."""
    with serving(world.answer) as server:
        world.folder.mkdir()
        selection = Selection(domains=("self-proliferation",), limit=6)
        options = ModelOptions(base_url=server.base_url)
        create_run(RunSpec("m", selection=selection, protocol=Protocol(levels=1), options=options), world.run)
        yield server


def whole_run(world: World) -> set[tuple[str, int]]:
    """The replies of the same run, played in one piece."""
    alone = world.folder.parent / "alone.run"
    if not alone.exists():
        alone.write_bytes(world.run.read_bytes())
        with RunFile.open(alone, write=True) as run:
            run_tasks(run, client_for_file(run), at(CONCURRENCY))
    return journal(alone)
