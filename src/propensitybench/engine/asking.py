"""Asks a model something outside the course of an episode."""

from collections.abc import Sequence

from propensitybench.chat import ConversationContext, Message, Reply, Request
from propensitybench.clients import Client, Conversation
from propensitybench.clients.adaptation import adapt_to
from propensitybench.engine.stop import StopCause, Stopped, StopSignal
from propensitybench.errors import RequestRefused, RunStopped


async def ask(
    client: Client, context: ConversationContext, messages: Sequence[Message], stop: StopSignal
) -> Reply:
    """The reply to a conversation. A client that the endpoint refuses adapts its requests if it can.

    Raises:
        ModelError: there is no reply.
        Stopped: no more requests are to be sent.
    """
    while True:
        try:
            return await send(client.open(context), Request(messages, ()), stop)
        except RequestRefused as error:
            if not adapt_to(client, str(error)):
                raise


async def send(conversation: Conversation, request: Request, stop: StopSignal) -> Reply:
    """The reply to a request; raises as `ask` does."""
    if stop.stop_requested:
        raise Stopped
    try:
        return await conversation.reply(request)
    except RunStopped as error:
        cause = StopCause.BAD_INPUT if error.bad_input else StopCause.PROVIDER
        stop.request_stop(cause, str(error))
        raise Stopped from error
