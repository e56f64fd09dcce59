"""``run --engine ray``: the same as an ordinary run, even if workers are killed."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from helpers.openai_server import Answer, Behaviour, Json, Server, serving, simulated
from helpers.program import argv, call, until
from helpers.runs import journal, scores

from propensitybench.store import RunFile, verify

WORKERS, CONCURRENCY, KILLS = 4, 32, 2
OPTIONS: Final = ("--model", "m", "--limit", "40", "--no-preflight", "--json", "--concurrency", CONCURRENCY)
KEY: Final = "a-key-of-the-tests"


def slow(behaviour: Behaviour) -> Behaviour:
    """The same answers, a little later: so requests are in flight when a worker is killed."""

    def answer(body: Json, number: int) -> Answer:
        return behaviour(body, number)._replace(after=0.05)

    return answer


def actors(driver: int) -> list[int]:
    """The processes of a driver's workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_text()
            parents = [int(folder.name)]
            while parents[-1] > 1:
                status = Path("/proc", str(parents[-1]), "stat").read_text()
                parents.append(int(status.rpartition(")")[2].split()[1]))
        except (OSError, ValueError):
            continue  # it has just ended
        if name.startswith("ray::_Actor") and driver in parents:
            found.append(int(folder.name))
    return found


def came(server: Server, calls: int) -> bool:
    """Whether so many requests have come in."""
    return server.calls > calls


def run_files(process: int) -> set[Path]:
    """The run files that a process has open."""
    links = [fd.readlink() for fd in Path("/proc", str(process), "fd").iterdir()]
    return {link for link in links if link.suffix == ".run"}


def killed_midway(server: Server, path: Path) -> set[Path]:
    """Plays a run on Ray, and kills one worker after a quarter of the replies and one after a half.

    Returns:
        The files of the killed workers.
    """
    files = set()
    arguments = map(str, (*OPTIONS, "--base-url", server.base_url, "--run", path))
    ray = ("--engine", "ray", "--workers", str(WORKERS))
    before = server.calls
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PROPENSITYBENCH_API_KEY": KEY}
    with subprocess.Popen(
        argv("run", *arguments, *ray),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        for part in range(1, KILLS + 1):
            due = before + part * before // 4
            until(process, partial(came, server, due))
            worker = actors(process.pid)[part]
            files |= run_files(worker)
            os.kill(worker, signal.SIGKILL)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, ""), err
    assert '"stopped":null' in out.replace(" ", "")
    assert KEY not in out
    return files


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the workers in /proc")
def test_two_of_four_workers_are_killed_midway(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    whole, shared = tmp_path / "whole.run", tmp_path / "shared.run"
    with serving(slow(simulated("at-level-3"))) as server:
        env = {"PROPENSITYBENCH_API_KEY": KEY}
        call("run", *map(str, OPTIONS), "--base-url", server.base_url, "--run", whole, env=env)
        calls = server.calls
        files = killed_midway(server, shared)
        more = server.calls - 2 * calls
        assert set(server.authorizations) == {f"Bearer {KEY}"}
    assert calls == len(journal(whole))
    assert 0 <= more <= KILLS * CONCURRENCY // WORKERS
    assert scores(shared) == scores(whole)
    with RunFile.open(shared) as run, RunFile.open(whole) as one:
        assert list(verify(run)) == []
        assert fingerprints(run) == fingerprints(one)
        for task in run.tasks():
            replies = zip(run.replies(task.number), one.replies(task.number), strict=True)
            assert all(a.content == b.content and a.tool_calls == b.tool_calls for a, b in replies)
    assert len(files) == KILLS
    assert not any(file.parent.exists() for file in files)


def fingerprints(run: RunFile) -> list[str]:
    """The fingerprint of each task's transcript."""
    found = [run.stored_record(task.number) for task in run.tasks()]
    return [one[1] for one in found if one is not None]
