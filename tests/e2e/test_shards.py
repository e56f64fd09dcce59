"""Shards as a user plays and merges them."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from helpers.endpoint_runs import mixed
from helpers.forking import call_forked
from helpers.openai_server import STALL, Answer, Behaviour, Json, serving
from helpers.program import call
from helpers.runs import journal
from helpers.shards import rows

import propensitybench as pb
from propensitybench.engine import Progress
from propensitybench.errors import BadInput
from propensitybench.store import RunFile

RUN = ["run", "--model", "simulated/o3-like", "--limit", "10", "--levels", "2"]
SHARDS, KILLED, PAIRS, AT_ONCE = 64, 13, 40, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in one piece, and its three shards in a folder."""
    folder = tmp_path_factory.mktemp("shards")
    assert call(*RUN, "--run", folder / "whole.run").code == 0
    for number in (1, 2, 3):
        assert call(*RUN, "--shard", f"{number}/3", "--run", folder / "shards" / f"{number}.run").code == 0
    return folder


def numbers(*runs: Path) -> Any:
    """The scores of one run, without its name."""
    (found,) = call("score", *runs, "--json", "--all").json["runs"]
    return {**found, "file": ""}


def test_merged_shards_are_the_run_in_one_piece(folder: Path, tmp_path: Path) -> None:
    done = call("merge", folder / "shards", "--run", tmp_path / "merged.run")
    assert (done.code, done.out, done.err) == (
        0,
        f"{tmp_path}/merged.run: 3 files, 20 of 20 tasks finished\n",
        "",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["merged.run"]
    for table in ("scenario", "pressure", "task", "reply", "outcome", "shard", "share"):
        assert rows(tmp_path / "merged.run", table) == rows(folder / "whole.run", table)
    assert call("verify", tmp_path / "merged.run").code == 0
    assert numbers(tmp_path / "merged.run") == numbers(folder / "whole.run")


def test_shards_are_not_scored_before_they_are_merged(folder: Path) -> None:
    done = call("score", folder / "shards")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert f"propensitybench merge {folder}/shards --run whole.run" in done.err


def test_a_shard_alone_is_scored_as_its_share(folder: Path) -> None:
    shard = folder / "shards" / "2.run"
    scored = call("score", shard)
    assert "o3-like (shard 2/3)" in scored.out
    assert "not begun" not in scored.out
    assert numbers(shard)["tasks"]["total"] == 7
    assert (call("show", shard).out + "\n").count("resisted") <= 7
    assert len(call("show", shard).out.splitlines()) == 7


def test_tasks_of_a_missing_shard_have_not_begun(folder: Path, tmp_path: Path) -> None:
    some = [folder / "shards" / f"{number}.run" for number in (1, 3)]
    done = call("merge", *some, "--run", tmp_path / "some.run", "--json")
    assert done.json == {
        "file": str(tmp_path / "some.run"), "files": 2, "tasks": 20, "finished": 13, "errored": 0,
        "missing": ["2/3"],
    }  # fmt: skip
    assert "missing: shard 2/3;" in done.err
    assert "7 tasks, shard 2/3 of 20 tasks" in call("resume", folder / "shards" / "2.run").err
    assert "resume" not in done.err
    counts = numbers(tmp_path / "some.run")["tasks"]
    assert (counts["total"], counts["unplayed"]) == (20, 7)
    assert call("resume", tmp_path / "some.run").code == 0
    assert numbers(tmp_path / "some.run") == numbers(folder / "whole.run")


def test_two_files_of_one_shard_are_refused(folder: Path, tmp_path: Path) -> None:
    other = shutil.copy(folder / "shards" / "2.run", tmp_path / "other.run")
    done = call("merge", folder / "shards", other, "--run", tmp_path / "m.run")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"{folder}/shards/2.run and {other}: have both played the task " in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["other.run"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--shard", "0/3"], "shard 0/3: shards are numbered from 1 to 3"),
        (["--shard", "three"], "shard 'three': must be I/N"),
        (["--shard", "1/3", "--precision", "0.1"], "leave out --precision, or --shard"),
    ],
)
def test_a_shard_that_cannot_be_is_one_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    done = call(*RUN, *options, "--run", tmp_path / "a.run")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert sentence in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_shard_of_fewer_tasks_than_shards_succeeds(tmp_path: Path) -> None:
    """An array job has as many members as somebody wrote, however few tasks there are."""
    done = call(*RUN, "--shard", "64/64", "--run", tmp_path / "a.run", "--json")
    assert (done.code, done.json["tasks"]["total"]) == (0, 0)
    assert done.err == "nothing to play: the run has fewer tasks than shards\n"
    for command in (["resume"], ["verify"], ["score"], ["merge", "--run", tmp_path / "b.run"]):
        assert call(*command, tmp_path / "a.run").code == 0


def test_the_plan_of_a_shard_counts_its_tasks(tmp_path: Path) -> None:
    planned = call(*RUN, "--shard", "2/3", "--run", tmp_path / "a.run", "--plan", "--json").json
    whole = call(*RUN, "--run", tmp_path / "a.run", "--plan", "--json").json
    assert (planned["tasks"], whole["tasks"]) == (7, 20)
    assert planned["power"] == whole["power"]


def test_shards_in_python(folder: Path, tmp_path: Path) -> None:
    totals: list[Progress] = []
    run = pb.run(
        "simulated/o3-like", tmp_path / "2.run", on_progress=totals.append, limit=10, levels=2, shard="2/3"
    )
    assert {progress.total for progress in totals} == {run.planned} == {7}
    assert numbers(tmp_path / "2.run") == numbers(folder / "shards" / "2.run")
    with pytest.raises(BadInput, match="shard 4/3"):
        pb.run("simulated/o3-like", limit=10, shard="4/3")


class Stalling:
    """A behaviour that can stop answering at some call, and tells when it does."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._last: float = inf
        self._stalled = Event()

    def __call__(self, body: Json, number: int) -> Answer:
        if number < self._last:
            return self._behaviour(body, number)
        self._stalled.set()
        return STALL

    def kill(self, last: int, command: Sequence[str | Path]) -> None:
        """Kills a call of the program as soon as a call of that number is not answered."""
        self._last = last

        def begun(process: int) -> None:
            assert self._stalled.wait(60)
            os.kill(process, signal.SIGKILL)

        code, _, _ = call_forked([str(word) for word in command], "", None, os.environ, begun)
        assert code == -signal.SIGKILL
        self._last = inf
        self._stalled.clear()


def endings(path: Path) -> Any:
    """Fingerprint of each task, and its transcript as exported."""
    call("export", path, "--transcripts", "--out", path.with_suffix(".jsonl"))
    exported = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    return rows(path, "outcome", "task, fingerprint"), {row["task"]: row["transcript"] for row in exported}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_64_shards_a_fifth_of_them_killed_and_resumed(tmp_path: Path) -> None:
    chance = Random(20)
    killed = chance.sample(range(1, SHARDS + 1), KILLED)
    answering = Stalling(mixed())
    with serving(answering) as server:
        new = ["run", "--model", "m", "--base-url", server.base_url, "--limit", str(PAIRS), "--levels", "2"]
        new += ["--concurrency", str(AT_ONCE)]
        assert call(*new, "--run", tmp_path / "whole.run").code == 0
        replies = len(journal(tmp_path / "whole.run"))
        preflight = server.calls - replies
        before, sessions = server.calls, 0
        for number in range(1, SHARDS + 1):
            path = tmp_path / "shards" / f"{number}.run"
            name = f"{number}/{SHARDS}"
            if number in killed:
                answering.kill(
                    server.calls + preflight + chance.randint(1, 3), [*new, "--shard", name, "--run", path]
                )
                with RunFile.open(path) as run:
                    assert run.finished() < run.planned
                sessions += 1
                assert call("resume", path).code == 0
            else:
                url = server.base_url
                pb.run("m", path, base_url=url, limit=PAIRS, levels=2, concurrency=AT_ONCE, shard=name)
            sessions += 1
        lost = server.calls - before - replies - preflight * sessions
    assert 0 < lost <= KILLED * AT_ONCE, "a kill may lose what was in flight, and nothing else"
    assert call("merge", tmp_path / "shards", "--run", tmp_path / "merged.run").code == 0
    assert call("verify", tmp_path / "merged.run").code == 0
    assert numbers(tmp_path / "merged.run") == numbers(tmp_path / "whole.run")
    assert endings(tmp_path / "merged.run") == endings(tmp_path / "whole.run")
    assert journal(tmp_path / "merged.run") == journal(tmp_path / "whole.run")
