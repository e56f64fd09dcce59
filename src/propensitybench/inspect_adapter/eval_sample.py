"""An episode as a sample of an Inspect AI log: its conversation, and what happened in it as events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec
from inspect_ai.event import (
    ErrorEvent,
    Event,
    InfoEvent,
    ModelEvent,
    ScoreEvent,
    SpanBeginEvent,
    SpanEndEvent,
    ToolEvent,
)
from inspect_ai.log import EvalError, EvalSample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, GenerateConfig, ModelOutput
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolInfo

from propensitybench.chat import Reply
from propensitybench.clients.inspect_models import as_tool
from propensitybench.digests import digest
from propensitybench.episode import EpisodeRecord, Outcome, replay
from propensitybench.episode.events import Event as Happened
from propensitybench.episode.machine import Turn
from propensitybench.episode.tools import Toolbox
from propensitybench.inspect_adapter.eval_messages import messages_of, output_of, silence, usage_of
from propensitybench.inspect_adapter.samples import (
    GAVE_IN,
    SCORER,
    level_name,
    pressure_source,
    pressure_told,
    sample_id,
    sample_metadata,
    score_of,
)
from propensitybench.inspect_adapter.solver import RECORD
from propensitybench.scenarios import PressureMessage, Scenario
from propensitybench.store import Manifest, NumberedTask, RunFile


class ExportContext:
    """What the episodes of one run and naming share: scenarios and tools, each made once.

    Args:
        run: an open run file.
        config: how the model was asked.
    """

    def __init__(self, run: RunFile, config: GenerateConfig) -> None:
        self.run = run
        self.config = config
        self.begun = datetime.fromisoformat(run.manifest.created)
        self.identity = run_identity(run.manifest)
        self._scenarios: dict[str, Scenario] = {}
        self._tools: dict[tuple[str, str], dict[str, ToolInfo]] = {}

    def scenario(self, name: str) -> Scenario:
        """A scenario of the run."""
        if name not in self._scenarios:
            self._scenarios[name] = self.run.scenario(name)
        return self._scenarios[name]

    def tools(self, task: NumberedTask) -> dict[str, ToolInfo]:
        """The tools of a task, by name, in the order in which the agent sees them."""
        key = task.task.scenario, task.task.naming
        if key not in self._tools:
            specs = Toolbox(self.scenario(task.task.scenario), task.task.naming).specs
            self._tools[key] = {spec.name: as_tool(spec) for spec in specs}
        return self._tools[key]


def run_identity(manifest: Manifest) -> str:
    """16 hexadecimal digits that no other run has."""
    return digest(msgspec.json.encode(manifest))


def sample_of(cast: ExportContext, task: NumberedTask, record: EpisodeRecord) -> EvalSample:
    """The sample of an episode.

    The input of each model call stands once, in the pool of messages that Inspect keeps beside the
    events, and not again in each later call: a sample grows with its turns and not with their square.

    Args:
        cast: of the run.
        task: which has ended.
        record: its outcome.
    """
    return _SampleBuilder(cast, task, record).sample()


@dataclass
class _SampleBuilder:
    """One episode while it is told; ``elapsed`` is how long the model has taken so far, in seconds."""

    cast: ExportContext
    task: NumberedTask
    record: EpisodeRecord
    elapsed: float = 0.0
    count: int = 0
    output: ModelOutput | None = None

    @cached_property
    def identity(self) -> str:
        return digest(self.cast.identity, self.task.task.key)

    @property
    def model(self) -> str:
        return self.cast.run.manifest.model

    def sample(self) -> EvalSample:
        run, manifest = self.cast.run, self.cast.run.manifest
        scenario = self.cast.scenario(self.task.task.scenario)
        episode = replay(run.job(self.task)).episode
        messages = messages_of(episode.messages, self.identity)
        events = list(self._events(messages, episode.turns, run.replies(self.task.number)))
        outcome, errored = self.record.stats, self.record.stats.outcome is Outcome.ERRORED
        metadata = sample_metadata(
            self.task.task, scenario, manifest.seed, manifest.protocol, manifest.data_digest
        )
        # Every part has been validated when it was made; to do so again would take a fifth of the time.
        return EvalSample.model_construct(
            id=sample_id(self.task.task),
            epoch=self.task.task.epoch,
            input=scenario.task,
            target="",
            messages=messages,
            output=self.output or ModelOutput(model=self.model),
            scores=None if errored else {SCORER: self.score},
            metadata=metadata,
            store={RECORD: msgspec.to_builtins(self.record)},
            events=events,
            events_data={"messages": messages, "calls": []},
            model_usage={self.model: usage_of(outcome.usage)},
            total_time=self.elapsed,
            working_time=self.elapsed,
            uuid=self.identity,
            error=self.error if errored else None,
            turn_count=outcome.turns,
        )

    @cached_property
    def pressure(self) -> tuple[PressureMessage, ...]:
        return self.cast.run.pressure(self.task.task.scenario, self.task.task.dimension)

    @cached_property
    def score(self) -> Score:
        return score_of(self.record)

    @cached_property
    def error(self) -> EvalError:
        return EvalError(message=self.record.error, traceback="", traceback_ansi="")

    def _about(self, span: str | None) -> dict[str, Any]:
        """What every event has; times count from the making of the run, whose journal holds none."""
        self.count += 1
        return {
            "uuid": f"{self.identity}-e{self.count}",
            "span_id": span,
            "timestamp": self.cast.begun + timedelta(seconds=self.elapsed),
            "working_start": self.elapsed,
        }

    def _events(
        self, messages: list[ChatMessage], turns: Sequence[Turn], replies: Sequence[Reply]
    ) -> Iterator[Event]:
        said = list(zip(turns, replies, strict=True))
        for level in range(self.record.stats.level + 1):
            span = f"{self.identity}-level-{level}"
            yield from self._begin_level(level, span)
            offered = dict(self.cast.tools(self.task))
            for turn, reply in said:
                if turn.level == level:
                    yield from self._turn(span, turn, reply, messages, list(offered.values()))
                    if turn.event is Happened.WITHDRAWN_TOOL_CALLED:
                        offered.pop(turn.tool, None)
            yield SpanEndEvent(**self._about(span), id=span)
        if self.record.stats.outcome is Outcome.ERRORED:
            yield ErrorEvent(**self._about(None), error=self.error)
        else:
            yield ScoreEvent(**self._about(None), score=self.score, target="", scorer=SCORER)

    def _begin_level(self, level: int, span: str) -> Iterator[Event]:
        message = self.pressure[level - 1] if level else None
        name = level_name(level, message)
        yield SpanBeginEvent(**self._about(span), id=span, name=name, type="level")
        if message:
            told = pressure_told(level, self.task.task.dimension, message)
            yield InfoEvent(**self._about(span), source=pressure_source(level), data=told)

    def _turn(
        self,
        span: str,
        turn: Turn,
        reply: Reply,
        messages: list[ChatMessage],
        offered: list[ToolInfo],
    ) -> Iterator[Event]:
        about = self._about(span)
        silent = turn.event in (Happened.REPLY_EMPTY, Happened.REPLY_BLOCKED)
        message = silence(f"{about['uuid']}-silence") if silent else messages[turn.first]
        assert isinstance(message, ChatMessageAssistant)
        self.output = output_of(reply, message)
        self.elapsed += reply.latency_ms / 1000
        told: dict[str, Any] = {"level": turn.level, "turn": turn.turn, "event": turn.event.value}
        if reply.repairs:
            told["repairs"] = list(reply.repairs)
        yield ModelEvent(
            **about,
            metadata=told,
            model=self.model,
            input=[],
            input_refs=[(0, turn.first)],
            tools=offered,
            tool_choice="auto",
            config=self.cast.config,
            output=self.output,
            retries=reply.attempts - 1 or None,
            completed=self.cast.begun + timedelta(seconds=self.elapsed),
            working_time=reply.latency_ms / 1000,
        )
        if turn.event is Happened.MISALIGNED_CALLED:
            yield from self._gave_in(span, turn)
            return
        answers = messages[turn.first + 1 : turn.first + 1 + len(reply.tool_calls)]
        for call, answer in zip(message.tool_calls or (), answers, strict=False):
            yield self._tool_event(span, call, answer)

    def _tool_event(self, span: str, call: InspectCall, answer: ChatMessage) -> Event:
        assert isinstance(answer, ChatMessageTool)
        return ToolEvent(
            **self._about(span),
            id=call.id,
            function=call.function,
            arguments=call.arguments,
            result=answer.text,
            completed=self.cast.begun + timedelta(seconds=self.elapsed),
            message_id=answer.id,
        )

    def _gave_in(self, level: str, turn: Turn) -> Iterator[Event]:
        # In a span of its own: only spans stand in a viewer's outline.
        span = f"{level}-{turn.turn}"
        told = {"tool": turn.tool, "level": turn.level, "turn": turn.turn}
        yield SpanBeginEvent(**self._about(span), id=span, parent_id=level, name=GAVE_IN)
        yield InfoEvent(**self._about(span), source=GAVE_IN, data=told)
        yield SpanEndEvent(**self._about(span), id=span)
