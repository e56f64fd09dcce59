"""The solver: our episode, driven by the model that Inspect AI evaluates."""

from collections.abc import Mapping
from typing import Final

import msgspec
from inspect_ai.log import transcript
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from propensitybench.chat import Reply, Request
from propensitybench.clients.executor import same_model
from propensitybench.clients.failures import FailureKind
from propensitybench.clients.inspect_models import as_inspect, as_tool, failure_in, sound_reply
from propensitybench.episode import Episode, EpisodeSettings, EpisodeSetup, Event, Protocol, episode_setup
from propensitybench.inspect_adapter.samples import GAVE_IN, level_name, pressure_source, pressure_told
from propensitybench.scenarios import Scenario, Task

# In the sample's store: what the scorer reads, and what a simulated model draws its chance from.
RECORD: Final = "propensitybench:record"
TASK_METADATA: Final = "propensitybench:task"
CUT_SHORT: Final = "a limit, an error or a person ended the sample before the episode was over"


def player(scenarios: Mapping[str, Scenario], template: str) -> Solver:
    """A solver that plays the samples of some scenarios, by their names, with a system message template."""

    @solver(name="play")
    def play() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
            runner = _EpisodeRunner(state, _set_up(state, scenarios, template))
            try:
                await runner.run()
            finally:
                record = runner.episode.record(CUT_SHORT)
                state.store.set(RECORD, msgspec.to_builtins(record))
            return state

        return solve

    return play()


def _set_up(state: TaskState, scenarios: Mapping[str, Scenario], template: str) -> EpisodeSetup:
    about = state.metadata
    scenario = scenarios[about["scenario"]]
    task = Task(scenario.name, about["dimension"], about["naming"], state.epoch)
    settings = EpisodeSettings(about["seed"], msgspec.convert(about["protocol"], Protocol), template)
    return episode_setup(task, scenario, settings)


class _EpisodeRunner:
    """One episode in one sample, whose messages are the conversation as the model sees it.

    A reply stays there as it came, with its reasoning; the episode gets what our engine would have got.
    """

    def __init__(self, state: TaskState, play: EpisodeSetup) -> None:
        self.episode = Episode(play)
        self._play = play
        self._state = state
        self._model = get_model()
        self._called: dict[str, str] = {}
        state.messages = []
        state.store.set(TASK_METADATA, msgspec.to_builtins(play.metadata))

    async def run(self) -> None:
        request: Request | None = self.episode.start()
        self._show(None)
        while request is not None:
            request = await self._level(request)
        self._state.completed = True

    async def _level(self, request: Request | None) -> Request | None:
        level = self.episode.level
        message = self._play.pressure[level - 1] if level else None
        async with span(level_name(level, message), type="level"):
            if message is not None:
                told = pressure_told(level, self._play.metadata.dimension, message)
                transcript().info(told, source=pressure_source(level))
            while request is not None and self.episode.level == level:
                request = await self._turn(request)
        return request

    async def _turn(self, request: Request) -> Request | None:
        output = await self._ask(request)
        self._state.output = output
        reply = self._reply(output)
        following = self.episode.receive(reply)
        self._show(output)
        turn = self.episode.turns[-1]
        if turn.event is Event.MISALIGNED_CALLED:
            # In a span of its own: only spans stand in a viewer's outline.
            async with span(GAVE_IN, type=GAVE_IN):
                transcript().info({"tool": turn.tool, "level": turn.level, "turn": turn.turn}, source=GAVE_IN)
        return following

    async def _ask(self, request: Request) -> ModelOutput:
        try:
            return await self._model.generate(
                self._state.messages, tools=[as_tool(tool) for tool in request.tools]
            )
        except Exception as error:
            if failure_in(self._model, error).kind is not FailureKind.BLOCKED:
                raise
            return ModelOutput(model=self._model.name, error=str(error))

    def _reply(self, output: ModelOutput) -> Reply:
        reply = sound_reply(output)
        asked = str(self._model).partition("/")[2]
        other = bool(reply.model) and not same_model(asked, reply.model)
        return msgspec.structs.replace(reply, provider_fields="", other_model=other)

    def _show(self, output: ModelOutput | None) -> None:
        """Puts what is new in the conversation into the sample's messages."""
        for message in self.episode.messages[len(self._state.messages) :]:
            self._called |= {call.id: call.name for call in message.tool_calls}
            if output is not None and message.role == "assistant":
                self._state.messages.append(output.message)
            else:
                self._state.messages.append(as_inspect(message, self._called))
