"""A run that is killed at any moment can be resumed without loss."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.runs import finish, journal, make, scores

from propensitybench.store import RunFile, mismatches

TESTS = Path(__file__).parents[1]
KILLS = 10


def requests_until_killed(path: Path, count: int) -> list[tuple[str, int]]:
    """Plays a run file in its own process, kills it after some requests, and returns all its requests."""
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.counting", str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if len(lines) == count:
            process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait() in (0, -signal.SIGKILL)
    pairs = [line.decode().split() for line in lines]
    return [(task, int(turn)) for task, turn in pairs]


@pytest.mark.slow
def test_killed_ten_times_at_random_moments_and_resumed(tmp_path: Path) -> None:
    whole, broken = make(tmp_path / "whole.run", limit=30), make(tmp_path / "broken.run", limit=30)
    finish(whole)
    total = len(journal(whole))
    chance = random.Random(20261120)
    kills = 0
    while kills < KILLS:
        before = journal(broken)
        left = total - len(before)
        asked = requests_until_killed(broken, chance.randint(1, max(1, 2 * left // (KILLS - kills + 1))))
        assert not before & set(asked), "a journaled reply was asked for again"
        assert len(asked) == len(set(asked))
        lost = set(asked) - journal(broken)
        assert len(lost) <= 16, "more was lost than was in flight"
        with sqlite3.connect(broken) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        db.close()
        kills += 1
    assert 0 < len(journal(broken)) < total, "the kills came too early or too late to show anything"
    finish(broken)
    assert scores(broken) == scores(whole)
    assert journal(broken) == journal(whole)
    with RunFile.open(broken) as run:
        assert list(mismatches(run)) == []
