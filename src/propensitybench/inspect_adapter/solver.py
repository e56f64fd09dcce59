"""The solver: one of our episodes, played by the model that Inspect AI evaluates."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool, Model, ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError, span

from propensitybench.chat import BLOCKED, Message, Reply, Request
from propensitybench.clients.endpoint import same_model
from propensitybench.clients.failures import FailureKind
from propensitybench.clients.wire_tools import on_wire, wire_name, with_full_names, with_wire_names
from propensitybench.episode import (
    Episode,
    EpisodeSettings,
    EpisodeSetup,
    Event,
    Protocol,
    State,
    episode_setup,
)
from propensitybench.episode.transitions import UNUSABLE
from propensitybench.inspect_adapter.eval_messages import tool_event
from propensitybench.inspect_adapter.model_output import (
    as_inspect,
    as_tool,
    failure_in,
    relax_tools,
    sound_reply,
)
from propensitybench.inspect_adapter.samples import (
    CLOSING_REPORT,
    GAVE_IN,
    level_name,
    pressure_event,
    pressure_source,
)
from propensitybench.judging.probe_numbers import is_counted
from propensitybench.judging.probes import Probe, ProbeAnswer
from propensitybench.pressure import Chain
from propensitybench.scenarios import Scenario, Task

# Keys of the sample's store: what the scorer reads, and what a simulated model draws its randomness from.
RECORD: Final = "propensitybench:record"
TASK_METADATA: Final = "propensitybench:task"
ANSWERS: Final = "propensitybench:answers"
Pressure = Mapping[tuple[str, str], Chain]
CUT_SHORT: Final = "a limit, an error or a person ended the sample before the episode was over"


def player(scenarios: Mapping[str, Scenario], pressure: Pressure, template: str) -> Solver:
    """A solver that plays samples of these scenarios.

    Args:
        scenarios: by name.
        pressure: their messages, by scenario and dimension.
        template: of the system message.
    """

    @solver(name="play")
    def play() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            runner = _EpisodeRunner(state, _set_up(state, scenarios, pressure, template))
            error = CUT_SHORT
            try:
                await runner.run()
            except LimitExceededError:
                raise
            except Exception as raised:
                error = str(failure_in(runner.model, raised))
                raise
            finally:
                state.store.set(RECORD, msgspec.to_builtins(runner.episode.record(error)))
            return state

        return solve

    return play()


def asker(scenarios: Mapping[str, Scenario], pressure: Pressure, template: str, probe: Probe) -> Solver:
    """A solver that puts every wording of a probe where an episode begins; arguments as of `player`.

    Nothing of the episode is played. The messages of the sample are those of the last wording.
    """

    @solver(name="ask")
    def ask() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            runner = _EpisodeRunner(state, _set_up(state, scenarios, pressure, template))
            state.store.set(ANSWERS, [is_counted(one, probe) for one in await runner.ask(probe)])
            return state

        return solve

    return ask()


def _set_up(
    state: TaskState, scenarios: Mapping[str, Scenario], pressure: Pressure, template: str
) -> EpisodeSetup:
    about = state.metadata
    scenario = scenarios[about["scenario"]]
    task = Task(scenario.name, about["dimension"], about["naming"], state.epoch, about["message"])
    settings = EpisodeSettings(about["seed"], msgspec.convert(about["protocol"], Protocol), template)
    return episode_setup(task, scenario, settings, pressure[scenario.name, task.dimension])


class _EpisodeRunner:
    """One episode in one sample, whose messages are the conversation as the model sees it.

    A reply stays in the conversation as it came, with its reasoning. The episode gets the same reply as it
    would from our engine.
    """

    def __init__(self, state: TaskState, setup: EpisodeSetup) -> None:
        self.episode = Episode(setup)
        self.model: Model = get_model()
        relax_tools(self.model)
        self._setup = setup
        self._state = state
        self._called: dict[str, str] = {}
        state.messages = []
        state.store.set(TASK_METADATA, msgspec.to_builtins(setup.metadata))

    async def run(self) -> None:
        request: Request | None = self.episode.start()
        self._append_messages(None)
        while request is not None and self.episode.state is not State.REPORTING:
            request = await self._level(request)
        if request is not None:
            async with span(CLOSING_REPORT, type=CLOSING_REPORT):
                await self._report(request)
        self._state.completed = True

    async def ask(self, probe: Probe) -> list[ProbeAnswer]:
        """The answers to a probe before the first reply, one for each wording."""
        self.episode.start()
        tool = self._setup.metadata.misaligned_tool
        found = []
        for number in range(1, len(probe.wordings) + 1):
            request = self.episode.side_question(probe.message(number, tool))
            self._state.messages = []
            self._add(request.messages, 0)
            output = await self._generate(request)
            found.append(probe.read(number, tool, self._reply(output)))
            self._state.messages.append(output.message)
            self._state.output = output
        self._state.completed = True
        return found

    async def _report(self, request: Request) -> None:
        """Asks for the closing report; an error leaves the outcome as it is."""
        asked = self.episode.closing
        self._add(asked, 0)
        try:
            output = await self._generate(request)
            reply = self._reply(output)
        except LimitExceededError:
            raise
        except Exception as error:  # noqa: BLE001 - as in our engine
            transcript().info({"error": str(failure_in(self.model, error))}, source=CLOSING_REPORT)
            return
        self._state.output = output
        self.episode.receive(reply)
        if reply.stop in BLOCKED:
            self._add(self.episode.closing, len(asked))
        else:
            self._state.messages.append(output.message)

    async def _level(self, request: Request | None) -> Request | None:
        level = self.episode.level
        number = level or self._setup.metadata.message
        message = self._setup.pressure[number - 1] if number else None
        async with span(level_name(level, message), type="level"):
            if message is not None:
                event = pressure_event(number, self._setup.metadata.dimension, message)
                transcript().info(event, source=pressure_source(number))
            while request is not None and self.episode.level == level and not self.episode.decided:
                request = await self._turn(request)
        return request

    async def _turn(self, request: Request) -> Request | None:
        output = await self._generate(request)
        self._state.output = output
        following = self.episode.receive(self._reply(output))
        new = self._append_messages(output)
        turn = self.episode.turns[-1]
        if turn.event is Event.MISALIGNED_CALLED:
            # In a span of its own, because the viewer's outline shows only spans.
            async with span(GAVE_IN, type=GAVE_IN):
                transcript().info({"tool": turn.tool, "level": turn.level, "turn": turn.turn}, source=GAVE_IN)
        _record_tool_events(new)
        return following

    async def _generate(self, request: Request) -> ModelOutput:
        try:
            return await self.model.generate(
                self._state.messages, tools=[as_tool(on_wire(tool)) for tool in request.tools]
            )
        except Exception as error:
            if failure_in(self.model, error).kind is not FailureKind.BLOCKED:
                raise
            return ModelOutput.from_content(
                self.model.name, "", stop_reason="content_filter", error=str(error)
            )

    def _reply(self, output: ModelOutput) -> Reply:
        reply = with_full_names(sound_reply(output), self._setup.tools.specs)
        asked = str(self.model).partition("/")[2]
        other = bool(reply.model) and not same_model(asked, reply.model)
        return msgspec.structs.replace(reply, other_model=other)

    def _append_messages(self, output: ModelOutput | None) -> list[ChatMessage]:
        """Adds the episode's new messages to the sample; the added ones.

        The reply itself stands as the model gave it, unless the episode put a placeholder in its place.
        """
        return self._add(self.episode.messages, len(self._state.messages), output)

    def _add(
        self, messages: Sequence[Message], start: int, output: ModelOutput | None = None
    ) -> list[ChatMessage]:
        before = len(self._state.messages)
        reply_at = self.episode.turns[-1].first if output is not None else None
        for index, message in enumerate(messages[start:], start):
            self._called |= {call.id: wire_name(call.name) for call in message.tool_calls}
            if output is not None and index == reply_at and self.episode.turns[-1].event not in UNUSABLE:
                self._state.messages.append(output.message)
            else:
                self._state.messages.append(as_inspect(with_wire_names(message), self._called))
        return self._state.messages[before:]


def _record_tool_events(messages: list[ChatMessage]) -> None:
    """Records the answered tool calls of a turn: a viewer shows a call only where there is an event."""
    calls = {
        call.id: call
        for message in messages
        if isinstance(message, ChatMessageAssistant)
        for call in message.tool_calls or ()
    }
    for message in messages:
        if isinstance(message, ChatMessageTool) and message.tool_call_id in calls:
            transcript()._event(tool_event(calls[message.tool_call_id], message))
