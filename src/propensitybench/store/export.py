"""Exports a run as a flat table with one row per task, for pandas, polars, R and other tools."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, Literal

import msgspec

from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome, replay
from propensitybench.errors import BadInput
from propensitybench.scenarios import TaskMetadata
from propensitybench.scenarios.model import scenario_id
from propensitybench.store.atomic import new_file
from propensitybench.store.rows import NumberedTask, OnDone, ignore
from propensitybench.store.runfile import RunFile

Format = Literal["jsonl", "csv", "parquet"]
# Our outcomes in the terms of survival analysis.
STATUS: Final = {
    Outcome.MISALIGNED: "failed",
    Outcome.RESISTED: "survived",
    Outcome.COMPLETED: "survived",
    Outcome.BLOCKED: "censored",
    Outcome.TRUNCATED: "censored",
    Outcome.ERRORED: "censored",
    Outcome.UNFINISHED: "censored",
}

# Characters of transcripts that a table in memory may have, in any case and for each byte of the run file.
# They are a few times as large as the file, unless it was made to grow.
MIN_HELD: Final = 2**26
MAX_GROWTH: Final = 16
# Columns that are known for a task that has not been played.
_KNOWN: Final = frozenset(("model", "scenario_id"))
# Stands in for a task without an outcome; gives the column names.
EMPTY: Final = EpisodeRecord(
    TaskMetadata("", "", "", "", "", None, "", "harmful", 0, 0), EpisodeStats(Outcome.ERRORED, 0, 0)
)


def export_run(
    run: RunFile, out: Path, form: Format, *, transcripts: bool = False, on_row: OnDone = ignore
) -> int:
    """Writes a run as a table and returns the number of rows.

    ``status`` is null for a task that has not begun. The file is written completely or not at all.

    Args:
        run: the run.
        out: the file to write; it must not exist.
        form: JSON lines, CSV or Parquet.
        transcripts: adds each task's conversation, with the closing report, as JSON.
        on_row: told how many rows are made, of how many.

    Raises:
        BadInput: the file exists or cannot be written, or the transcripts are too many for CSV or Parquet.
    """
    if out.exists():
        raise BadInput(f"{out}: exists already; use another --out FILE")
    try:
        with new_file(out) as file:
            table = _told(rows(run, transcripts=transcripts), run.planned, on_row)
            return (
                _write_jsonl(file, table) if form == "jsonl" else _write_frame(file, form, _held(run, table))
            )
    except FileExistsError as error:
        found = error.filename2 or error.filename
        raise BadInput(f"{found}: exists already; use another --out FILE") from error
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({error.strerror or error})") from error


def _told(table: Iterator[dict[str, Any]], total: int, on_row: OnDone) -> Iterator[dict[str, Any]]:
    for done, row in enumerate(table):
        on_row(done, total)
        yield row


def rows(run: RunFile, *, transcripts: bool = False) -> Iterator[dict[str, Any]]:
    """The rows of the table, in the order of the run. Each scenario is read only once."""
    ids: dict[str, tuple[str, dict[str, Any]]] = {}
    for task in run.own_tasks():
        name = task.task.scenario
        if name not in ids:
            scenario = run.scenario(name)
            fields = ("domain", "workspace", "role", "capability")
            ids[name] = scenario_id(scenario), {field: getattr(scenario, field) for field in fields}
        row = _row(run, task, *ids[name])
        if transcripts:
            episode = replay(run.job(task)).episode
            row["transcript"] = msgspec.json.encode([*episode.messages, *episode.closing]).decode()
        yield row


def _row(run: RunFile, task: NumberedTask, identity: str, place: dict[str, Any]) -> dict[str, Any]:
    stored = run.stored_record(task.number)
    if stored is not None:
        return record_row(run.manifest.model, stored[0], identity)
    if run.replies(task.number):
        return record_row(run.manifest.model, replay(run.job(task)).record, identity)
    names = ("scenario", "dimension", "naming", "epoch", "message")
    known = {"task": task.task.key, **{name: getattr(task.task, name) for name in names}, **place}
    empty = record_row(run.manifest.model, EMPTY, identity)
    return {name: known.get(name, empty[name] if name in _KNOWN else None) for name in empty}


def record_row(model: str, record: EpisodeRecord, identity: str) -> dict[str, Any]:
    """The row of a task with an outcome; ``identity`` is its scenario's content id."""
    task = record.metadata
    return {
        "model": model,
        "task": task.task,
        "naming": task.naming,
        "domain": task.domain,
        "workspace": task.workspace,
        "role": task.role,
        "capability": task.capability,
        "scenario": task.scenario,
        "scenario_id": identity,
        "dimension": task.dimension,
        "storyline": task.storyline,
        "epoch": task.epoch,
        "arm": task.arm,
        "ladder": task.ladder,
        "message": task.message,
        **_fields(record),
    }


def _fields(record: EpisodeRecord) -> dict[str, Any]:
    stats = record.stats
    failed = stats.outcome is Outcome.MISALIGNED
    heard = stats.levels_run
    if stats.outcome is Outcome.UNFINISHED:  # it may still give in at the level that it has reached
        heard = min(stats.level, heard)
    counts = msgspec.structs.asdict(stats)
    usage = msgspec.structs.asdict(counts.pop("usage"))
    del counts["outcome"]
    return {
        "outcome": stats.outcome.value,
        "status": STATUS[stats.outcome],
        "T": stats.level if failed else None,
        "last_level": heard - 1,
        "n_aligned": stats.aligned_calls,
        "n_aligned_before_fail": stats.aligned_calls if failed else None,
        "n_terminate": stats.terminations,
        "competent": stats.competent,
        "error": record.error,
        **counts,
        **{f"tokens_{part}": number for part, number in usage.items()},
    }


def _write_jsonl(file: IO[bytes], found: Iterator[dict[str, Any]]) -> int:
    count = 0
    encode = msgspec.json.Encoder().encode
    for row in found:
        file.write(encode(row) + b"\n")
        count += 1
    return count


def _held(run: RunFile, found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows, as far as they may all be held in memory at once."""
    most = max(MIN_HELD, MAX_GROWTH * run.path.stat().st_size)
    for row in found:
        most -= len(row.get("transcript", ""))
        if most < 0:
            raise BadInput(
                f"{run.path}: its transcripts are too large for a table of this format; use --format jsonl"
            )
        yield row


def _write_frame(file: IO[bytes], form: Format, found: Iterator[dict[str, Any]]) -> int:
    import polars as pl  # slow to import, and only used here

    columns = pl.DataFrame(list(found), infer_schema_length=None)
    encoded = BytesIO()  # polars has errors of its own for a file that it cannot write
    if form == "csv":
        columns.write_csv(encoded)
    else:
        columns.write_parquet(encoded)
    file.write(encoded.getbuffer())
    return columns.height
