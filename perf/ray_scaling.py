"""Throughput of several Ray workers against one, at an endpoint that answers after a fixed time.

Each is measured for some time after its first reply, less the first quarter of it. Starting Ray, which takes
seconds, is not part of it, nor is the end of a run, when too few tasks are left to keep every worker busy.
Also the processor time of the driver, the process that stores what the workers stream to it.

    .venv/bin/python perf/ray_scaling.py --workers 4 --concurrency 16 --latency 0.5
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import ExecutionOptions, Progress, RunSpec, StopSignal, create_run
from propensitybench.engine.local import block_on
from propensitybench.engine.on_ray import run_on_ray
from propensitybench.scenarios import Selection

SERVER = Path(__file__).with_name("server.py")

# More than are played in the time: none ends in less than 39 replies.
TASKS = 4000


class Moment(NamedTuple):
    """When how many replies were in, and the processor time that this process had used, in seconds."""

    time: float
    calls: int
    cpu: float


class Measured(NamedTuple):
    """Replies a second, and seconds of the driver's processor time for each."""

    rate: float
    cpu: float


def measure(url: str, workers: int, concurrency: int, seconds: float) -> Measured:
    """Plays with so many workers, and ``concurrency`` episodes in flight at each."""
    seen: list[Moment] = []
    stop = StopSignal()

    def note(progress: Progress) -> None:
        if progress.calls:
            seen.append(Moment(time.monotonic(), progress.calls, time.process_time()))
            if seen[-1].time - seen[0].time > seconds:
                stop.request_stop()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "perf.run"
        asked = ModelOptions(base_url=url)
        create_run(RunSpec("full-length", selection=Selection(limit=TASKS // 2), options=asked), path)
        transport = RequestLimits(concurrency=workers * concurrency)
        options = ExecutionOptions(transport, engine="ray", workers=workers)
        result = block_on(lambda: run_on_ray(path, asked, options, note, stop), stop)
    if result.finished == result.total:
        raise SystemExit("the tasks ended before the time was over: give fewer --seconds")
    warm = [moment for moment in seen if moment.time - seen[0].time > seconds / 4]
    calls = warm[-1].calls - warm[0].calls
    return Measured(calls / (warm[-1].time - warm[0].time), (warm[-1].cpu - warm[0].cpu) / calls)


@contextmanager
def serving(latency: float) -> Iterator[str]:
    """A server; gives its base URL."""
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()  # which ends it


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=16, help="episodes in flight at each worker")
    parser.add_argument("--latency", type=float, default=0.5, help="seconds to an answer")
    parser.add_argument("--seconds", type=float, default=40, help="for each measurement")
    arguments = parser.parse_args()
    with serving(arguments.latency) as url:
        one = measure(url, 1, arguments.concurrency, arguments.seconds)
        many = measure(url, arguments.workers, arguments.concurrency, arguments.seconds)
    ideal, ratio = arguments.concurrency / arguments.latency, many.rate / one.rate
    workers = arguments.workers
    print(f"answers after {arguments.latency:g} s, {arguments.concurrency} episodes in flight at each worker")
    print(f"1 worker     {one.rate:8.1f} calls/s ({one.rate / ideal:.1%} of the endpoint's)")
    print(f"{workers} workers    {many.rate:8.1f} calls/s ({many.rate / ideal / workers:.1%})")
    print(f"ratio        {ratio:8.2f} of {workers} ({ratio / workers:.1%})")
    print(f"driver       {1e6 * one.cpu:8.0f} us a reply of 1 worker, {1e6 * many.cpu:.0f} of {workers}")


if __name__ == "__main__":
    main()
