"""What the engine costs over HTTP: CPU time a call, and how full it keeps a server with 1,000 in flight.

A server in a process of its own answers at once, or after a set time (`perf/server.py`). Every episode has
its full length (13 levels of 12 turns), every reply is journaled. Each measurement has a fresh process of
its own, with the garbage collector set as the command line sets it. Beside ours, in the same run: aiohttp
alone posting the same bodies, and the same conversations through Inspect AI and LiteLLM, if environments that
have them are given.

    .venv/bin/python perf/http_cost.py
    .venv/bin/python perf/http_cost.py --inspect-python ONE/bin/python --litellm-python OTHER/bin/python

The peers need an environment each: they ask for versions of the openai package that exclude each other.
"""

import argparse
import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from propensitybench.chat import Message, Request
from propensitybench.clients import calls
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.clients.wire import Body
from propensitybench.engine import ExecutionOptions, Progress, RunSpec, StopSignal, create_run, run_tasks
from propensitybench.engine.local import GC_THRESHOLDS
from propensitybench.episode import PAPER, replay
from propensitybench.scenarios import Selection, read_dataset
from propensitybench.scenarios.selection import tasks
from propensitybench.store import NumberedTask, RunFile

Measured = TypeVar("Measured")

MODEL: Final = "perf/full-length"
NAME: Final = "full-length"
HERE: Final = Path(__file__).parent
CALLS_A_TASK: Final = (PAPER.levels + 1) * PAPER.turns_per_level
# For starting the episodes, on a machine that is shared.
RAMP_S: Final = 10.0
# Tasks whose bodies stand for all.
VARIETY: Final = 8
# Name of each peer and what its environment needs.
PEERS: Final = {"inspect": ("Inspect AI", "inspect-ai openai"), "litellm": ("LiteLLM", "litellm[mcp]")}


class Cost(msgspec.Struct, frozen=True):
    """What one repetition took: calls, CPU seconds of the process, seconds; and bytes sent a call."""

    calls: int
    cpu: float
    wall: float
    sent: float = 0.0


class Sample(NamedTuple):
    """Where a run stood at a moment."""

    time: float
    cpu: float
    starved: float | None
    calls: int
    finished: int


class Steady(NamedTuple):
    """The steady middle of a run with many episodes in flight.

    Attributes:
        seconds: that it lasted.
        rate: calls a second over all of it.
        median: calls a second in the median second of it.
        load: CPU seconds of our process, a second.
        cpu_ms: CPU ms of our process, a call.
        starved: seconds, a second, in which our process was ready to run and had no core; None if the
            system does not tell.
        megabytes: peak memory of our process, over the whole run.
    """

    seconds: float
    rate: float
    median: float
    load: float
    cpu_ms: float
    starved: float | None
    megabytes: float


class Load(NamedTuple):
    """What is played, and how many episodes at a time."""

    url: str
    tasks: int
    in_flight: int


def selection(count: int) -> Selection:
    """As many tasks of the built-in data set; several epochs of it if one has not so many."""
    every = sum(1 for _ in tasks(read_dataset().scenarios, Selection(), 0))
    epochs = -(-count // every)
    return Selection(limit=max(1, count // epochs // len(Selection().namings)), epochs=epochs)


@contextmanager
def new_run(count: int) -> Iterator[RunFile]:
    """A run file of so many tasks, open for writing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "perf.run"
        create_run(RunSpec(MODEL, selection=selection(count)), path)
        with RunFile.open(path, write=True) as run:
            yield run


def client(load: Load) -> OpenAIChatClient:
    """The client under test."""
    endpoint = Endpoint(MODEL, NAME, load.url)
    return OpenAIChatClient(endpoint, ModelOptions(), RequestLimits(concurrency=load.in_flight))


def cost(load: Load) -> Cost:
    """What our engine takes to play the tasks to their end."""
    with new_run(load.tasks) as run:
        cpu, wall = time.process_time(), time.perf_counter()
        run_tasks(run, client(load), ExecutionOptions(RequestLimits(concurrency=load.in_flight)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        asked, found = run.count("reply"), run.outcome_counts()
        if asked != CALLS_A_TASK * run.manifest.tasks:
            raise SystemExit(f"episodes ended early: {asked} calls in {run.manifest.tasks} tasks ({found})")
        return Cost(asked, cpu, wall)


def steady(load: Load) -> Steady:
    """Plays until the queue is dry, and measures the part in which every place is taken.

    That begins `RAMP_S` after the start and ends when the last waiting task has been taken up, which is
    when all but ``in_flight`` tasks are finished: from then on fewer episodes than that are left. The run
    is stopped there. The engine tells every second where it stands.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    samples: list[Sample] = []
    stop = StopSignal()

    def note(progress: Progress) -> None:
        now = time.monotonic()
        if not samples or now - samples[-1].time >= 1.0:
            samples.append(Sample(now, time.process_time(), starved(), progress.calls, progress.finished))
        if progress.finished > progress.total - load.in_flight:
            stop.request_stop()

    with new_run(load.tasks) as run:
        started = time.monotonic()
        run_tasks(
            run,
            client(load),
            ExecutionOptions(RequestLimits(concurrency=load.in_flight)),
            on_progress=note,
            stop=stop,
        )
        queued = run.manifest.tasks - load.in_flight
    middle = [sample for sample in samples if sample.time >= started + RAMP_S and sample.finished <= queued]
    if len(middle) < 3:
        raise SystemExit("no steady middle: give more --tasks or a longer --latency")
    first, last = middle[0], middle[-1]
    seconds = last.time - first.time
    rates = [(b.calls - a.calls) / (b.time - a.time) for a, b in pairwise(middle)]
    return Steady(
        seconds=seconds,
        rate=(last.calls - first.calls) / seconds,
        median=statistics.median(rates),
        load=(last.cpu - first.cpu) / seconds,
        cpu_ms=1e3 * (last.cpu - first.cpu) / (last.calls - first.calls),
        starved=None if first.starved is None else ((last.starved or 0) - first.starved) / seconds,
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def starved() -> float | None:
    """Seconds so far in which the main thread was ready to run and had no core, where Linux tells."""
    path = Path("/proc/self/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else None


def aiohttp_alone(load: Load) -> Cost:
    """What it takes to post the same bodies and read the answers, with nothing around it."""
    with new_run(load.tasks) as run:
        bodies = [bodies_of(run, task) for task, _ in zip(run.tasks(), range(VARIETY), strict=False)]

    async def talk(session: aiohttp.ClientSession, todo: Iterator[int]) -> None:
        for number in todo:
            for body in bodies[number % len(bodies)]:
                async with session.post(load.url + "/chat/completions", data=body) as response:
                    await response.read()

    async def everything() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            todo = iter(range(load.tasks))
            await asyncio.gather(*(talk(session, todo) for _ in range(load.in_flight)))

    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(everything())
    return Cost(CALLS_A_TASK * load.tasks, time.process_time() - cpu, time.perf_counter() - wall)


def played(run: RunFile, task: NumberedTask) -> Iterator[Request]:
    """Every request of a task, answered as the server does."""
    episode, request = replay(run.job(task))
    while request is not None:
        yield request
        request = episode.receive(calls("look_around", where="everywhere"))


def bodies_of(run: RunFile, task: NumberedTask) -> list[bytes]:
    """Each request body of a task."""
    body = Body(NAME, ModelOptions())
    return [body.of(request) for request in played(run, task)]


def conversation(run: RunFile, task: NumberedTask) -> dict[str, Any]:
    """What a task says to a model, as `perf/peers.py` reads it."""
    requests = iter(played(run, task))
    first = next(requests)
    opening = texts(first.messages)
    seen = len(opening)
    steps = []
    for request in requests:
        steps.append(texts(request.messages[seen + 1 :]))  # what follows the reply
        seen = len(request.messages)
    described = msgspec.to_builtins(first.tools)
    functions = [{"type": "function", "function": function} for function in described]
    return {"tools": functions, "opening": opening, "steps": [*steps, []]}


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Role and text of each message."""
    return [(message.role, message.content) for message in messages]


@contextmanager
def serving(latency: float = 0.0) -> Iterator[str]:
    """A server; gives its base URL."""
    command = [sys.executable, str(HERE / "server.py"), "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()  # which ends it


class Count(msgspec.Struct, frozen=True):
    """What a server has done so far: calls answered, bytes received, CPU seconds."""

    answered: int
    received: int
    cpu: float


def count(url: str) -> Count:
    """Asks a server."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request("GET", "/count")
        return msgspec.json.decode(connection.getresponse().read(), type=Count)
    finally:
        connection.close()


def fresh(measure: Callable[[Load], Measured], load: Load) -> Measured:
    """A measurement in a process of its own."""
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, gc.set_threshold, GC_THRESHOLDS) as pool:
        return pool.submit(measure, load).result()


def peer(name: str, python: str, script: Path, load: Load) -> Cost:
    """What a peer takes, in its own environment."""
    command = [python, str(HERE / "peers.py"), name, str(script), load.url, str(load.in_flight)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Cost)


def contenders(arguments: argparse.Namespace, load: Load, script: Path) -> Mapping[str, Callable[[], Cost]]:
    """Whose cost is measured, by name."""
    alone = {"ours": partial(fresh, cost, load), "aiohttp alone": partial(fresh, aiohttp_alone, load)}
    peers = {name: python for name in PEERS if (python := getattr(arguments, f"{name}_python"))}
    if peers:
        with new_run(arguments.peer_tasks) as run:
            script.write_bytes(msgspec.json.encode([conversation(run, task) for task in run.tasks()]))
    return alone | {
        PEERS[name][0]: partial(peer, name, python, script, load) for name, python in peers.items()
    }


def show_cost(arguments: argparse.Namespace) -> None:
    """Measures and prints CPU time a call."""
    in_flight, rounds = arguments.concurrency, arguments.rounds
    found: defaultdict[str, list[Cost]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        load = Load(url, arguments.tasks // rounds, in_flight)
        measures = contenders(arguments, load, Path(folder) / "conversations.json")
        for _ in range(rounds):  # in turns, so that whatever else the machine does meets them all
            for name, measure in measures.items():
                before = count(url)
                taken = measure()
                after = count(url)
                sent = (after.received - before.received) / (after.answered - before.answered)
                found[name].append(msgspec.structs.replace(taken, sent=sent))
    print(f"Answers at once, {in_flight} episodes in flight; medians of {rounds} rounds")
    print(
        f"{'':<14}{'calls':>9}{'CPU ms a call':>15}{'calls/s':>9}{'KB sent a call':>16}{'ours : theirs':>15}"
    )
    ours = median(found["ours"], lambda taken: taken.cpu / taken.calls)
    for name, costs in found.items():
        each = median(costs, lambda taken: taken.cpu / taken.calls)
        rate = median(costs, lambda taken: taken.calls / taken.wall)
        sent = median(costs, lambda taken: taken.sent) / 1e3
        ratio = f"1 : {each / ours:.2f}"
        asked = sum(taken.calls for taken in costs)
        print(f"{name:<14}{asked:>9}{1e3 * each:>15.3f}{rate:>9.0f}{sent:>16.1f}{ratio:>15}")
    for name, (shown, needed) in PEERS.items():
        if shown not in found:
            how = f"make an environment with `pip install {needed}` and give its python: --{name}-python PATH"
            print(f"{shown} is left out; {how}")


def median(costs: Sequence[Cost], value: Callable[[Cost], float]) -> float:
    """The median of a value of each repetition."""
    return statistics.median(value(taken) for taken in costs)


def show_steady(arguments: argparse.Namespace) -> None:
    """Measures and prints how full a server with latency is kept."""
    in_flight, latency = arguments.in_flight, arguments.latency
    ideal = in_flight / latency
    with serving(latency) as url:
        found = fresh(steady, Load(url, in_flight + arguments.queued, in_flight))
        server = count(url)
    print(f"\nAnswers after {latency:g} s, {in_flight} episodes in flight, steady for {found.seconds:.0f} s")
    print(f"calls/s                      {found.rate:.0f} (in the median second {found.median:.0f})")
    print(f"ideal calls/s                {ideal:.0f}")
    print(f"share of the ideal           {found.rate / ideal:.1%} (median second {found.median / ideal:.1%})")
    print(f"CPU ms a call                {found.cpu_ms:.3f} ({found.load:.0%} of a core)")
    if found.starved is not None:
        print(f"ready, but without a core    {found.starved:.0%} of the time (what else this machine does)")
    print(f"the server's CPU ms a call   {1e3 * server.cpu / server.answered:.3f}")
    print(f"peak memory, MB              {found.megabytes:.0f}")


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=360, help="for CPU time, over all rounds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=64, help="in flight, for CPU time")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds to an answer, for throughput")
    parser.add_argument("--in-flight", type=int, default=1000, help="for throughput")
    parser.add_argument("--queued", type=int, default=200, help="tasks beyond those in flight")
    for name, (shown, _) in PEERS.items():
        parser.add_argument(f"--{name}-python", metavar="PATH", help=f"of an environment that has {shown}")
    parser.add_argument("--peer-tasks", type=int, default=4, help="in each round")
    arguments = parser.parse_args()
    show_cost(arguments)
    show_steady(arguments)


if __name__ == "__main__":
    main()
