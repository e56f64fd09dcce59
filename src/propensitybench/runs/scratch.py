"""Plays a run in a scratch folder: takes it there, copies it back at intervals and at the end."""

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from propensitybench.engine import StopCause, StopSignal
from propensitybench.errors import BadInput
from propensitybench.store.claims import BEAT_S, GONE_AFTER_S, Claim, Found, State, claim, refusal
from propensitybench.store.scratch import Scratch, scratch_copy

COPY_EVERY_S: Final = 180.0
# A copy that takes long comes less often: at most this share of the time is spent on copying.
COPYING_SHARE: Final = 0.1
POLL_S: Final = 2.0


@asynccontextmanager
async def played_in(path: Path, folder: Path | None, stop: StopSignal) -> AsyncIterator[Path]:
    """Yields the file to play: a run file itself or, with a scratch folder, its copy there.

    Args:
        path: the run file.
        folder: the scratch folder; None plays the file where it is.
        stop: requested if the run file is changed by somebody else, or taken over.

    Raises:
        BadInput: somebody else plays the run; or the run file cannot be replaced at the end. Then the message
            says where the scratch copy is.
    """
    if folder is None:
        yield path
        return
    place = path.resolve()
    copy = scratch_copy(place, folder)
    held = await _claimed(path, place, copy)
    async with _beside(_beat(held, stop)):
        scratch = await _fetched(place, copy, held)
        ended = False
        try:
            async with _beside(_copy_back(scratch, stop)):
                yield scratch.path
            ended = True
        finally:
            await _finish(scratch, keep=not ended)


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Does something in the background until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _fetched(place: Path, copy: Path, held: Claim) -> Scratch:
    try:
        scratch = await asyncio.to_thread(Scratch, place, copy, held)
    except OSError as error:
        held.give_back()
        raise BadInput(f"{copy}: cannot be written ({error.strerror or error})") from error
    except BaseException:
        held.give_back()
        raise
    if scratch.left is not None:
        warnings.warn(
            f"{place}: was played on after {scratch.left} was left behind; the run goes on from "
            f"{place.name}, and that file is kept",
            stacklevel=2,
        )
    before = held.predecessor
    if before is not None and scratch.source == place:
        minutes = (time.time() - place.stat().st_mtime) / 60
        warnings.warn(
            f"{place}: was played by {before}, which is gone, and {before.scratch} cannot be reached; the "
            f"run goes on from the last copy, which is {minutes:.0f} minutes old",
            stacklevel=2,
        )
    return scratch


async def _claimed(path: Path, place: Path, copy: Path) -> Claim:
    """Claims a run file. Waits if its holder may be gone: one that is there rewrites its claim."""
    watched: Found | None = None
    while isinstance(found := claim(place, copy), Found):
        if found.state is State.PLAYING or (watched is not None and found != watched):
            raise refusal(path, found)
        if watched is None:
            watched = found
            warnings.warn(
                f"{path}: {found.holder or 'another program'} may still play it; waiting up to "
                f"{GONE_AFTER_S:g} s for a sign of life",
                stacklevel=2,
            )
        await asyncio.sleep(POLL_S)
    return found


async def _beat(held: Claim, stop: StopSignal) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        try:
            await asyncio.to_thread(held.beat)
        except BadInput as error:
            stop.request_stop(StopCause.BAD_INPUT, str(error))
            return
        except OSError:
            continue  # the file server may come back


async def _copy_back(scratch: Scratch, stop: StopSignal) -> None:
    clock = asyncio.get_running_loop().time
    pause = COPY_EVERY_S
    while True:
        await asyncio.sleep(pause)
        begun = clock()
        try:
            await asyncio.to_thread(scratch.copy_back)
        except BadInput as error:
            stop.request_stop(StopCause.BAD_INPUT, str(error))
            return
        except OSError as error:
            warnings.warn(
                f"{scratch.place}: cannot be written ({error}); the run goes on in {scratch.path}",
                stacklevel=2,
            )
        pause = max(COPY_EVERY_S, (clock() - begun) / COPYING_SHARE)


async def _finish(scratch: Scratch, *, keep: bool) -> None:
    try:
        await asyncio.to_thread(scratch.copy_back)
    except BadInput:
        scratch.release(keep=True)
        raise
    except OSError as error:
        scratch.abandon()
        raise BadInput(
            f"{scratch.place}: cannot be written ({error}), so what was played is only in {scratch.path}; "
            "when there is room, type: propensitybench resume "
            f"{scratch.place} --scratch {scratch.path.parent}"
        ) from error
    scratch.release(keep=keep)
