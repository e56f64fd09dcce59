"""Cheaper runs from the command line: fewer levels, or tasks until a precision is reached."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.program import argv, call, until
from helpers.runs import journal

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

MODEL = "simulated/o3-like"


def run(path: Path, *more: str) -> list[str | Path]:
    return ["run", "--model", MODEL, "--run", path, *more]


def test_with_fewer_levels_the_score_has_another_name(tmp_path: Path) -> None:
    short, long = tmp_path / "short.run", tmp_path / "long.run"
    shown = [
        call(*run(short, "--limit", "6", "--levels", "3", "--json")).json,
        call(*run(long, "--limit", "6", "--json")).json,
    ]
    one, two = (call("score", path, "--json", "--all").json["runs"][0] for path in (short, long))
    assert [found["levels"] for found in shown] == [3, 12]
    assert (one["levels"], two["levels"]) == (3, 12)
    for naming in ("harmful", "benign"):
        assert len(one["naming"][naming]["cumulative_by_level"]) == 4
        assert one["naming"][naming]["propensity"] == two["naming"][naming]["cumulative_by_level"][3]
    alone = call("score", short).out
    for part in (
        "PP@3: percent of tasks",
        "PP@3 (95 %)",
        "PP@3: pressure ended after 3 of 12 messages; not comparable with a propensity",
        f"{MODEL}: PP@3 in percent, by part",
    ):
        assert part in alone
    assert "propensity (95 %)" not in alone
    together = call("score", short, long).out
    for part in (
        "PP@3 and propensity: percent of tasks",
        "o3-like (PP@3)",
        "o3-like (propensity)",
    ):
        assert part in together


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ([], "levels (was 3, now 12)"),
        (
            ["--levels", "3", "--precision", "0.02"],
            "stopping rule (was none, now half-width 0.02, batches of 80, at least 400)",
        ),
    ],
)
def test_resuming_with_other_levels_or_another_precision_is_refused(
    tmp_path: Path, more: list[str], complaint: str
) -> None:
    path = tmp_path / "a.run"
    create_run(RunSpec(MODEL, selection=Selection(limit=2), protocol=Protocol(levels=3)), path)
    before = path.read_bytes()
    done = call(*run(path, "--limit", "2", *more))
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_precision_is_reached_and_an_interrupted_run_reaches_it_at_the_same_task(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.run", tmp_path / "broken.run"
    more = ("--naming", "harmful", "--levels", "2", "--precision", "0.02", "--json")
    done = call(*run(whole, *more))
    assert done.code == 0
    rule, tasks = done.json["stopping_rule"], done.json["tasks"]
    assert rule["met"]
    assert rule["reached"]["harmful"] <= rule["half_width"] == 0.02
    assert 400 < rule["drawn"] == tasks["misaligned"] + tasks["resisted"]
    assert rule["drawn"] % 80 == 0
    assert tasks["unplayed"] == 0
    assert tasks["not_drawn"] == tasks["total"] - rule["drawn"] > 0
    scored = call("score", whole).out
    for text in (done.err, scored):
        assert f"{rule['drawn']} of {tasks['total']} tasks drawn" in text
        assert "target +- 2.00; met\n" in text
    assert "not played" not in scored
    assert "not met yet" in interrupted_at_a_reply(broken, *more)
    assert unnamed(call("resume", broken, "--json").json) == unnamed(done.json)
    assert journal(broken) == journal(whole)


def unnamed(scores: dict[str, Any]) -> dict[str, Any]:
    return {**scores, "file": ""}


def interrupted_at_a_reply(path: Path, *more: str) -> str:
    """Starts a run, interrupts it after its first reply, and returns what it printed to standard error."""
    process = subprocess.Popen(
        argv(*run(path, *more), "--concurrency", "1"),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    until(process, lambda: path.exists() and _begun(path))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    return err


def _begun(path: Path) -> int:
    with RunFile.open(path) as found:
        return found.begun()


def test_a_precision_out_of_reach_plays_every_task(tmp_path: Path) -> None:
    done = call(*run(tmp_path / "a.run", "--limit", "20", "--precision", "0.001", "--json"))
    assert done.code == 0
    assert "40 of 40 tasks drawn" in done.err
    assert "; not met, but every task has been played" in done.err
    assert not done.json["stopping_rule"]["met"]
    assert done.json["tasks"]["not_drawn"] == 0


def test_a_plan_takes_what_to_assume(tmp_path: Path) -> None:
    asked = run(tmp_path / "a.run", "--plan", "--limit", "100", "--json")
    (power,) = call(*asked, "--assume-propensity", "0.2").json["power"]
    assert power["propensity"] == 0.2
    refused = call(*asked, "--assume-propensity", "20")
    assert refused.code == 2
    assert "assumed propensity: must lie between 0 and 1, found 20" in refused.err


def test_a_plan_has_the_power_of_the_run(tmp_path: Path) -> None:
    asked = run(tmp_path / "a.run", "--plan", "--limit", "100", "--precision", "0.02")
    text, plan = call(*asked).out, call(*asked, "--json").json
    assert "tasks:         at most 200 (100 pairs" in text
    assert "0 of them finished; --precision may stop earlier" in text
    assert [power["propensity"] for power in plan["power"]] == [0.1, 0.5]
    for power in plan["power"]:
        assert power["icc"] == 0.25
        assert (
            f"if {100 * power['propensity']:.0f} %:       95 % interval +- {100 * power['half_width']:.1f} "
            f"points; detects +{100 * power['increase']:.1f}"
        ) in text
    assert f"or -{100 * plan['power'][1]['decrease']:.1f} points between namings or models" in text
    assert "detects no difference between" in call(*run(tmp_path / "b.run", "--plan", "--limit", "1")).out
    assert list(tmp_path.iterdir()) == []
