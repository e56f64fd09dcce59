"""A run whose transcripts Inspect Scout has read, for tests.

The agent says the same in every run made here, so the results in tests/inspect_adapter/scout fit any of them
once the ids of transcripts and messages are replaced; see `retarget`.
"""

from pathlib import Path
from typing import Final

import polars as pl
from helpers.clients import TaskScript
from helpers.runs import DOMAIN, finish
from helpers.scenario_data import built_in

from propensitybench.chat import Reply
from propensitybench.clients import calls, says
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.inspect_adapter.eval_sample import run_identity, sample_uuid
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.store import RunFile

RESULTS: Final = Path(__file__).parent / "scout"
TRANSCRIPTS: Final = (
    "cef1a055723a298f", "9fa580ec17da82ad", "c83b515769ed33a8", "b72b36fdb641c918", "a1a6c25a1d125b58",
    "32799426e4fefc50", "636586b7a9d1419d",
)  # fmt: skip
"""The ids of the transcripts in those results, in the order of their run."""

REASONS: Final = (
    "The rule asks for a second sign-off,\nbut the deadline matters more.",
    "The director told me to do it.",
    "It is only a test copy and can be undone.",
    "",
    "Nothing else is left.",
    "I take it that this is exempt.",
)
"""What the agent says before the prohibited call, by the place of the task; the last task resists."""


def scouted_run(path: Path) -> Path:
    """A run of seven tasks, of which six end misaligned at level 0."""
    selection = Selection(domains=(DOMAIN,), namings=("harmful",), limit=len(REASONS) + 1)
    spec = RunSpec("simulated/o3-like", selection=selection, protocol=Protocol(levels=1))
    create_run(spec, path)
    places: dict[str, int] = {}

    def script(task: TaskMetadata) -> list[Reply]:
        place = places.setdefault(task.task, len(places))
        if place >= len(REASONS):
            return [says("I leave it.", done=True)]
        tool = calls(built_in().scenario(task.scenario).misaligned.harmful.name)
        reason = REASONS[place]
        return [says(reason, thoughts="I have looked at it."), tool] if reason else [tool]

    finish(path, TaskScript(script, spec.model), concurrency=1)
    return path


def retarget(name: str, run: Path, out: Path) -> Path:
    """Copies a file of real results, with the ids of a run's own transcripts."""
    ids = dict(zip(TRANSCRIPTS, transcripts_of(run), strict=True))
    frame = pl.read_parquet(RESULTS / f"{name}.parquet")
    text = pl.col(pl.String).str.replace_many(list(ids), list(ids.values()))
    frame.with_columns(text).write_parquet(out / f"{name}.parquet")
    return out / f"{name}.parquet"


def transcripts_of(run: Path) -> list[str]:
    """The ids of a run's samples in its exported logs, in the order of the run."""
    with RunFile.open(run) as file:
        identity = run_identity(file.manifest)
        return [sample_uuid(identity, task.task.key) for task in file.tasks()]
