"""An episode as a sample of an Inspect AI log: its conversation and its events."""

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
)
from inspect_ai.log import EvalError, EvalSample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, GenerateConfig, ModelOutput
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolInfo

from propensitybench.chat import Reply
from propensitybench.digests import digest
from propensitybench.episode import EpisodeRecord, Outcome, replay
from propensitybench.episode.events import Event as Happened
from propensitybench.episode.machine import Turn
from propensitybench.episode.tools import Toolbox
from propensitybench.episode.transitions import UNUSABLE
from propensitybench.inspect_adapter.eval_messages import (
    messages_of,
    output_of,
    tool_event,
    unusable_reply,
    usage_of,
)
from propensitybench.inspect_adapter.model_output import as_tool
from propensitybench.inspect_adapter.question_scores import question_scores
from propensitybench.inspect_adapter.samples import (
    CLOSING_REPORT,
    GAVE_IN,
    SCORER,
    level_name,
    pressure_event,
    pressure_source,
    sample_id,
    sample_metadata,
    score_of,
)
from propensitybench.inspect_adapter.solver import RECORD
from propensitybench.pressure import Chain
from propensitybench.scenarios import Scenario
from propensitybench.store import Manifest, NumberedTask, RunFile


class ExportContext:
    """What the episodes of a run share: scenarios and tools, each built once, and what readers said of them.

    Args:
        run: an open run file.
        config: the sampling options.
    """

    def __init__(self, run: RunFile, config: GenerateConfig) -> None:
        self.run = run
        self.config = config
        self.questions = question_scores(run)
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
        """The tools of a task by name, in the order in which the agent sees them."""
        key = task.task.scenario, task.task.naming
        if key not in self._tools:
            ask = self.run.manifest.protocol.ask
            specs = Toolbox(self.scenario(task.task.scenario), task.task.naming, ask=ask).specs
            self._tools[key] = {spec.name: as_tool(spec) for spec in specs}
        return self._tools[key]


def run_identity(manifest: Manifest) -> str:
    """An id of the run: 16 hexadecimal digits."""
    return digest(msgspec.json.encode(manifest))


def sample_uuid(identity: str, task: str) -> str:
    """The id of a task's sample, from the id of its run and the task's key."""
    return digest(identity, task)


def sample_of(context: ExportContext, task: NumberedTask, record: EpisodeRecord) -> EvalSample:
    """The sample of an episode.

    Model events refer to the pool of messages that Inspect keeps beside the events, so a sample grows
    linearly with its turns.

    Args:
        context: of the run.
        task: one that has ended.
        record: how it ended.
    """
    return _SampleBuilder(context, task, record).sample()


@dataclass
class _SampleBuilder:
    """Builds the sample of one episode; ``elapsed`` is the model's time so far, in seconds."""

    context: ExportContext
    task: NumberedTask
    record: EpisodeRecord
    elapsed: float = 0.0
    count: int = 0
    output: ModelOutput | None = None

    @cached_property
    def identity(self) -> str:
        return sample_uuid(self.context.identity, self.task.task.key)

    @property
    def model(self) -> str:
        return self.context.run.manifest.model

    def sample(self) -> EvalSample:
        run, manifest = self.context.run, self.context.run.manifest
        scenario = self.context.scenario(self.task.task.scenario)
        episode = replay(run.job(self.task)).episode
        messages = messages_of([*episode.messages, *episode.closing], self.identity)
        replies = run.replies(self.task.number)
        events = list(self._events(messages, episode.turns, replies))
        outcome, errored = self.record.stats, self.record.stats.outcome is Outcome.ERRORED
        storyline = self.pressure.storyline
        metadata = sample_metadata(
            self.task.task, scenario, storyline, manifest.seed, manifest.protocol, manifest.data_digest
        )
        # The parts have been validated already; doing it again would add a quarter to the time.
        return EvalSample.model_construct(
            id=sample_id(self.task.task),
            epoch=self.task.task.epoch,
            input=episode.messages[1].content,
            target="",
            messages=messages,
            output=self.output or ModelOutput(model=self.model),
            scores=None if errored else self.scores,
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
    def pressure(self) -> Chain:
        return self.context.run.pressure(self.task.task.scenario, self.task.task.dimension)

    @cached_property
    def scores(self) -> dict[str, Score]:
        task = self.task.task.key
        read = {one.name: one.scores[task] for one in self.context.questions if task in one.scores}
        return {SCORER: score_of(self.record), **read}

    @cached_property
    def error(self) -> EvalError:
        return EvalError(message=self.record.error, traceback="", traceback_ansi="")

    def _about(self, span: str | None) -> dict[str, Any]:
        """The fields of every event. Times count from the run's creation: the journal has only durations."""
        self.count += 1
        return {
            "uuid": f"{self.identity}-e{self.count}",
            "span_id": span,
            "timestamp": self.context.begun + timedelta(seconds=self.elapsed),
            "working_start": self.elapsed,
        }

    def _events(
        self, messages: list[ChatMessage], turns: Sequence[Turn], replies: Sequence[Reply]
    ) -> Iterator[Event]:
        replied = list(zip(turns, replies, strict=False))
        for level in range(self.record.stats.level + 1):
            span = f"{self.identity}-level-{level}"
            yield from self._begin_level(level, span)
            offered = dict(self.context.tools(self.task))
            for turn, reply in replied:
                if turn.level == level:
                    yield from self._turn(span, turn, reply, messages, list(offered.values()))
                    if turn.event is Happened.WITHDRAWN_TOOL_CALLED:
                        offered.pop(turn.tool, None)
            yield SpanEndEvent(**self._about(span), id=span)
        if len(replies) > len(turns):
            yield from self._closing_report(replies[-1], messages, list(offered.values()))
        if self.record.stats.outcome is Outcome.ERRORED:
            yield ErrorEvent(**self._about(None), error=self.error)
        else:
            for name, score in self.scores.items():
                yield ScoreEvent(**self._about(None), score=score, target="", scorer=name)

    def _closing_report(
        self, reply: Reply, messages: list[ChatMessage], offered: list[ToolInfo]
    ) -> Iterator[Event]:
        span = f"{self.identity}-report"
        yield SpanBeginEvent(**self._about(span), id=span, name=CLOSING_REPORT, type=CLOSING_REPORT)
        message = messages[-1]
        assert isinstance(message, ChatMessageAssistant)
        about = {"event": Happened.REPORT_GIVEN.value}
        yield self._model_event(span, reply, message, len(messages) - 1, about, offered)
        yield SpanEndEvent(**self._about(span), id=span)

    def _begin_level(self, level: int, span: str) -> Iterator[Event]:
        number = level or self.task.task.message
        message = self.pressure.messages[number - 1] if number else None
        name = level_name(level, message)
        yield SpanBeginEvent(**self._about(span), id=span, name=name, type="level")
        if message:
            data = pressure_event(number, self.task.task.dimension, message)
            yield InfoEvent(**self._about(span), source=pressure_source(number), data=data)

    def _turn(
        self,
        span: str,
        turn: Turn,
        reply: Reply,
        messages: list[ChatMessage],
        offered: list[ToolInfo],
    ) -> Iterator[Event]:
        unusable = turn.event in UNUSABLE
        message = (
            unusable_reply(reply, f"{self.identity}-reply-{turn.first}") if unusable else messages[turn.first]
        )
        assert isinstance(message, ChatMessageAssistant)
        metadata = {"level": turn.level, "turn": turn.turn, "event": turn.event.value}
        yield self._model_event(span, reply, message, turn.first, metadata, offered)
        if turn.event is Happened.MISALIGNED_CALLED:
            yield from self._gave_in(span, turn)
            return
        if unusable:
            return
        answers = messages[turn.first + 1 : turn.first + 1 + len(reply.tool_calls)]
        for call, answer in zip(message.tool_calls or (), answers, strict=False):
            if isinstance(answer, ChatMessageTool):
                completed = self.context.begun + timedelta(seconds=self.elapsed)
                yield tool_event(call, answer, **self._about(span), completed=completed)

    def _model_event(
        self,
        span: str,
        reply: Reply,
        message: ChatMessageAssistant,
        seen: int,
        about: dict[str, Any],
        offered: list[ToolInfo],
    ) -> ModelEvent:
        """The event of a reply; ``seen`` is the number of messages before it, ``about`` its metadata."""
        begun = self._about(span)
        self.output = output_of(reply, message)
        self.elapsed += reply.latency_ms / 1000
        return ModelEvent(
            **begun,
            metadata={**about, "repairs": list(reply.repairs)} if reply.repairs else about,
            model=self.model,
            input=[],
            input_refs=[(0, seen)],
            tools=offered,
            tool_choice="auto",
            config=self.context.config,
            output=self.output,
            retries=reply.attempts - 1 or None,
            completed=self.context.begun + timedelta(seconds=self.elapsed),
            working_time=reply.latency_ms / 1000,
        )

    def _gave_in(self, level: str, turn: Turn) -> Iterator[Event]:
        # In a span of its own, because the viewer's outline shows only spans.
        span = f"{level}-{turn.turn}"
        data = {"tool": turn.tool, "level": turn.level, "turn": turn.turn}
        yield SpanBeginEvent(**self._about(span), id=span, parent_id=level, name=GAVE_IN)
        yield InfoEvent(**self._about(span), source=GAVE_IN, data=data)
        yield SpanEndEvent(**self._about(span), id=span)
