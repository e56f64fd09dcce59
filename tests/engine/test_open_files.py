"""A concurrency above the system's limit on open files."""

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.openai_server import Behaviour, serving, simulated
from helpers.program import argv


def played(path: Path, limits: Callable[[], None], concurrency: int) -> "subprocess.CompletedProcess[str]":
    """A run in a process with its own limits; its endpoint is slow enough for many requests in flight."""
    agent = simulated("always")
    slow: Behaviour = lambda body, number: agent(body, number)._replace(after=0.2)  # noqa: E731
    with serving(slow) as server:
        options = ("--limit", "50", "--levels", "0", "--no-preflight", "--max-retries", "0")
        where = ("--model", "m", "--base-url", server.base_url, "--run", path)
        return subprocess.run(
            argv("run", *where, *options, "--concurrency", str(concurrency)),
            preexec_fn=limits,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.slow
def test_a_concurrency_that_the_system_does_not_allow_is_lowered(tmp_path: Path) -> None:
    done = played(tmp_path / "a.run", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (72, 72)), 100)
    assert done.returncode == 0, done.stderr
    assert "note: concurrency lowered from 100 to " in done.stderr
    assert "the system allows 72 open files" in done.stderr


@pytest.mark.slow
def test_a_soft_limit_is_raised_without_a_word(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("the hard limit is too low")
    done = played(tmp_path / "a.run", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (72, hard)), 100)
    assert (done.returncode, "open files" in done.stderr) == (0, False)
