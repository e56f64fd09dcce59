"""Runs that records are written of: whole, partial, hostile, unfinished, and in Inspect logs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from helpers.clients import ByTask, TaskScript
from helpers.runs import DOMAIN, finish
from helpers.scenario_data import built_in

from propensitybench.chat import Reply, Request, StopReason, ToolCall, Usage
from propensitybench.clients import Conversation, calls, says
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import RunStopped
from propensitybench.scenarios import Selection, TaskMetadata
from propensitybench.simulated import SimulatedClient

# Markdown, HTML, LaTeX, YAML, a table cell, a marker of ours, controls and a mail address. Not a path, which
# a record would shorten.
EVIL: Final = (
    "lab/</script>[x](https:e.org)|![i](data:,)`code`*b*_u_{}input{passwd}%#&$^~\"'@x: {{ 7*7 }}"
    "[TODO (author): nothing]\x1b[31m\u202e\n---\nname: y"
)
WHOLE: Final = "simulated/o4-mini-like"


def create(spec: RunSpec, path: Path) -> None:
    """Creates a run file, always at the same time."""
    create_run(spec, path, clock=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def whole_run(path: Path) -> Path:
    """Every domain under both namings."""
    create(RunSpec(WHOLE, selection=Selection(limit=24)), path)
    finish(path)
    return path


def partial_run(path: Path) -> Path:
    """One domain and naming, four messages, settings, and a base URL that nobody else should learn."""
    options = ModelOptions(base_url="http://secret.internal/v1", temperature=0.5, reasoning_effort="low")
    spec = RunSpec(
        "local/model:2025",
        selection=Selection(domains=("cyber-security",), namings=("harmful",), limit=12),
        protocol=Protocol(levels=4),
        options=options,
    )
    create(spec, path)
    client = SimulatedClient("gemini-2.5-pro-like")
    client.model = spec.model
    finish(path, client)
    return path


def evil_script(task: TaskMetadata) -> list[Reply]:
    """By dimension: misaligned at level 1, blocked, truncated, errored, or resisted, with hostile texts."""
    faces = built_in().scenario(task.scenario).misaligned
    tool = (faces.harmful if task.naming == "harmful" else faces.benign).name
    odd = ToolCall("1", tool, '{"a": "\\ud800", "b": [1, 1e400]}')
    usage = Usage(input=100, output=20, cached=40, reasoning=5)
    scripts = {
        "time": [says(EVIL, done=True), Reply(EVIL, (odd,), StopReason.TOOL_CALLS, usage, model=EVIL)],
        "financials": [Reply(stop=StopReason.CONTENT_FILTER)],
        "self-preservation": [Reply(EVIL, stop=StopReason.LENGTH)],
        "power-seeking": [],
    }
    return scripts.get(task.dimension, [calls("no_such_tool", why=EVIL), says("No.", done=True)])


def evil_run(path: Path) -> Path:
    """Every outcome, of a model whose name and texts attack the readers of its records."""
    create(RunSpec(EVIL, selection=Selection(limit=24), protocol=Protocol(levels=2)), path)
    finish(path, TaskScript(evil_script, EVIL))
    return path


class Stopping(ByTask):
    """A simulated model after some replies of which no task can be played any more."""

    def __init__(self, replies: int) -> None:
        self._inner = SimulatedClient(WHOLE.removeprefix("simulated/"))
        self.model, self._left = WHOLE, replies

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Conversation(self, self._inner.open_task(task, replies))

    async def close(self) -> None:
        await self._inner.close()

    def spend(self) -> None:
        if self._left == 0:
            raise RunStopped("enough")
        self._left -= 1


class _Conversation:
    def __init__(self, client: Stopping, inner: Conversation) -> None:
        self._client, self._inner = client, inner

    async def reply(self, request: Request) -> Reply:
        self._client.spend()
        return await self._inner.reply(request)


def stopped_run(path: Path, replies: int = 60) -> Path:
    """A run that was stopped after so many replies."""
    create(RunSpec(WHOLE, selection=Selection(domains=(DOMAIN,), limit=24)), path)
    finish(path, Stopping(replies), concurrency=1)
    return path
