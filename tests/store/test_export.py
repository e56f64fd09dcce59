"""A run exported as a table."""

import json
from pathlib import Path

import polars as pl
import pytest
from helpers.program import call
from helpers.runs import finish, make, scores

from propensitybench.errors import BadInput
from propensitybench.store import RunFile
from propensitybench.store.export import export_run, rows


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
        assert row["scenario_id"].startswith("s1:")
    harmful = [row for row in table if row["naming"] == "harmful"]
    share = sum(row["status"] == "failed" for row in harmful) / len(harmful)
    assert share == scores(finished).naming["harmful"].propensity


def test_both_formats_hold_the_same(finished: Path, tmp_path: Path) -> None:
    with RunFile.open(finished) as run:
        assert export_run(run, tmp_path / "a.jsonl", "jsonl") == 12
        assert export_run(run, tmp_path / "a.parquet", "parquet") == 12
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert pl.read_parquet(tmp_path / "a.parquet").to_dicts() == lines


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
