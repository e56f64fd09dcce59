"""Claims on a run file that is played in a scratch folder, perhaps on another machine.

A claim is a hidden file beside the run file: ``.NAME.played-N``. Whoever creates the highest number plays the
run. File servers create a file for only one of several machines (unlike locks, which they may ignore), so no
two programs hold the same number, and a claim whose holder is gone is succeeded by the next number.

A holder on this machine is gone when its process has ended. One elsewhere is gone when it has not rewritten
its claim for `GONE_AFTER_S`, by the clock of the file server.
"""

import os
import socket
import sys
import tempfile
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput

BEAT_S: Final = 15.0
GONE_AFTER_S: Final = 120.0
# Claims of this process, to tell them from those of an earlier process of the same number.
_held: Final[set[Path]] = set()


class Holder(msgspec.Struct, frozen=True):
    """Who plays a run, and where.

    Attributes:
        host: name of the machine, for people.
        machine: identifies the machine since its last start and, in containers, the processes it can see.
        process: process id.
        started: start time of the process; ids are used again.
        scratch: path of the scratch copy.
        beats: how often the claim has been rewritten.
    """

    host: str
    machine: str
    process: int
    started: str
    scratch: str
    beats: int = 0

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


class State(Enum):
    """What is known of a holder."""

    PLAYING = "playing"
    GONE = "gone"
    UNKNOWN = "unknown"


class Found(NamedTuple):
    """Somebody's claim; ``holder`` is None while it is being written."""

    number: int
    holder: Holder | None
    state: State


class Claim:
    """A claim that this program holds.

    Attributes:
        predecessor: the holder whose claim this one succeeds, if there was one.
    """

    def __init__(self, path: Path, number: int, holder: Holder, predecessor: Holder | None) -> None:
        self.predecessor = predecessor
        self._path = path
        self._number = number
        self._holder = holder
        self._file = _file(path, number)
        with self._file.open("xb") as file:
            _held.add(self._file)
            file.write(msgspec.json.encode(holder))

    def beat(self) -> None:
        """Shows that the holder is still there; raises as `check` does, and `OSError`."""
        self.check()
        self._holder = msgspec.structs.replace(self._holder, beats=self._holder.beats + 1)
        with self._file.open("r+b") as file:
            file.write(msgspec.json.encode(self._holder))
            file.flush()
            os.fsync(file.fileno())

    def check(self) -> None:
        """Raises `BadInput` if another program has taken over, and `OSError` if that cannot be found out."""
        numbers = _numbers(self._path)
        if numbers[-1:] != [self._number]:
            found = _read(self._path, numbers[-1]) if numbers else None
            who = "another program" if found is None else str(found)
            raise BadInput(
                f"{self._path}: {who} has taken over this run, because this program was not heard of for "
                f"{GONE_AFTER_S:g} s; what it has played is in {self._holder.scratch}"
            )

    def release(self) -> None:
        """Gives the claim up."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        self.abandon()

    def give_back(self) -> None:
        """Gives the claim up before anything was played, so that what the predecessor left is still found."""
        if self.predecessor is None:
            self.release()
            return
        with suppress(OSError):
            self._file.write_bytes(msgspec.json.encode(self.predecessor))
        self.abandon()

    def abandon(self) -> None:
        """Leaves the claim to the next program that plays the run, with the place of the scratch copy."""
        _held.discard(self._file)


def claim(path: Path, scratch: Path) -> Claim | Found:
    """Claims a run file, unless somebody else's claim may still be valid; then returns that one.

    Args:
        path: the run file, without links.
        scratch: the scratch copy.

    Raises:
        BadInput: nothing can be written beside the run file.
    """
    while True:
        found = find(path)
        if found is not None and found.state is not State.GONE:
            return found
        number, predecessor = (found.number + 1, found.holder) if found else (1, None)
        host, process = socket.gethostname(), os.getpid()
        holder = Holder(host, this_machine(), process, _started(process), str(scratch))
        try:
            made = Claim(path, number, holder, predecessor)
            numbers = _numbers(path)
        except FileExistsError:
            continue
        except OSError as error:
            raise BadInput(f"{path}: cannot be written to ({error.strerror or error})") from error
        if numbers[-1] != number:
            made.release()
            continue
        for older in numbers[:-1]:
            with suppress(OSError):
                _file(path, older).unlink(missing_ok=True)
        return made


def find(path: Path) -> Found | None:
    """The valid or last claim on a run file, if there is one."""
    try:
        numbers = _numbers(path)
    except OSError:
        return None  # whatever is done next says so
    if not numbers:
        return None
    holder = _read(path, numbers[-1])
    return Found(numbers[-1], holder, _state(_file(path, numbers[-1]), holder))


def refuse_claimed(path: Path) -> None:
    """Raises `BadInput` if a run file is, or was last, played in a scratch folder and not brought back."""
    found = find(path.resolve())
    if found is not None:
        raise refusal(path, found)


def refusal(path: Path, found: Found) -> BadInput:
    """The error for a run file that somebody else has claimed."""
    if found.holder is None:
        return BadInput(f"{path}: is in use by another program; wait for it to finish, or stop it")
    who = f"{path}: is played by {found.holder} in {found.holder.scratch}"
    folder = Path(found.holder.scratch).parent
    return BadInput(f"{who}; wait for it to finish, or, if it was killed, resume it with --scratch {folder}")


def this_machine() -> str:
    """Identifies this machine since its last start and the process ids that this process can see."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _file(path: Path, number: int) -> Path:
    return path.with_name(f".{path.name}.played-{number}")


def _numbers(path: Path) -> list[int]:
    """The numbers of all claims on a run file, in order."""
    start = _file(path, 0).name[:-1]
    names = os.listdir(path.parent)  # noqa: PTH208
    ends = (name.removeprefix(start) for name in names if name.startswith(start))
    return sorted(int(end) for end in ends if end.isascii() and end.isdecimal())


def _read(path: Path, number: int) -> Holder | None:
    try:
        return msgspec.json.decode(_file(path, number).read_bytes(), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None  # gone, or not yet written


def _state(file: Path, holder: Holder | None) -> State:
    if holder is not None and holder.machine == this_machine() and sys.platform != "win32":
        return State.PLAYING if _is_running(holder, file) else State.GONE
    with suppress(OSError):
        return State.GONE if _now(file.parent) - file.stat().st_mtime > GONE_AFTER_S else State.UNKNOWN
    return State.UNKNOWN


def _is_running(holder: Holder, file: Path) -> bool:
    if holder.process == os.getpid():
        return file in _held
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return _started(holder.process) == holder.started


def _started(process: int) -> str:
    """When a process was started, in Linux's unit; empty if unknown or if it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def _now(folder: Path) -> float:
    """The time by the clock that dates the files of a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            return os.fstat(probe.fileno()).st_mtime
    except OSError:
        return time.time()
