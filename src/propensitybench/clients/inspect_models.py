"""Models of any provider that Inspect AI knows, through its model layer (extra ``inspect``).

Limits, retries and the breaker are ours, as for every client; Inspect's own retries are switched off.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from inspect_ai.log._transcript import Transcript, init_transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall as InspectToolCall
from inspect_ai.tool import ToolInfo
from tenacity import RetryError

from propensitybench.chat import (
    BLOCKED,
    ConversationContext,
    Message,
    Reply,
    Request,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
)
from propensitybench.clients.executor import RequestExecutor
from propensitybench.clients.failures import Failure, FailureKind, failure_of
from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.clients.wire_tools import on_wire, wire_name, with_wire_names
from propensitybench.errors import BadInput

_STOPS: Final = {
    "stop": StopReason.STOP,
    "tool_calls": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.CONTENT_FILTER,
    "unknown": StopReason.STOP,
}


class InspectClient:
    """Asks a model through Inspect AI.

    Args:
        model: as Inspect writes it, e.g. ``anthropic/claude-x``.
        options: what decides its replies; a base URL is Inspect's own affair.
        transport: how requests are sent; keys are Inspect's own affair.

    Raises:
        BadInput: Inspect cannot make the model; its text says what is missing.
    """

    def __init__(
        self, model: str, options: ModelOptions = ModelOptions(), transport: Transport = Transport()
    ) -> None:
        self.model = model
        self._options = options
        self._transport = transport
        self._executor = RequestExecutor(model, model.partition("/")[2], 0, transport)
        self._made: Model | None = None
        self._make()

    def _make(self) -> Model:
        """The model; made anew after `close`, because it belongs to an event loop."""
        if self._made is None:
            options, way = self._options, self._transport
            config = GenerateConfig(
                temperature=options.temperature,
                top_p=options.top_p,
                max_tokens=options.max_tokens,
                reasoning_effort=options.reasoning_effort,
                extra_body=options.extra_body or None,
                max_retries=0,
                timeout=round(way.timeout),
                max_connections=way.concurrency,
                cache_prompt="auto",
                parallel_tool_calls=None,
            )
            try:
                self._made = get_model(self.model, config=config, memoize=False)
            except Exception as error:
                # Inspect writes for a terminal that understands Rich's markup.
                reason = " ".join(re.sub(r"\[/?\w+\]", "", str(error)).split())
                raise BadInput(f"--model {self.model}: {reason}") from error
        return self._made

    def open(self, context: ConversationContext) -> "_InspectConversation":  # noqa: ARG002
        """Begins a conversation."""
        # Outside an evaluation Inspect keeps every call in the transcript of the running task.
        init_transcript(Transcript())
        return _InspectConversation(self)

    def stop_requests(self) -> None:
        """Sends nothing more; see `Stoppable`."""
        self._executor.stop_requests()

    async def close(self) -> None:
        """Closes the connections."""
        self._executor.forget()
        if self._made is not None:
            await self._made.api.aclose()
            self._made = None

    async def ask(self, messages: list[ChatMessage], tools: list[ToolInfo], tokens: int) -> Reply:
        """Asks until there is a reply; see `RequestExecutor.ask`."""
        return await self._executor.ask(lambda _: self._try(messages, tools), tokens)

    async def _try(self, messages: list[ChatMessage], tools: list[ToolInfo]) -> Reply:
        model = self._make()
        try:
            output = await model.generate(messages, tools=tools)
        except Exception as error:
            failure = failure_in(model, error)
            if failure.kind is FailureKind.BLOCKED:
                return Reply(stop=StopReason.CONTENT_FILTER)
            raise failure from error
        return sound_reply(output)


class _InspectConversation:
    def __init__(self, client: InspectClient) -> None:
        self._client = client
        self._messages: list[ChatMessage] = []
        self._called: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._tokens = 0

    async def reply(self, request: Request) -> Reply:
        for message in request.messages[len(self._messages) :]:
            self._called |= {call.id: wire_name(call.name) for call in message.tool_calls}
            self._messages.append(as_inspect(with_wire_names(message), self._called))
        self._names |= {wire_name(tool.name): tool.name for tool in request.tools}
        tools = [as_tool(on_wire(tool)) for tool in request.tools]
        reply = await self._client.ask(list(self._messages), tools, self._tokens)
        self._tokens = reply.usage.input + reply.usage.output
        made = tuple(
            msgspec.structs.replace(call, name=self._names.get(call.name, call.name))
            for call in reply.tool_calls
        )
        return msgspec.structs.replace(reply, tool_calls=made)


def as_inspect(message: Message, called: Mapping[str, str]) -> ChatMessage:
    """A message of ours as one of Inspect's; a reply that came through Inspect, as it came.

    Args:
        message: to be told to a model.
        called: the tool of each call so far, by the call's id; some providers ask for it again.
    """
    if message.provider_fields:
        return ChatMessageAssistant.model_validate_json(message.provider_fields)
    if message.role == "system":
        return ChatMessageSystem(content=message.content)
    if message.role == "user":
        return ChatMessageUser(content=message.content)
    if message.role == "tool":
        call = message.tool_call_id
        return ChatMessageTool(content=message.content, tool_call_id=call, function=called.get(call))
    calls = [
        InspectToolCall(id=call.id, function=call.name, arguments=_object(call.arguments))
        for call in message.tool_calls
    ]
    return ChatMessageAssistant(content=message.content, tool_calls=calls or None)


def as_tool(tool: ToolSpec) -> ToolInfo:
    """A tool as Inspect describes it."""
    parameters = {**tool.parameters, "additionalProperties": False}
    return ToolInfo.model_validate(
        {"name": tool.name, "description": tool.description, "parameters": parameters}
    )


def reply_of(output: ModelOutput) -> Reply:
    """The reply in a model's output, with the message itself kept to be sent back."""
    usage = output.usage
    counted = Usage()
    if usage is not None:
        read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
        counted = Usage(
            usage.input_tokens + read + written, usage.output_tokens, read, usage.reasoning_tokens or 0
        )
    if not output.choices:
        return Reply(stop=StopReason.CONTENT_FILTER, usage=counted, model=output.model)
    message = output.choices[0].message
    calls = tuple(
        # What could not be parsed must not look like a sound call.
        ToolCall(call.id, call.function, call.parse_error or msgspec.json.encode(call.arguments).decode())
        for call in message.tool_calls or ()
    )
    return Reply(
        content=message.text,
        tool_calls=calls,
        stop=StopReason.TOOL_CALLS if calls else _STOPS[output.choices[0].stop_reason],
        usage=counted,
        model=output.model,
        provider_fields=message.model_dump_json(exclude_none=True),
    )


def sound_reply(output: ModelOutput) -> Reply:
    """The reply in an output; what comes with a refusal is left out of it.

    Raises:
        Failure: the output holds an error in the place of a reply.
    """
    reply = reply_of(output)
    if reply.stop in BLOCKED:
        return msgspec.structs.replace(reply, content="", tool_calls=(), provider_fields="")
    if output.choices and output.choices[0].stop_reason == "model_length" and not reply.usage.output:
        # Inspect puts the provider's words on too long a context in the place of a reply.
        raise Failure(FailureKind.REFUSED, output.error or output.completion)
    if output.error:
        raise Failure(FailureKind.SERVER, output.error)
    return reply


def failure_in(model: Model, raised: Exception) -> Failure:
    """What an exception of a model means: by its HTTP answer where it has one, else by Inspect's verdict."""
    # Behind the one that says that there will be no further try stands the provider's own.
    last = raised.last_attempt.exception() if isinstance(raised, RetryError) else None
    error = last or raised
    text = " ".join(str(error).split()) or type(error).__name__
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        response = getattr(error, "response", None)
        headers: Any = getattr(response, "headers", None) or {}
        return failure_of(status, headers, text.encode(), datetime.now(UTC))
    if isinstance(error, TimeoutError):
        return Failure(FailureKind.TIMEOUT, text)
    if isinstance(error, Exception) and model.api.is_auth_failure(error):
        return Failure(FailureKind.AUTH, text)
    if isinstance(error, Exception) and bool(model.api.should_retry(error)):
        return Failure(FailureKind.SERVER, text)
    return Failure(FailureKind.REFUSED, text)


def _object(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
