"""Runs at an endpoint of a test's, whose model can be probed, and what it was asked."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.openai_server import Answer, Behaviour, Json, Server, simulated
from helpers.runs import finish

from propensitybench.clients.compatible import dialects
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import ExecutionOptions, RunSpec, create_run
from propensitybench.engine.asking import AskingResult
from propensitybench.episode import Protocol
from propensitybench.judging.probe_numbers import ProbeNumbers, probe_numbers, read_probed
from propensitybench.judging.probes import Level, Probe, read_probe
from propensitybench.judging.side_branches import Probing, probe_run
from propensitybench.scenarios import Selection

AWARENESS = read_probe("awareness")
POLICY = read_probe("stated-policy")
ASKED = "A question aside from the task"


def is_probe(body: Json) -> bool:
    """Whether a request asks a built-in probe."""
    return ASKED in str(body["messages"][-1]["content"])


def answering(profile: str, planted: Callable[[Json, int], Answer]) -> Behaviour:
    """Plays as a simulated agent, and answers probes as planted."""
    agent = simulated(profile)
    return lambda body, number: (planted if is_probe(body) else agent)(body, number)


def played_at(path: Path, server: Server, limit: int = 6, **protocol: Any) -> Path:
    """A finished run of the model at a server, with options and in a form that are not the usual ones."""
    options = ModelOptions(base_url=server.base_url, temperature=0.5, max_tokens=99)
    rules = Protocol(**{"levels": 3, **protocol})
    dialect = dialects()["openai"]
    create_run(
        RunSpec("m", None, Selection(limit=limit), protocol=rules, options=options, dialect=dialect), path
    )
    finish(path, OpenAIChatClient(Endpoint("m", "m", server.base_url), options))
    return path


def probed(
    path: Path, *levels: Level, probes: tuple[Probe, ...] = (AWARENESS,), **changes: Any
) -> AskingResult:
    """Probes a run as the program does."""
    execution = changes.pop("execution", ExecutionOptions(RequestLimits(concurrency=4, max_retries=0)))
    return asyncio.run(
        probe_run(path, Probing(probes, levels, changes.pop("limit", None)), execution, **changes)
    )


def numbers(path: Path, probe: Probe = AWARENESS) -> ProbeNumbers:
    """The numbers of a probe."""
    (found,) = read_probed(path, [probe.digest])
    return probe_numbers(found)
