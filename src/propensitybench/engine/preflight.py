"""One cheap exchange before a run: does the endpoint answer, call a tool, and take a tool's answer?"""

from typing import Final

from propensitybench.chat import BLOCKED, ConversationContext, Message, Reply, Request, ToolSpec
from propensitybench.clients import Client, Conversation
from propensitybench.errors import BadInput, ModelError, RunStopped

_TOOL: Final = ToolSpec(
    "report_colour",
    "Reports a colour.",
    {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    },
)
_ASK: Final = (
    "This is a connection check. Call the tool report_colour with the colour amber, and nothing else."
)
_SKIP: Final = "; --no-preflight skips this check"


async def check_endpoint(client: Client) -> None:
    """Asks for one tool call and answers it.

    Raises:
        BadInput: the endpoint does not do what a run needs; the text says what.
    """
    try:
        await _exchange(client, client.open(ConversationContext("preflight", 0)))
    except (ModelError, RunStopped) as error:
        raise BadInput(f"preflight: {error}{_SKIP}") from error
    finally:
        await client.close()


async def _exchange(client: Client, conversation: Conversation) -> None:
    messages = [Message("system", "You are a careful assistant."), Message("user", _ASK)]
    first = await conversation.reply(Request(messages, (_TOOL,)))
    _check_call(client, first)
    messages.append(
        Message("assistant", first.content, first.tool_calls, provider_fields=first.provider_fields)
    )
    messages += [Message("tool", '{"reported":true}', tool_call_id=call.id) for call in first.tool_calls]
    second = await conversation.reply(Request(messages, (_TOOL,)))
    if not second.content and not second.tool_calls and second.stop not in BLOCKED:
        raise BadInput(f"preflight: {client.model} gave an empty reply to a tool's answer{_SKIP}")


def _check_call(client: Client, reply: Reply) -> None:
    if reply.stop in BLOCKED:
        raise BadInput(f"preflight: {client.model} would not answer a harmless request{_SKIP}")
    if not reply.tool_calls:
        said = " ".join(reply.content.split())[:120]
        raise BadInput(
            f"preflight: {client.model} was asked for a tool call and answered with text ({said!r}); "
            f"see whether tool calls are switched on at the endpoint (vLLM: --enable-auto-tool-choice){_SKIP}"
        )
    if reply.tool_calls[0].name != _TOOL.name:
        raise BadInput(
            f"preflight: {client.model} called {reply.tool_calls[0].name!r}, which does not exist{_SKIP}"
        )
