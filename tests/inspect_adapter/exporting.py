"""A run in which everything happens that a log must be able to hold, for tests."""

from pathlib import Path
from typing import Final

import msgspec
from helpers.clients import ByTask
from helpers.play import blocked
from helpers.runs import finish, make
from helpers.scenario_data import built_in
from inspect_ai.log import EvalSample, read_eval_log
from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText
from inspect_ai.tool import ToolCall as InspectCall

from propensitybench.chat import Reply, Request, StopReason, ToolCall, Usage
from propensitybench.clients import calls, says
from propensitybench.errors import ModelError
from propensitybench.inspect_adapter.eval_export import export_logs
from propensitybench.metrics import ScoredRun
from propensitybench.runs import StoredRun
from propensitybench.scenarios import TaskMetadata
from propensitybench.store import RunFile

ODD: Final = 'NUL \x00, bell \x07, escape \x1b[31m, \u202egnol\u202c, \U0001f600, "</script>", \u2028'
USAGE: Final = Usage(input=100, output=20, cached=40, reasoning=5)
# Lone surrogates, numbers beyond 64 bits, no object, too deep, no JSON at all.
ARGUMENTS: Final = (
    '{"a": "\\ud800"}',
    '{"n": 123456789012345678901234567890, "x": 1e400}',
    "[1, 2]",
    '{"a":' * 300 + "1" + "}" * 300,
    "[" * 5000,
    "not JSON " + ODD,
    "",
)
# In the order of the run: how the tasks of each scenario end.
KINDS: Final = ("gives in", "is blocked", "fails late", "thinks", "writes oddly", "fails at once")


class Mixed(ByTask):
    """A client under which each scenario ends differently; ``kinds`` has the ending by scenario name."""

    model = "simulated/o3-like"

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}

    def open_task(self, task: TaskMetadata, replies: int = 0) -> "_Conversation":
        kind = self.kinds.setdefault(task.scenario, KINDS[len(self.kinds) % len(KINDS)])
        return _Conversation(_script(kind, task), replies, kind.startswith("fails"))

    async def close(self) -> None:
        """Nothing to release."""


class _Conversation:
    def __init__(self, script: list[Reply], given: int, fails: bool) -> None:
        self._script, self._next, self._fails = script, given, fails

    async def reply(self, request: Request) -> Reply:  # noqa: ARG002
        self._next += 1
        if self._fails and self._next > len(self._script):
            raise ModelError(f"the line is dead {ODD}")
        return self._script[min(self._next, len(self._script)) - 1]


def _script(kind: str, metadata: TaskMetadata) -> list[Reply]:
    leaves = says("no", done=True)
    match kind:
        case "gives in":
            faces = built_in().scenario(metadata.scenario).misaligned
            tool = faces.harmful.name if metadata.naming == "harmful" else faces.benign.name
            asked = ToolCall("1", "elsewhere"), ToolCall("2", tool)
            two = Reply("both", asked, StopReason.TOOL_CALLS, USAGE, latency_ms=1500, attempts=3)
            return [leaves, leaves, two, calls(tool)]
        case "is blocked":
            return [blocked()]
        case "fails late":
            return [leaves, leaves, calls("elsewhere")]
        case "fails at once":
            return []
        case "thinks":
            return [_native_of_endpoint(), _native_of_inspect(), leaves]
    odd = [Reply(ODD, (ToolCall("call", f"tool{ODD}", raw),), StopReason.TOOL_CALLS) for raw in ARGUMENTS]
    return [Reply(ODD), *odd, Reply(""), leaves]


def _native_of_endpoint() -> Reply:
    provider_fields = msgspec.json.encode({"message": {"reasoning_content": f"first thought {ODD}"}}).decode()
    return msgspec.structs.replace(
        says("hello"), provider_fields=provider_fields, usage=USAGE, model="o3-2026", latency_ms=500
    )


def _native_of_inspect() -> Reply:
    message = ChatMessageAssistant(
        content=[ContentReasoning(reasoning="second thought", signature="s"), ContentText(text="I call")],
        tool_calls=[InspectCall(id="7", function="elsewhere", arguments={"a": [1, None]})],
    )
    call = ToolCall("7", "elsewhere", '{"a":[1,null]}')
    return Reply(
        "I call",
        (call,),
        StopReason.TOOL_CALLS,
        USAGE,
        provider_fields=message.model_dump_json(exclude_none=True),
    )


def mixed_run(path: Path) -> Path:
    """A run of 12 tasks, each pair of them ended in another way."""
    make(path)
    finish(path, Mixed(), concurrency=1)
    return path


def export(run: Path, out: Path) -> list[Path]:
    """Writes a run's logs."""
    with RunFile.open(run) as file:
        return export_logs(file, out)


def samples_of(logs: list[Path]) -> dict[str, EvalSample]:
    """Every sample of some logs, whole, by the task's key."""
    found: dict[str, EvalSample] = {}
    for path in logs:
        log = read_eval_log(str(path), resolve_attachments=True)
        found |= {f"{sample.id}.{sample.epoch}": sample for sample in log.samples or ()}
    return found


def scores_of(run: Path) -> ScoredRun:
    """The scores of a run file, under a name that does not tell where it is."""
    return msgspec.structs.replace(StoredRun(run).score(), file="run")
