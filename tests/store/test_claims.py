"""Claims: one of many programs gets one, and a later one only when the holder is gone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest

from propensitybench.errors import BadInput
from propensitybench.store.claims import GONE_AFTER_S, Claim, Found, Holder, State, claim, find, this_machine

AT_ONCE = 8


def leave(folder: Path, number: int = 1, *, age: float = 0, **changes: Any) -> Path:
    """A claim as another program left it."""
    holder = Holder("node7", "elsewhere", 7, "1", "/scratch/a.run")
    file = folder / f".a.run.played-{number}"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(holder, **changes)))
    now = file.stat().st_mtime
    os.utime(file, (now, now - age))
    return file


def state(folder: Path) -> State | None:
    found = find(folder / "a.run")
    return found and found.state


@pytest.mark.parametrize("before", ["nothing", "a holder who is gone"])
def test_one_of_many_gets_it(before: str, tmp_path: Path) -> None:
    if before != "nothing":
        leave(tmp_path, 41, age=GONE_AFTER_S + 10)
    together = Barrier(AT_ONCE)

    def take(_: int) -> Claim | Found:
        together.wait()
        return claim(tmp_path / "a.run", tmp_path / "scratch.run")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        taken = list(threads.map(take, range(AT_ONCE)))
    (held,) = [one for one in taken if isinstance(one, Claim)]
    held.check()
    assert len(list(tmp_path.glob(".a.run.played-*"))) == 1
    held.release()
    assert list(tmp_path.iterdir()) == []


def test_a_holder_elsewhere_is_gone_after_a_long_silence(tmp_path: Path) -> None:
    leave(tmp_path, age=GONE_AFTER_S - 60)
    assert state(tmp_path) is State.UNKNOWN
    leave(tmp_path, age=GONE_AFTER_S + 60)
    assert state(tmp_path) is State.GONE
    (tmp_path / ".a.run.played-1").write_bytes(b"{")
    assert state(tmp_path) is State.UNKNOWN


@pytest.mark.skipif(sys.platform != "linux", reason="start times of processes")
def test_a_holder_here_is_gone_when_its_process_is(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        here: dict[str, Any] = {"machine": this_machine(), "process": process.pid, "started": started}
        leave(tmp_path, age=9999, **here)
        assert state(tmp_path) is State.PLAYING
        leave(tmp_path, **{**here, "started": "1"})  # another process got its number
        assert state(tmp_path) is State.GONE
        leave(tmp_path, **here)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and nobody has asked how
        assert state(tmp_path) is State.GONE
    assert state(tmp_path) is State.GONE
    leave(tmp_path, machine=this_machine(), process=os.getpid())
    assert state(tmp_path) is State.GONE, "it is not this process that holds it"


def test_a_holder_shows_that_it_is_there(tmp_path: Path) -> None:
    held = claim(tmp_path / "a.run", tmp_path / "scratch.run")
    assert isinstance(held, Claim)
    before = find(tmp_path / "a.run")
    held.beat()
    after = find(tmp_path / "a.run")
    assert before is not None
    assert before.state is State.PLAYING
    assert before != after
    leave(tmp_path, 2)
    with pytest.raises(BadInput, match=r"process 7 on node7 has taken over"):
        held.beat()
    held.release()
    assert [path.name for path in tmp_path.iterdir()] == [".a.run.played-2"]


def test_a_claim_that_was_removed_is_lost(tmp_path: Path) -> None:
    held = claim(tmp_path / "a.run", tmp_path / "scratch.run")
    assert isinstance(held, Claim)
    (tmp_path / ".a.run.played-1").unlink()
    with pytest.raises(BadInput, match="another program has taken over"):
        held.check()
    held.release()
