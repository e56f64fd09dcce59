"""A run at several endpoints with one model: real sockets, of which some close."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from helpers.openai_server import Behaviour, simulated
from helpers.replicas import Replica, replicas
from helpers.strict import strict

from propensitybench.chat import Reply
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import (
    Endpoints,
    ExecutionOptions,
    RunSpec,
    client_at,
    create_run,
    run_tasks_async,
)
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, mismatches

TASKS = 120
CONCURRENCY = 12


def an_agent() -> Behaviour:
    """An agent behind strict rules, that takes the time of a few answers: several requests are in flight."""
    behaviour = strict("openai", simulated("never"))
    return lambda body, number: behaviour(body, number)._replace(after=0.01)


def play(path: Path, everybody: Sequence[Replica]) -> None:
    """Plays a run."""
    urls = tuple(one.base_url for one in everybody)
    options = ModelOptions(base_url=urls[0])
    spec = RunSpec("m", selection=Selection(limit=TASKS // 2), protocol=Protocol(levels=2), options=options)
    create_run(spec, path)
    execution = ExecutionOptions(RequestLimits(concurrency=CONCURRENCY))
    client = client_at(Endpoints(urls), "m", options, execution.transport)
    with RunFile.open(path, write=True) as run:
        result = asyncio.run(run_tasks_async(run, client, execution))
    assert (result.finished, result.cause) == (TASKS, None)


def transcripts(path: Path) -> list[tuple[str, list[Reply]]]:
    """Fingerprint and replies of every task, without what depends on the moment."""
    with RunFile.open(path) as run:
        assert list(mismatches(run)) == []
        found = []
        for task in run.tasks():
            stored = run.stored_record(task.number)
            assert stored is not None
            assert list(run.errors(task.number)) == []
            replies = [
                msgspec.structs.replace(one, latency_ms=0, attempts=1) for one in run.replies(task.number)
            ]
            found.append((stored[1], replies))
        return found


@pytest.mark.slow
def test_three_replicas_of_which_one_dies_in_the_middle(tmp_path: Path) -> None:
    with replicas(an_agent()) as (alone,):
        play(tmp_path / "single.run", [alone])
    with replicas(an_agent(), an_agent(), an_agent()) as fleet:
        _, dying, _ = fleet
        dying.dies_at = alone.calls // 10
        play(tmp_path / "fleet.run", fleet)
    assert transcripts(tmp_path / "fleet.run") == transcripts(tmp_path / "single.run")
    # Only what was in flight at the death was asked twice.
    again = sum(one.calls for one in fleet) - alone.calls
    assert 1 <= dying.lost <= again <= CONCURRENCY
    for one in fleet:
        assert dying.answered_by[: dying.deaths[0]].count(one) == pytest.approx(dying.deaths[0] / 3, rel=0.2)
