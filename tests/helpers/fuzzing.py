"""Runs a use of many damaged files: each must end soon, well or with one sentence."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from propensitybench.errors import BadInput

# Of this process's CPU time, which does not depend on what else the machine does.
BUSY_S: Final = 5
# Of the clock: long enough for any machine, and short enough to find what waits for ever.
WAITING_S: Final = 60


class Hang(Exception):
    """Something was busy or waited for too long."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Raises `Hang` after five seconds of CPU time, or a minute."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise Hang

    before = {number: signal.signal(number, stop) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.setitimer(signal.ITIMER_REAL, WAITING_S)
    signal.setitimer(signal.ITIMER_PROF, BUSY_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


class Outcomes(NamedTuple):
    """What became of the files: other exceptions than `BadInput` by seed, and how many were accepted."""

    failures: dict[int, str]
    accepted: int


def use_each(folder: Path, seeds: Iterable[int], use: Callable[[Path, int], object]) -> Outcomes:
    """Calls ``use`` for each seed, with a folder of its own."""
    failures: dict[int, str] = {}
    accepted = 0
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        try:
            with no_hang():
                use(place, seed)
            accepted += 1
        except BadInput:
            pass
        except Exception as error:  # noqa: BLE001 - what a fuzzer looks for
            failures[seed] = repr(error)[:300]
    return Outcomes(failures, accepted)
