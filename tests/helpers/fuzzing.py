"""Runs a use of many damaged files: each must end soon, well or with one sentence."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from propensitybench.errors import BadInput

HANG_S: Final = 5


class Hang(Exception):
    """Something took longer than five seconds."""


@contextmanager
def no_hang() -> Iterator[None]:
    """Raises `Hang` after five seconds."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
