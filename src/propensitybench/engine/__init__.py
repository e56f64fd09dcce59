"""Runs: what one is to be, and how its tasks are played."""

from propensitybench.engine.agents import client_for, use_recorded_dialect
from propensitybench.engine.endpoints import Endpoints, client_at
from propensitybench.engine.growth import create_run
from propensitybench.engine.local import block_on, run_tasks, run_tasks_async
from propensitybench.engine.options import ExecutionOptions
from propensitybench.engine.preflight import check_endpoint, check_replicas
from propensitybench.engine.prices import Budget, Price, price_table
from propensitybench.engine.sequential import is_complete, stopping_state
from propensitybench.engine.session import Progress, Result
from propensitybench.engine.spec import RunSpec
from propensitybench.engine.stop import StopCause, StopSignal

__all__ = [
    "Budget",
    "Endpoints",
    "ExecutionOptions",
    "Price",
    "Progress",
    "Result",
    "RunSpec",
    "StopCause",
    "StopSignal",
    "block_on",
    "check_endpoint",
    "check_replicas",
    "client_at",
    "client_for",
    "create_run",
    "is_complete",
    "price_table",
    "run_tasks",
    "run_tasks_async",
    "stopping_state",
    "use_recorded_dialect",
]
