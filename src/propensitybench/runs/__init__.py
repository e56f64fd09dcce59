"""Runs as objects: executed, opened, scored, compared and read, whatever file they are in."""

from propensitybench.runs.base import ReplySummary, Run
from propensitybench.runs.comparison import ComparableRuns, RunComparison, comparable, compare
from propensitybench.runs.execute import run, run_async
from propensitybench.runs.read import open_run as open  # noqa: A004 - used as propensitybench.open
from propensitybench.runs.read import read_runs
from propensitybench.runs.settings import Settings
from propensitybench.runs.stored import StoredRun
from propensitybench.runs.transcript import Transcript
from propensitybench.runs.verifying import verify

__all__ = [
    "ComparableRuns",
    "ReplySummary",
    "Run",
    "RunComparison",
    "Settings",
    "StoredRun",
    "Transcript",
    "comparable",
    "compare",
    "open",
    "read_runs",
    "run",
    "run_async",
    "verify",
]
