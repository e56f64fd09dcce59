"""Runs that are played in a scratch folder: nothing is paid twice, played twice, or overwritten."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.openai_server import MAY_PASS, STALL, Answer, Json, Server, serving, simulated
from helpers.program import Done, call, hear_interrupts, until
from helpers.runs import journal, scores
from helpers.scratch import quick

from propensitybench.clients.options import ModelOptions
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs signals")]
RUN = "a.run"
CONCURRENCY = 4
RESUME = ("resume", RUN, "--no-preflight", "--concurrency", str(CONCURRENCY), "--max-retries", "1000")


class World:
    """A folder as if on a network disk with the file of a run, a local disk, and the run's endpoint.

    Attributes:
        answers: how many replies the endpoint gives before it is busy.
        busy: what it answers then; by default it keeps everybody waiting.
    """

    def __init__(self, tmp_path: Path) -> None:
        self.folder, self.local = tmp_path / "net", tmp_path / "local"
        self.run = self.folder / RUN
        self.answers, self.busy = 10**9, STALL
        self.processes: list[subprocess.Popen[str]] = []
        self._inner = simulated("never")

    def answer(self, body: Json, number: int) -> Answer:
        return self._inner(body, number) if number <= self.answers else self.busy

    @property
    def copies(self) -> list[Path]:
        """The scratch copies on the local disk."""
        return sorted(self.local.glob("*.run"))

    def start(
        self, *, scratch: str = "local", copy_every: float = 1e9, before: Sequence[str] = ()
    ) -> "subprocess.Popen[str]":
        """Resumes the run in a process of its own."""
        process = subprocess.Popen(
            [*before, *quick(*RESUME, "--scratch", f"../{scratch}", copy_every=copy_every)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,
        )
        self.processes.append(process)
        return process

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
    world = World(tmp_path)
    yield world
    for process in world.processes:
        process.kill()
        process.communicate()


@contextmanager
def served(world: World) -> Iterator[Server]:
    """Serves the endpoint and makes the run's file: 12 tasks of two levels."""
    with serving(world.answer) as server:
        world.folder.mkdir()
        selection = Selection(domains=("self-proliferation",), limit=6)
        options = ModelOptions(base_url=server.base_url)
        create_run(RunSpec("m", selection=selection, protocol=Protocol(levels=1), options=options), world.run)
        yield server


def interrupted(process: "subprocess.Popen[str]") -> Done:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return Done(process.returncode, out, err)


def replies(path: Path) -> int:
    """How many replies are in a run file that may be played; it has to be a whole one."""
    assert path.read_bytes()[18:20] == b"\1\1", "a file on a network disk has no write-ahead log"
    with RunFile.open(path) as run:
        return run.count("reply")


def claims(world: World) -> list[Path]:
    return sorted(world.folder.glob(".*.played-*"))


def edit_claim(world: World, **changes: object) -> None:
    """Makes the claim one of another machine, from ten minutes ago unless it says otherwise."""
    (file,) = claims(world)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    os.utime(file, (0, file.stat().st_mtime - 600))


def test_a_killed_run_continues_from_its_scratch_copy(world: World) -> None:
    with served(world) as server:
        alone = world.folder.parent / "alone.run"
        alone.write_bytes(world.run.read_bytes())
        world.answers = 20
        world.killed(server)
        assert replies(world.run) == 0
        world.answers = 10**9
        done = world.resume()
        assert done.code == 0, done.err
        assert server.calls == replies(world.run) + CONCURRENCY, "a reply was asked for again"
        assert call("verify", world.run).code == 0
        assert call("resume", alone, "--no-preflight").code == 0
    assert journal(world.run) == journal(alone)
    assert scores(world.run) == scores(alone)
    assert [path.name for path in world.folder.iterdir()] == [RUN]
    assert list(world.local.iterdir()) == []


def test_a_killed_run_continues_from_another_scratch_folder(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        copy = world.killed(server, scratch="first")
        world.answers = 10**9
        assert world.resume().code == 0
        assert server.calls == replies(world.run) + CONCURRENCY
    assert not copy.exists()


def test_a_run_killed_on_another_machine_continues_from_the_last_copy(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        process = world.start(copy_every=0.05)
        until(process, lambda: server.calls >= 24 and replies(world.run) == 20)
        process.kill()
        process.communicate()
        (copy,) = world.copies
        copy.unlink()
        edit_claim(world, machine="elsewhere", host="node7")
        world.answers = 10**9
        done = world.resume()
        assert done.code == 0, done.err
        assert f"on node7, which is gone, and {copy} cannot be reached; the run goes on from" in done.err
        assert "which is 0 minutes old" in done.err
        assert server.calls == replies(world.run) + CONCURRENCY
    assert claims(world) == []


def test_the_file_is_whole_whenever_it_is_read(world: World) -> None:
    with served(world):
        world.answers = 40
        process = world.start(copy_every=0.001)
        until(process, lambda: replies(world.run) == 40)
        done = interrupted(process)
    assert done.code == 130
    assert replies(world.run) == 40
    assert f"propensitybench resume {RUN} --scratch ../local" in done.err
    assert world.copies == []
    assert claims(world) == []


def test_one_program_at_a_time(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        process = world.start()
        until(process, lambda: server.calls >= 24)
        where = f"is played by process {process.pid} on "
        for arguments in (RESUME, (*RESUME, "--scratch", "../local"), (*RESUME, "--scratch", "../other")):
            done = call(*arguments, cwd=world.folder)
            assert (done.code, len(done.err.splitlines())) == (2, 2), done.err
            assert where in done.err.splitlines()[1]
        assert call("judge", world.run, "--judge", "keyless/words").code == 2
        assert server.calls == 24
        process.kill()
        process.communicate()
        done = call(*RESUME, cwd=world.folder)
        assert f"if it was killed, resume it with --scratch {world.local}" in done.err
        assert server.calls == 24


def test_a_sign_of_life_from_another_machine_is_waited_for(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        world.killed(server)
        (file,) = claims(world)
        edit_claim(world, machine="elsewhere", host="node7")
        os.utime(file)
        asked = server.calls
        process = world.start()
        assert process.stderr is not None
        _, note = process.stderr.readline(), process.stderr.readline()
        assert "may still play it; waiting up to 120 s for a sign of life" in note
        edit_claim(world, beats=7)
        os.utime(file)
        err = process.communicate(timeout=60)[1]
    assert (process.returncode, server.calls) == (2, asked)
    assert "on node7 in " in err
    assert file.exists()


def test_a_run_that_is_taken_over_stops(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        process = world.start()
        until(process, lambda: server.calls >= 24)
        (file,) = claims(world)
        file.with_name(file.name.replace("played-1", "played-2")).write_bytes(file.read_bytes())
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert "has taken over this run, because this program was not heard of for 120 s" in err
    assert f"what it has played is in {world.copies[0]}" in err
    assert replies(world.run) == 0


def test_what_was_played_elsewhere_is_not_overwritten(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        process = world.start()
        until(process, lambda: server.calls >= 24)
        other = world.folder.parent / "other.run"
        other.write_bytes(world.run.read_bytes())
        world.answers = 10**9
        assert call("resume", other, "--no-preflight").code == 0
        other.replace(world.run)
        before = world.run.read_bytes()
        done = interrupted(process)
        (copy,) = world.copies
        complaint = f"{world.run} and {copy}: each holds replies that the other lacks, so neither replaces"
        assert done.code == 2
        assert complaint in done.err
        assert world.run.read_bytes() == before
        assert replies(copy) == 20
        again = world.resume()
    assert (again.code, world.copies) == (0, [copy])
    assert world.run.read_bytes() == before


def test_a_scratch_copy_of_before_a_takeover_is_set_aside(world: World) -> None:
    """The run moved to another machine, which could not reach the copy, and comes back."""
    with served(world) as server:
        world.answers = 20
        copy = world.killed(server)
        edit_claim(world, machine="elsewhere", host="node7", scratch="/scratch/of/node7.run")
        other = world.folder.parent / "other.run"
        other.write_bytes(world.run.read_bytes())
        world.answers = 10**9
        assert call("resume", other, "--no-preflight", "--max-tokens-total", "2000").code == 1
        other.replace(world.run)
        asked, known = server.answered, replies(world.run)
        done = world.resume("--max-tokens-total", "1000000")
        assert done.code == 0, done.err
        assert server.answered - asked == replies(world.run) - known
    (left,) = world.copies
    assert left.name == f"{copy.stem}.left-1.run"
    assert f"{left} was left behind; the run goes on from {RUN}" in done.err
    assert replies(left) == 20


def test_a_refused_takeover_keeps_the_place_of_the_scratch_copy(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        world.killed(server)
        finished = world.folder.parent / "other.run"
        finished.write_bytes(world.run.read_bytes())
        world.answers = 10**9
        assert call("resume", finished, "--no-preflight").code == 0
        finished.replace(world.run)
        for _ in range(2):
            done = world.resume()
            assert done.code == 2
            assert "each holds replies that the other lacks" in done.err
    assert len(journal(world.copies[0])) == 20


def test_a_file_that_was_only_touched_is_replaced(world: World) -> None:
    with served(world) as server:
        world.answers = 20
        process = world.start()
        until(process, lambda: server.calls >= 24)
        other = world.folder.parent / "other.run"
        other.write_bytes(world.run.read_bytes())
        other.replace(world.run)
        assert interrupted(process).code == 130
    assert replies(world.run) == 20


def test_a_disk_that_is_away_for_a_while_is_a_note(world: World) -> None:
    away = world.folder.with_name("away")
    with served(world) as server:
        world.answers, world.busy = 20, MAY_PASS["429 seconds"]
        process = world.start(copy_every=0.05)
        until(process, lambda: replies(world.run) == 20)
        world.folder.rename(away)
        assert process.stderr is not None
        notes = [process.stderr.readline(), process.stderr.readline()]
        away.rename(world.folder)
        world.answers = 10**9
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert server.answered == replies(world.run)
    assert f"{world.run}: cannot be written ([Errno 2] No such file or directory" in notes[1]
    assert f"; the run goes on in {world.local}" in notes[1]
    assert world.copies == claims(world) == []


def test_a_disk_that_is_full_leaves_the_run_in_the_scratch_folder(world: World) -> None:
    """Files may become no larger than the run file is now: its copy there stays small, its log too."""
    with served(world) as server:
        world.answers = 30
        small = world.run.stat().st_size
        blocks = small // 512 + 8
        limited = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh"]
        process = world.start(before=limited)
        until(process, lambda: server.calls >= 34)
        done = interrupted(process)
        (copy,) = world.copies
        assert done.code == 2
        assert (
            f"so what was played is only in {copy}; when there is room, type: propensitybench resume"
            in done.err
        )
        assert replies(world.run) == 0
        world.answers = 10**9
        assert world.resume().code == 0
        assert server.answered == replies(world.run)
    assert call("verify", world.run).code == 0
    assert world.copies == claims(world) == []
