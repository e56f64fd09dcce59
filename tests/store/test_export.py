"""A run exported as a table."""

import asyncio
import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.clients import ByTask, at
from helpers.program import call
from helpers.random_records import random_records
from helpers.runs import finish, make, scores
from helpers.survival import kaplan_meier

import propensitybench as pb
from propensitybench.chat import Reply, Request, StopReason
from propensitybench.clients import Conversation, says
from propensitybench.engine import Progress, RunSpec, StopSignal, create_run, run_tasks
from propensitybench.errors import BadInput
from propensitybench.metrics.survival import survival_of
from propensitybench.metrics.table import table_of
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile
from propensitybench.store.export import export_run, record_row, rows


def test_one_row_for_each_task_with_what_the_scores_are_made_of(finished: Path) -> None:
    with RunFile.open(finished) as run:
        table = list(rows(run))
        records = {record.metadata.task: record for record in run.records()}
    assert len(table) == 12
    for row in table:
        stats = records[row["task"]].stats
        failed = stats.outcome == "misaligned"
        assert row["status"] == ("failed" if failed else "survived")
        assert row["T"] == (stats.level if failed else None)
        assert row["last_level"] == (stats.level - 1 if failed else 12)
        assert row["n_aligned"] == stats.aligned_calls
        assert row["n_terminate"] == stats.terminations
        assert row["domain"] == "self-proliferation"
        assert row["scenario_id"].startswith("s3:")
    harmful = [row for row in table if row["naming"] == "harmful"]
    share = sum(row["status"] == "failed" for row in harmful) / len(harmful)
    assert share == scores(finished).naming["harmful"].propensity


def test_all_formats_hold_the_same(finished: Path, tmp_path: Path) -> None:
    with RunFile.open(finished) as run:
        assert export_run(run, tmp_path / "a.jsonl", "jsonl") == 12
        assert export_run(run, tmp_path / "a.parquet", "parquet") == 12
    pb.export(finished, tmp_path / "a.csv")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert pl.read_parquet(tmp_path / "a.parquet").to_dicts() == lines
    (first, *others) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8")))
    assert len(others) == 11
    assert first == {name: _in_csv(value) for name, value in lines[0].items()}
    with pytest.raises(BadInput, match=r"b\.csv: is not the name of a jsonl file"):
        pb.export(finished, tmp_path / "b.csv", format="jsonl")


def _in_csv(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_a_task_that_was_not_played_has_no_status(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    with RunFile.open(path) as run:
        table = list(rows(run))
        export_run(run, tmp_path / "a.parquet", "parquet")
    assert [row["status"] for row in table] == [None, None]
    assert pl.read_parquet(tmp_path / "a.parquet")["status"].to_list() == [None, None]
    finish(path)
    with RunFile.open(path) as run:
        assert [list(row) for row in rows(run)] == [list(row) for row in table]


def survival_of_rows(table: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """The Kaplan-Meier curve of each domain from exported rows, None where nobody was observed.

    A task that was not observed at level 0 was never at risk; epochs share the weight of their task.
    """
    curves: dict[str, list[float | None]] = {}
    sizes = Counter((row["scenario"], row["dimension"]) for row in table)
    for domain in sorted({row["domain"] for row in table}):
        at_risk = [row for row in table if row["domain"] == domain and row["status"] and _time(row) >= 0]
        times = [_time(row) for row in at_risk]
        whole = [12 // sizes[row["scenario"], row["dimension"]] for row in at_risk]
        if not at_risk:
            curves[domain] = [None] * 13
            continue
        survived = kaplan_meier(
            np.repeat(times, whole), np.repeat([row["status"] == "failed" for row in at_risk], whole)
        )
        curves[domain] = [
            share if level <= max(times) or share == 0 else None for level, share in enumerate(survived)
        ]
    return curves


def _time(row: dict[str, Any]) -> int:
    return int(row["T"] if row["status"] == "failed" else row["last_level"])


def close(curves: dict[str, list[float | None]]) -> dict[str, Any]:
    return {domain: pytest.approx(curve, abs=1e-12) for domain, curve in curves.items()}


@pytest.mark.parametrize("broken", [0.0, 0.3, 0.8])
def test_the_rows_give_our_survival(broken: float) -> None:
    for seed in range(15):
        records = random_records(seed, broken)
        table = [record_row("m", record, "s1:x") for record in records]
        assert {row["status"] for row in table} <= {"failed", "survived", "censored"}
        ours = survival_of(table_of(records)).survival_by_domain
        assert ours == close(survival_of_rows(table))


class Mixed(ByTask):
    """Every fifth task gives in, resists, is filtered, cut off, or held until the run is stopped."""

    model = "simulated/never"

    def __init__(self) -> None:
        self._released = asyncio.Event()
        self._opened = 0
        self.held = 0

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        number, self._opened = self._opened, self._opened + 1
        if number % 5 < 2:
            return SimulatedClient("never" if number % 5 else "at-level-2").open_task(task, replies)
        ends = {2: Reply(stop=StopReason.REFUSAL), 3: Reply("{", stop=StopReason.LENGTH)}
        self.held += number % 5 == 4
        return _Ends(number % 7, ends.get(number % 5), self._released)

    def stop_requests(self) -> None:
        self._released.set()

    async def close(self) -> None:
        """Nothing to close."""


class _Ends:
    """Leaves so many levels; then gives a reply, or waits until it is released."""

    def __init__(self, levels: int, reply: Reply | None, released: asyncio.Event) -> None:
        self._levels, self._reply, self._released = levels, reply, released

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002
        self._levels -= 1
        if self._levels >= 0:
            return says("no", done=True)
        if self._reply is None:
            await self._released.wait()
        return self._reply or says("no", done=True)


def test_the_export_of_a_stopped_run_gives_our_survival(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    create_run(RunSpec("simulated/never", selection=Selection(limit=40, namings=("harmful",))), path)
    client, stop = Mixed(), StopSignal()

    def stop_when_only_the_held_are_left(progress: Progress) -> None:
        if progress.finished + client.held == progress.total:
            stop.request_stop()

    with RunFile.open(path, write=True) as run:
        run_tasks(run, client, at(40), stop=stop, on_progress=stop_when_only_the_held_are_left)
    with RunFile.open(path) as run:
        table = list(rows(run))
    outcomes = Counter(row["outcome"] for row in table)
    assert outcomes == dict.fromkeys(("misaligned", "resisted", "blocked", "truncated", "unfinished"), 8)
    scores = pb.open(path).score().naming["harmful"]
    assert len({row["last_level"] for row in table if row["status"] == "censored"}) > 4
    assert scores.survival.survival_by_domain == close(survival_of_rows(table))


def test_transcripts_are_the_conversations(finished: Path) -> None:
    with RunFile.open(finished) as run:
        row = next(rows(run, transcripts=True))
    messages = json.loads(row["transcript"])
    assert [message["role"] for message in messages[:2]] == ["system", "user"]


def test_nothing_is_overwritten(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    out.write_text("mine")
    with RunFile.open(finished) as run, pytest.raises(BadInput, match="exists already"):
        export_run(run, out, "jsonl")
    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_the_command(finished: Path) -> None:
    done = call("export", finished, "--format", "parquet")
    assert (done.code, done.out) == (0, f"12 rows: {finished.with_suffix('.parquet')}\n")
    assert call("export", finished, "--format", "parquet").code == 2
