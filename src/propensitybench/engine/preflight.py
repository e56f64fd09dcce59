"""Checks an endpoint before a run with three requests that contain everything a run sends."""

from collections.abc import Mapping
from typing import Final

from propensitybench.chat import BLOCKED, ConversationContext, Message, Reply, Request, ToolSpec
from propensitybench.clients import Client
from propensitybench.clients.adaptation import adapt_to
from propensitybench.clients.dialect import ChatDialect
from propensitybench.clients.failures import FailureKind
from propensitybench.episode.prompt import NO_REPLY, TURN_LIMIT_REACHED
from propensitybench.episode.tools import json_schema
from propensitybench.errors import BadInput, ModelError, RequestRefused, RunStopped

# An argument of every kind that a scenario's values can have.
_ARGUMENTS: Final = {
    "colour": "amber",
    "count": 3,
    "share": 0.5,
    "urgent": True,
    "nothing": None,
    "names": ["north", "south"],
    "mixed": ["north", 3],
    "pairs": [[1, 2], [3, 4]],
    "none_yet": [],
    "rows": [{"site": "north", "units": 3}, {"site": "south"}],
    "map": {"gate 4": {"open": True, "notes": []}},
    "blank": {},
}


def _tool(name: str, description: str, *arguments: str) -> ToolSpec:
    properties = {argument: json_schema(_ARGUMENTS[argument]) for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return ToolSpec(name, description, schema)


REPORT: Final = "report_colour"
_TOOLS: Final = (
    _tool(REPORT, "Reports a colour.", "colour"),
    _tool("list_colours", "Lists the colours."),
    # Longer than the 64 characters that most providers allow; the published data has such a name.
    _tool("file_the_colour_report_with_every_kind_of_argument_that_a_scenario_may_have",
          "Files a report. Not needed for this check.", *_ARGUMENTS),
)  # fmt: skip
_SYSTEM: Final = "You are a careful assistant."
_ASK: Final = (
    "This is a connection check. Call two tools in one reply: report_colour with the colour amber, and "
    "list_colours. Send nothing else."
)
_GO_ON: Final = "Thank you. The check goes on."
_END: Final = "Thank you. Reply with the word done."
_ANSWER: Final = '{"reported":true}'
_SKIP: Final = "; --no-preflight skips this check"
# One for each thing that can be adapted, and a few more.
_MAX_CHANGES: Final = 10
# Advice on rejected options, by the name in the provider's message.
_OPTIONS: Final = {
    "reasoning_effort": "set --reasoning-effort none, or leave it out",
    "temperature": "leave out --temperature; it is not dropped silently, since that would be another model",
    "top_p": "leave out --top-p; it is not dropped silently, since that would be another model",
    "max_tokens": "leave out --max-tokens, or set another",
    "max_completion_tokens": "leave out --max-tokens, or set another",
}


async def check_replicas(clients: Mapping[str, Client], *, adapt: bool = True) -> ChatDialect | None:
    """Checks every replica of a model, as `check_endpoint` does; requests are the same at each.

    Args:
        clients: of the replicas, one or more, by address.
        adapt: whether the form of the requests may change; it is adapted to the first replica.

    Raises:
        BadInput: a replica gives no reply, or does not support what a run needs; the text names it.
    """
    dialect: ChatDialect | None = None
    for number, (url, client) in enumerate(clients.items()):
        client.dialect = dialect or client.dialect
        try:
            dialect = await check_endpoint(client, adapt=adapt and number == 0)
        except BadInput as error:
            raise BadInput(f"{url}: {error}") from error
    return dialect


async def check_endpoint(client: Client, *, adapt: bool = True) -> ChatDialect | None:
    """Checks that the endpoint answers, calls tools, and accepts what a run sends.

    Rejected requests are tried in other forms; the client keeps the form that works.

    Args:
        client: of the endpoint.
        adapt: whether the form may change; a resumed run keeps its own.

    Returns:
        How to write the run's requests, with the changes in ``changes``; None if the client has only one
        form.

    Raises:
        BadInput: the endpoint gives no reply, or does not support what a run needs.
    """
    try:
        await _Check(client, adapt).run()
    except (RunStopped, ModelError) as error:
        raise BadInput(f"preflight: {error}{_advice(error)}") from error
    finally:
        await client.close()
    return client.dialect


def _advice(error: RunStopped | ModelError) -> str:
    """Nothing where the run would fail too: no server, a wrong key, an unknown model."""
    is_gone = isinstance(error, RunStopped) or str(error).startswith(FailureKind.NETWORK.value)
    return "" if is_gone else _SKIP


class _Check:
    def __init__(self, client: Client, adapt: bool) -> None:
        self._client = client
        self._adapt = adapt
        self._messages = [Message("system", _SYSTEM), Message("user", _ASK)]
        self._open()

    def _open(self) -> None:
        self._conversation = self._client.open(ConversationContext("preflight", 0))

    async def run(self) -> None:
        first = await self._ask("the tools and the first message")
        _check_call(self._client, first)
        self._add(
            Message("assistant", first.content, first.tool_calls, provider_fields=first.provider_fields),
            *(Message("tool", _ANSWER, tool_call_id=call.id) for call in first.tool_calls),
        )
        second = await self._ask("a tool's answer")
        if not second.content and not second.tool_calls and second.stop not in BLOCKED:
            raise BadInput(f"preflight: {self._client.model} gave an empty reply to a tool's answer{_SKIP}")
        self._add(
            Message("assistant", TURN_LIMIT_REACHED),
            Message("user", _GO_ON),
            Message("assistant", NO_REPLY),
            Message("user", _END),
        )
        await self._ask("messages after a tool's answer and after an empty reply")

    def _add(self, *messages: Message) -> None:
        self._messages += messages

    async def _ask(self, what: str) -> Reply:
        """The reply to the conversation so far, in a form that the endpoint accepts."""
        for _ in range(_MAX_CHANGES):
            try:
                return await self._conversation.reply(Request(self._messages, _TOOLS))
            except RequestRefused as error:
                if not self._change(str(error)):
                    raise BadInput(self._refusal(what, str(error))) from error
        raise BadInput(f"preflight: {self._client.model} refuses {what} in every form{_SKIP}")

    def _change(self, refusal: str) -> bool:
        if not self._adapt or not adapt_to(self._client, refusal):
            return False
        self._open()
        return True

    def _refusal(self, what: str, refusal: str) -> str:
        advice = next((f"; {text}" for name, text in _OPTIONS.items() if name in refusal), "")
        return f"preflight: {self._client.model} refuses {what}: {refusal}{advice}{_SKIP}"


def _check_call(client: Client, reply: Reply) -> None:
    if reply.stop in BLOCKED:
        raise BadInput(f"preflight: {client.model} would not answer a harmless request{_SKIP}")
    if not reply.tool_calls:
        text = " ".join(reply.content.split())[:120]
        raise BadInput(
            f"preflight: {client.model} was asked for a tool call and answered with text ({text!r}); "
            f"see whether tool calls are switched on at the endpoint (vLLM: --enable-auto-tool-choice){_SKIP}"
        )
    names = {tool.name for tool in _TOOLS}
    unknown = [call.name for call in reply.tool_calls if call.name not in names]
    if unknown:
        raise BadInput(f"preflight: {client.model} called {unknown[0]!r}, which does not exist{_SKIP}")
