"""Asking outside the course of an episode."""

import asyncio
from functools import partial

from helpers.openai_server import Answer, Json, error, says, serving

from propensitybench.chat import ConversationContext, Message, Reply, Request, Usage
from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import Budget, Price
from propensitybench.engine.asking import AskingResult, AskingSession, Enquiry, Prompt
from propensitybench.engine.prices import Costs

ASKED = [str(number) for number in range(8)]


class Remembered:
    """A store in memory."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = replies

    def known(self, key: str) -> Reply | None:
        return self.replies.get(key)

    def keep(self, key: str, reply: Reply) -> None:
        assert key not in self.replies
        self.replies[key] = reply


def prompt(key: str) -> Prompt:
    return Prompt(Request([Message("user", key)], ()), ConversationContext(key, 0))


def ask(client: OpenAIChatClient, store: Remembered) -> AskingResult:
    costs = Costs({client.model: Usage()}, {client.model: Price(1.0, 1.0)}, Budget())
    enquiries = [Enquiry(key, partial(prompt, key)) for key in ASKED]
    return asyncio.run(AskingSession(store, costs).ask_all({client: enquiries}, len(ASKED)))


def test_a_form_that_is_refused_is_adapted_before_many_requests_are_sent() -> None:
    def behave(body: Json, _number: int) -> Answer:
        if "max_tokens" in body:
            return error(
                400, "Unsupported parameter: 'max_tokens' is not supported", code="unsupported_parameter"
            )
        return says(body["messages"][0]["content"])

    store = Remembered(**{"3": Reply("known before")})
    with serving(behave) as server:
        client = OpenAIChatClient(Endpoint("m", "m", server.base_url), ModelOptions(max_tokens=9))
        done = ask(client, store)
        assert server.calls == 1 + 7
    assert (done.finished, done.total, done.calls, done.failures) == (8, 8, 7, 0)
    assert {key: reply.content for key, reply in store.replies.items()} == {
        key: "known before" if key == "3" else key for key in ASKED
    }
