"""The same episodes through our engine and through Inspect AI, for tests."""

from pathlib import Path
from typing import Any, NamedTuple

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    Model,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
)
from msgspec.json import encode

from propensitybench.chat import Message
from propensitybench.clients import Client
from propensitybench.engine import RunSpec, create_run, run_tasks
from propensitybench.episode import EpisodeRecord, Protocol, replay
from propensitybench.inspect_adapter.samples import record_from_score
from propensitybench.scenarios import Selection
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile


class PlainMessage(NamedTuple):
    """A message without what only Inspect has: ids of messages, sources, models."""

    role: str
    text: str
    calls: tuple[tuple[str, str, str], ...]
    answers: str


class Episodes(NamedTuple):
    """Records and transcripts, by the task's key."""

    records: dict[str, EpisodeRecord]
    transcripts: dict[str, list[PlainMessage]]


def through_engine(
    path: Path,
    profile: str,
    selection: Selection,
    seed: int,
    levels: int,
    client: Client | None = None,
    **rules: Any,
) -> Episodes:
    """Plays a selection with our engine; a client may answer in the profile's place."""
    protocol = Protocol(levels=levels, **rules)
    create_run(RunSpec(f"simulated/{profile}", selection=selection, seed=seed, protocol=protocol), path)
    with RunFile.open(path, write=True) as run:
        run_tasks(run, client or SimulatedClient(profile))
        played = {task.task.key: replay(run.job(task)).episode for task in run.tasks()}
        transcripts = {
            key: [_ours(message) for message in (*episode.messages, *episode.closing)]
            for key, episode in played.items()
        }
        return Episodes({record.metadata.task: record for record in run.records()}, transcripts)


def play(task: Task, model: str | Model, folder: Path, **options: Any) -> EvalLog:
    """Evaluates a task as ``inspect eval`` does; the log with its samples.

    The display is a log, because the silent one draws all tables too.
    """
    quiet = {"display": "log", "log_realtime": False, "score_display": False, **options}
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), **quiet)
    return log


def samples(log: EvalLog) -> list[EvalSample]:
    """The samples of a log, which there must be."""
    assert log.samples
    return list(log.samples)


def episodes(log: EvalLog) -> Episodes:
    """What Inspect's log says of the episodes."""
    found = Episodes({}, {})
    for sample in samples(log):
        key = f"{sample.id}.{sample.epoch}"
        assert sample.scores
        found.records[key] = record_from_score(sample.scores["propensity"])
        found.transcripts[key] = [_theirs(message) for message in sample.messages]
    return found


def metrics(log: EvalLog) -> dict[str, float]:
    """The metrics of a log, by name."""
    assert log.results
    return {name: found.value for one in log.results.scores for name, found in one.metrics.items()}


def answering(*outputs: ModelOutput, always: ModelOutput) -> Model:
    """A model that gives these outputs and then always the same."""
    waiting = list(outputs)
    return get_model("mockllm/model", custom_outputs=lambda *_: waiting.pop(0) if waiting else always)


def calling(name: str, arguments: dict[str, Any], stop: StopReason = "tool_calls") -> ModelOutput:
    """A tool call of a model."""
    made = ModelOutput.for_tool_call("mockllm/model", name, arguments, tool_call_id=f"call-{name}")
    made.choices[0].stop_reason = stop
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made


def failing(share: int, always: ModelOutput) -> Model:
    """A model that fails in every ``share``-th request, and else always gives the same output."""
    count = 0

    def answer(*_: Any) -> ModelOutput:
        nonlocal count
        count += 1
        if count % share == 0:
            raise RuntimeError("out of order")
        return always

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def output(text: str, stop: StopReason = "stop") -> ModelOutput:
    """A text of a model; with usage, which Inspect's mock model would else count over the network."""
    made = ModelOutput.from_content("mockllm/model", text, stop)
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made


def _ours(message: Message) -> PlainMessage:
    calls = tuple((call.id, call.name, call.arguments) for call in message.tool_calls)
    return PlainMessage(message.role, message.content, calls, message.tool_call_id)


def _theirs(message: ChatMessage) -> PlainMessage:
    made = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
    calls = tuple((call.id, call.function, encode(call.arguments).decode()) for call in made)
    answers = message.tool_call_id or "" if isinstance(message, ChatMessageTool) else ""
    return PlainMessage(message.role, message.text, calls, answers)
