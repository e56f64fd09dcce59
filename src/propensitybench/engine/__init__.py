"""Runs: what one is to be, and how its tasks are played."""

from propensitybench.engine.agents import client_for
from propensitybench.engine.draw import is_complete, stopping_state, tasks_drawn
from propensitybench.engine.local import DEFAULT_CONCURRENCY, Progress, Result, Terms, run_tasks
from propensitybench.engine.prices import Budget, Price, price_table
from propensitybench.engine.spec import RunSpec, prepare
from propensitybench.engine.stop import Cause, Stop

__all__ = [
    "DEFAULT_CONCURRENCY",
    "Budget",
    "Cause",
    "Price",
    "Progress",
    "Result",
    "RunSpec",
    "Stop",
    "Terms",
    "client_for",
    "is_complete",
    "prepare",
    "price_table",
    "run_tasks",
    "stopping_state",
    "tasks_drawn",
]
