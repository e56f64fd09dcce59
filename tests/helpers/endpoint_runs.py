"""Runs against an endpoint of a test's, played as the program plays them, and how their tasks ended."""

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
from helpers.openai_server import Behaviour, Json, simulated

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.digests import seed_from
from propensitybench.engine import (
    ExecutionOptions,
    Result,
    RunSpec,
    check_endpoint,
    client_for,
    create_run,
    run_tasks,
)
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile

TASKS: Final = 30
PROFILES: Final = ("never", "always", "at-level-1", "at-level-2", "quitter", "malformed", "incompetent")
Outcomes = dict[str, tuple[str, int, int, int]]


def mixed() -> Behaviour:
    """Another simulated agent for each scenario and naming."""
    agents = [simulated(profile) for profile in PROFILES]

    def answer(body: Json, number: int) -> Any:
        return agents[seed_from(str(body["messages"][0]["content"])) % len(agents)](body, number)

    return answer


def spec(model: str, data: Path | None = None, options: ModelOptions = ModelOptions()) -> RunSpec:
    """A run of `TASKS` tasks of three levels."""
    selection = Selection(limit=TASKS // 2)
    return RunSpec(model, data, selection, protocol=Protocol(levels=3), options=options)


def played(path: Path, asked: RunSpec, environment: dict[str, str], concurrency: int = 16) -> Result:
    """Plays a run: the preflight, the run file, the tasks."""
    transport = RequestLimits(concurrency=concurrency, timeout=60)
    client = client_for(asked.model, asked.options, transport, environment)
    dialect = asyncio.run(check_endpoint(client))
    create_run(msgspec.structs.replace(asked, dialect=dialect), path)
    with RunFile.open(path, write=True) as run:
        return run_tasks(run, client, ExecutionOptions(transport))


def outcomes(path: Path) -> Outcomes:
    """How each task ended: outcome, level, turns, and calls with wrong arguments."""
    with RunFile.open(path) as run:
        stats = {record.metadata.task: record.stats for record in run.records()}
    return {task: (s.outcome.value, s.level, s.turns, s.argument_errors) for task, s in stats.items()}


def environment(provider: str, url: str) -> dict[str, str]:
    """The variables that lead a provider's models to a server of a test's."""
    return {f"{provider.upper()}_API_KEY": "k", f"{provider.upper()}_BASE_URL": url}
