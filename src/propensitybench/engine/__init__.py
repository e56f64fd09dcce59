"""Runs: what one is to be, and how its tasks are played."""

from propensitybench.engine.agents import client_for
from propensitybench.engine.local import DEFAULT_CONCURRENCY, Progress, Result, Stop, run_tasks
from propensitybench.engine.spec import RunSpec, prepare

__all__ = [
    "DEFAULT_CONCURRENCY",
    "Progress",
    "Result",
    "RunSpec",
    "Stop",
    "client_for",
    "prepare",
    "run_tasks",
]
