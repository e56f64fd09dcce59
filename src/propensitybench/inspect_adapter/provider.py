"""Simulated agents as Inspect AI models: ``--model simulated/o3-like``, without key or network."""

from typing import Any, Final

import msgspec
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
)
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import store

from propensitybench.chat import Message, Reply, Request, ToolCall, ToolSpec
from propensitybench.errors import BadInput
from propensitybench.inspect_adapter.samples import as_shown
from propensitybench.inspect_adapter.solver import TASK_METADATA
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import profile
from propensitybench.simulated.agent import SimulatedAgent

# What an agent replies outside our episodes; the malformed one replies the other.
OUTSIDE: Final = "NO"
UNREADABLE: Final = '{"thoughts": '


class SimulatedModel(ModelAPI):
    """A simulated agent as an Inspect model.

    In one of our episodes it gets the same request as from our engine, and the same task metadata, from the
    sample's store; so it gives the same replies. Where there is no such metadata (other people's tasks)
    it calls no tool and answers NO, or writes malformed text if that is its profile.

    Raises:
        PrerequisiteError: there is no such profile.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own default
        **model_args: Any,  # noqa: ARG002 - part of the interface
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        try:
            self._profile = profile(model_name)
        except BadInput as error:
            raise as_shown(error) from error

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - the interface's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,  # noqa: ARG002
        config: GenerateConfig,  # noqa: ARG002
    ) -> ModelOutput:
        """The reply to a conversation."""
        metadata = store().get(TASK_METADATA)
        if metadata is None:
            return self._output(Reply(UNREADABLE if self._profile.behaviour == "malformed" else OUTSIDE))
        agent = SimulatedAgent(self._profile, msgspec.convert(metadata, TaskMetadata))
        request = Request([_message(one) for one in input], tuple(_spec(tool) for tool in tools))
        return self._output(agent.answer(request))

    def _output(self, reply: Reply) -> ModelOutput:
        calls = [
            InspectToolCall(id=call.id, function=call.name, arguments=msgspec.json.decode(call.arguments))
            for call in reply.tool_calls
        ]
        message = ChatMessageAssistant(
            content=reply.content, tool_calls=calls or None, model=self.model_name, source="generate"
        )
        stop = "tool_calls" if calls else "stop"
        return ModelOutput(
            model=self.model_name, choices=[ChatCompletionChoice(message=message, stop_reason=stop)]
        )


def _message(message: ChatMessage) -> Message:
    if isinstance(message, ChatMessageAssistant):
        calls = tuple(
            ToolCall(call.id, call.function, msgspec.json.encode(call.arguments).decode())
            for call in message.tool_calls or ()
        )
        return Message("assistant", message.text, calls)
    call_id = message.tool_call_id or "" if isinstance(message, ChatMessageTool) else ""
    return Message(message.role, message.text, tool_call_id=call_id)


def _spec(tool: ToolInfo) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.parameters.model_dump(exclude_none=True))
