"""The clients that need no wire."""

import asyncio

import pytest

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients import Client, ScriptedClient, calls, says
from propensitybench.errors import ModelError

REQUEST = Request([], ())


def ask(client: Client, times: int, given: int = 0) -> list[Reply]:
    conversation = client.open(ConversationContext("a task", 0, given))

    async def talk() -> list[Reply]:
        return [await conversation.reply(REQUEST) for _ in range(times)]

    return asyncio.run(talk())


def test_a_script_is_played_in_order_and_its_end_repeated() -> None:
    script = [calls("look", at="this"), says("done", done=True)]
    client = ScriptedClient(script)
    assert ask(client, 3) == [script[0], script[1], script[1]]
    assert ask(client, 1) == [script[0]]
    assert ask(client, 1, given=1) == [script[1]]


def test_a_script_may_depend_on_the_conversation() -> None:
    client = ScriptedClient(lambda context: [Reply(context.id)])
    assert ask(client, 1) == [Reply("a task")]


def test_an_empty_script_is_an_error() -> None:
    with pytest.raises(ModelError, match="script is empty"):
        ask(ScriptedClient([]), 1)


def test_a_client_of_one_method_answers_every_request_with_its_context() -> None:
    class Mine(Client):
        model = "mine/first"

        async def reply(self, request: Request, context: ConversationContext) -> Reply:
            return Reply(f"{len(request.messages)} {context.id} {context.seed}")

    assert ask(Mine(), 2) == [Reply("0 a task 0")] * 2


def test_the_helpers_write_what_the_episode_reads() -> None:
    assert calls("look", at="this").tool_calls[0].arguments == '{"at":"this"}'
    assert '"interaction_status":"terminate"' in says("x", done=True).content
