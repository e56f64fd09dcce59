"""A thousand workers on one coordinator, in virtual time: how busy they are, and what the coordinator costs.

Coordinator, leases, rescue and the commits to the run file are the real ones. The workers are simulated:
their episodes are those of a simulated agent, each reply comes after an exponential time, and workers die.
What is left of a second of processor time in a second of virtual time is room for more.

    .venv/bin/python perf/thousand_workers.py
    .venv/bin/python perf/thousand_workers.py --workers 1000 --slots 16 --latency 5 --hours-between-deaths 2
"""

import argparse
import asyncio
import heapq
import random
import resource
import selectors
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Usage
from propensitybench.engine import RunSpec, StopSignal, client_for, create_run
from propensitybench.engine.episodes import Entry
from propensitybench.engine.exchange import Order, Rates, Report
from propensitybench.engine.local import run_tasks
from propensitybench.engine.prices import Budget, Spending
from propensitybench.engine.session import Session
from propensitybench.engine.workers import WorkerLost, WorkersPlayer
from propensitybench.scenarios import Selection
from propensitybench.store import JournalEntry, OutcomeEntry, RunFile

AGENT: Final = "simulated/gemini-2.5-pro-like"
EXCHANGE_S: Final = 1.0
BOOT_S: Final = 20.0
# Journals that are played once and used for all tasks.
PLAYED: Final = 400
_HOUR: Final = 3600.0


class Journal(NamedTuple):
    """What a task's episode puts into the run file."""

    replies: list[str]
    outcome: OutcomeEntry


class VirtualClock(selectors.DefaultSelector):
    """Does not wait: the time that an event loop would wait for passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """Lets the time pass."""
        self.now += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a `VirtualClock`."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        super().__init__(self._clock)

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._clock.now


class Machine:
    """A worker: its tasks, its episodes in flight, and what it has not reported."""

    def __init__(self, slots: int, dies_at: float) -> None:
        self.slots = slots
        self.dies_at = dies_at
        self.waiting: deque[tuple[int, int]] = deque()
        self.flying: list[tuple[float, int, int]] = []
        self.free_since = [0.0] * slots
        self.unreported: list[Entry] = []


class SimulatedCluster:
    """Workers whose episodes take virtual time; see `Cluster`."""

    def __init__(self, journals: list[Journal], keys: list[str], given: argparse.Namespace) -> None:
        self._journals = journals
        self._keys = keys
        self._latency: float = given.latency
        self._lifetime: float = given.hours_between_deaths * _HOUR
        self._reachable: float = given.reachable
        self._rng = random.Random(1)
        self._machines: dict[int, Machine] = {}
        self.totals: Counter[str] = Counter()
        self.idle = self.alive = 0.0

    def journal(self, task: int) -> Journal:
        """What the episode of a task says."""
        return self._journals[task % len(self._journals)]

    async def start(self, worker: int, slots: int, replaces: int | None) -> None:  # noqa: ARG002
        """Takes as long as a machine takes."""
        await asyncio.sleep(self._rng.uniform(0.5, 1.5) * BOOT_S)
        now = asyncio.get_running_loop().time()
        machine = Machine(slots, now + self._rng.expovariate(1 / self._lifetime))
        machine.free_since = [now] * slots
        self._machines[worker] = machine
        self.totals["started"] += 1

    async def exchange(self, worker: int, order: Order) -> Report:
        """A second of play."""
        machine = self._machines[worker]
        self._begin(machine, [(one.task, len(one.replies)) for one in order.lease])
        await asyncio.sleep(EXCHANGE_S)
        now = asyncio.get_running_loop().time()
        self._play(machine, min(now, machine.dies_at))
        self.alive += EXCHANGE_S * machine.slots
        self.totals["exchanges"] += 1
        if now >= machine.dies_at:
            self.totals["deaths"] += 1
            raise WorkerLost("the machine is gone")
        entries, machine.unreported = machine.unreported, []
        return Report(tuple(entries), ended=order.stop)

    def _begin(self, machine: Machine, tasks: list[tuple[int, int]]) -> None:
        machine.waiting.extend(tasks)
        now = asyncio.get_running_loop().time()
        while machine.waiting and machine.free_since:
            self.idle += now - machine.free_since.pop()
            self._next(machine, *machine.waiting.popleft(), now)

    def _next(self, machine: Machine, task: int, turn: int, now: float) -> None:
        heapq.heappush(machine.flying, (now + self._rng.expovariate(1 / self._latency), task, turn))

    def _play(self, machine: Machine, until: float) -> None:
        while machine.flying and machine.flying[0][0] <= until:
            at, task, turn = heapq.heappop(machine.flying)
            journal = self.journal(task)
            machine.unreported.append(JournalEntry(task, turn, journal.replies[turn]))
            self.totals["replies"] += 1
            if turn + 1 < len(journal.replies):
                self._next(machine, task, turn + 1, at)
                continue
            machine.unreported.append(self._outcome(task))
            if machine.waiting:
                self._next(machine, *machine.waiting.popleft(), at)
            else:
                machine.free_since.append(at)

    def _outcome(self, task: int) -> OutcomeEntry:
        _, record, fingerprint = self.journal(task).outcome
        metadata = msgspec.structs.replace(record.metadata, task=self._keys[task])
        return OutcomeEntry(task, msgspec.structs.replace(record, metadata=metadata), fingerprint)

    async def rescue(self, worker: int, lost: int, stored: Mapping[int, int]) -> tuple[Entry, ...]:  # noqa: ARG002
        """What the lost machine had not reported, if its disk can be read."""
        unreported, self._machines[lost].unreported = self._machines[lost].unreported, []
        if self._rng.random() >= self._reachable:
            self.totals["paid twice"] += sum(isinstance(entry, JournalEntry) for entry in unreported)
            return ()
        return tuple(entry for entry in unreported if entry.task in stored)

    async def drop(self, worker: int) -> None:
        """It is gone already."""

    async def close(self) -> None:
        """The end: slots without an episode have waited for nothing."""
        now = asyncio.get_running_loop().time()
        for machine in self._machines.values():
            self.idle += sum(min(now, machine.dies_at) - since for since in machine.free_since)


def played(folder: Path) -> list[Journal]:
    """The journals of some tasks of a simulated agent."""
    path = folder / "played.run"
    create_run(RunSpec(AGENT, selection=Selection(limit=PLAYED // 2)), path)
    with RunFile.open(path, write=True) as run:
        run_tasks(run, client_for(AGENT))
    journals = []
    with RunFile.open(path) as run:
        for task in run.tasks():
            bodies = [msgspec.json.encode(reply).decode() for reply in run.replies(task.number)]
            stored = run.stored_record(task.number)
            assert stored is not None
            journals.append(Journal(bodies, OutcomeEntry(task.number, *stored)))
    return journals


async def simulate(path: Path, cluster: SimulatedCluster, given: argparse.Namespace) -> float:
    """Plays the run; returns the virtual seconds that it took."""
    with RunFile.open(path, write=True) as run:
        stop, spending = StopSignal(), Spending(Usage(), None, Budget())
        player = WorkersPlayer(run, cluster, [given.slots] * given.workers, Rates(), spending, stop)
        result = await Session(run, player, spending, stop, None).run()
    if result.finished != result.total:
        raise SystemExit(f"{result.finished} of {result.total} tasks were played: {result.reason}")
    return asyncio.get_running_loop().time()


def main() -> None:
    """Reads the command line, simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=16, help="episodes in flight at each worker")
    parser.add_argument("--latency", type=float, default=5.0, help="mean seconds to a reply")
    parser.add_argument("--epochs", type=int, default=5, help="of the whole built-in set: 11,748 tasks each")
    parser.add_argument("--hours-between-deaths", type=float, default=2.0, help="of one worker, on average")
    parser.add_argument("--reachable", type=float, default=0.5, help="share of dead disks that can be read")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "thousand.run"
        create_run(RunSpec(AGENT, selection=Selection(epochs=given.epochs)), path)
        with RunFile.open(path) as run:
            keys = run.task_keys()
        cluster = SimulatedCluster(played(Path(name)), keys, given)
        began = time.process_time()
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            seconds = runner.run(simulate(path, cluster, given))
        cpu, size = time.process_time() - began, path.stat().st_size
    needed = sum(len(cluster.journal(task).replies) for task in range(len(keys)))
    totals = cluster.totals
    busy = 1 - cluster.idle / cluster.alive
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )
    print(f"{given.workers:,} workers x {given.slots} episodes in flight, a reply after {given.latency:g} s")
    replies, exchanges = totals["replies"], totals["exchanges"]
    print(f"tasks        {len(keys):,} in {seconds:,.0f} virtual s; {replies / seconds:,.0f} replies/s")
    print(f"slots busy   {busy:.1%} of the time that workers live, the end of the run included")
    print(f"deaths       {totals['deaths']:,}; {totals['started']:,} workers started")
    print(f"paid twice   {replies - needed:,} of {needed:,} replies ({replies / needed - 1:.3%})")
    print(f"coordinator  {cpu / seconds:.2f} s of CPU a second, {1e6 * cpu / replies:.0f} us a reply,")
    print(f"             {1e6 * cpu / exchanges:.0f} us an exchange (both include the simulation)")
    print(f"             {memory:,.0f} MB of memory; the run file has {size / 2**20:,.0f} MB")


if __name__ == "__main__":
    main()
