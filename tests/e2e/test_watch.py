"""A run that is watched from another process while it is played."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers.openai_server import STALL, Json, serving, simulated
from helpers.program import argv, call, hear_interrupts, in_terminal, until
from helpers.runs import finish, make

from propensitybench.chat import Usage
from propensitybench.runs.watching import Glimpse, RecentRates, calls_left
from propensitybench.store import RunFile

STALLS_AFTER = 40


def started(*arguments: str | Path, out: Path) -> "subprocess.Popen[Any]":
    """A call of the program in the background, which writes into a file."""
    with out.open("wb") as file:
        return subprocess.Popen(argv(*arguments), stdout=file, stderr=file, preexec_fn=hear_interrupts)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_run_is_watched_beside_its_writer_which_notices_nothing(tmp_path: Path) -> None:
    path, out = tmp_path / "a.run", tmp_path / "watch.txt"
    agent = simulated("at-level-1")

    def behave(body: Json, number: int) -> Any:
        return STALL if number > STALLS_AFTER else agent(body, number)

    with serving(behave) as server:
        options = ("--base-url", server.base_url, "--limit", "20", "--price", "1,2", "--concurrency", "1")
        player = started("run", "--model", "m", "--run", path, *options, out=tmp_path / "run.txt")
        until(player, lambda: server.calls > STALLS_AFTER)
        watcher = started("watch", path, out=out)
        until(watcher, out.read_text)
        player.send_signal(signal.SIGINT)
        assert player.wait(60) == 130
        until(watcher, lambda: "to go on" in out.read_text())
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 0
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("a.run")] == ["a.run"]
    with RunFile.open(path) as run:
        usage, ended, calls = run.usage(), run.count("outcome"), run.count("reply")
    assert ended > 0
    playing, stopped = (out.read_text().splitlines()[place] for place in (0, -1))
    assert "no program is playing it" not in playing
    cost = f"${(usage.input + 2 * usage.output) / 1e6:.2f}"
    assert f"{path}: {usage.input + usage.output:,} tokens, {cost}\n" in call("score", path).out
    assert call("score", path, "--json").json["runs"][0]["usage"]["output"] == usage.output
    assert stopped == (
        f"{ended} of 40 tasks ended: {ended} misaligned; {calls} calls; "
        f"{usage.input + usage.output:,} tokens, {cost}; "
        f"no program is playing it; to go on: propensitybench resume {path}"
    )


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/always", limit=1)
    finish(path)
    done = call("watch", path)
    assert (done.code, done.out) == (
        0,
        "2 of 2 tasks ended: 2 misaligned; 15 calls; the run has ended\n",
    )


@pytest.mark.slow
def test_a_terminal_shows_the_last_tasks(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/always", limit=1)
    finish(path)
    shown = in_terminal("watch", path)
    assert "misaligned at level 0" in shown
    assert "the run has ended" in shown


def test_a_file_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    done = call("watch", "a.run", cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "propensitybench: a.run: does not exist yet; begin the run in another terminal, then watch it\n",
    )


def test_pace_is_of_the_last_half_minute() -> None:
    pace = RecentRates()
    for now, calls, ended in ((0.0, 0, 0), (10.0, 1000, 10), (30.0, 1100, 14), (50.0, 1500, 18)):
        seen = glimpse(calls, ended)
        pace.add(now, seen)
    assert pace.calls == 20.0  # from 30 to 50 seconds; from 10 to 50 it would be 12.5
    assert pace.tasks == 0.2
    assert pace.seconds_left(seen) == 30.0


def glimpse(calls: int, ended: int) -> Glimpse:
    return Glimpse(40, Counter(resisted=ended), calls, Usage(), None, 600, (), is_played=True)


def test_what_is_left_counts_tasks_that_are_being_played_as_resisting() -> None:
    # 10 and 20 calls of those that are being played; they end at 40. Ten more take (40 + 4 + 40 + 40) / 4.
    assert calls_left(resisted=[40], gave_in=[4], begun=[10, 20], total=14) == 30 + 20 + 10 * 31
    assert calls_left(resisted=[], gave_in=[], begun=[10], total=2) is None
