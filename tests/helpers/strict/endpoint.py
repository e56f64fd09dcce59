"""A behaviour of `helpers.openai_server` that refuses what a provider refuses, and dresses its replies::

    groq = strict("groq", simulated("never"))
    with serving(groq) as server:
        call("run", "--base-url", server.base_url, ...)
    assert groq.refused == []

Of Anthropic it has the form of the Messages API and no rules; a client gets `Server.root`, and the behaviour
sees chat completions all the same.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from helpers.openai_server import Answer, Behaviour
from helpers.strict.anthropic_wire import as_chat, as_events, as_message
from helpers.strict.refusals import Json, Violation, functions, violations
from helpers.strict.replies import dress, tool_use_failed

EVENTS: Final[Mapping[str, str]] = {"Content-Type": "text/event-stream"}


class Strict:
    """A behaviour behind a provider's rules.

    Attributes:
        refused: each refusal, as ``rule: message``.
        failed: each reply that Groq replaced by an error, because the model's call did not fit its schema.
    """

    def __init__(self, provider: str, behaviour: Behaviour) -> None:
        self.refused: list[str] = []
        self.failed: list[str] = []
        self._provider = provider
        self._behaviour = behaviour

    def __call__(self, request: Json, number: int) -> Answer:
        if self._provider == "anthropic":
            return self._of_anthropic(request, number)
        found = violations(self._provider, request)
        if found:
            self.refused += [f"{violation.rule}: {violation.message}" for violation in found]
            return refusal(found[0])
        answer = self._behaviour(in_full(request), number)
        if not answer.is_good:
            return answer
        completion = json.loads(answer.body)
        if self._provider == "groq" and (failure := tool_use_failed(completion, request)):
            self.failed.append(failure.message)
            return refusal(failure)
        dress(self._provider, completion, request)
        return answer._replace(body=json.dumps(completion).encode())

    def _of_anthropic(self, request: Json, number: int) -> Answer:
        answer = self._behaviour(in_full(as_chat(request)), number)
        if not answer.is_good:
            return answer
        message = as_message(json.loads(answer.body), request)
        if request.get("stream"):
            return answer._replace(body=as_events(message), headers=EVENTS)
        return answer._replace(body=json.dumps(message).encode())


def strict(provider: str, behaviour: Behaviour) -> Strict:
    """A behaviour behind a provider's rules; the names are those of `rules.PROVIDERS`."""
    return Strict(provider, behaviour)


def refusal(violation: Violation) -> Answer:
    """The HTTP answer that refuses a request."""
    return Answer(json.dumps(violation.body).encode(), violation.status)


def in_full(request: Json) -> dict[str, Any]:
    """A request with what may be left out of it, as behaviours expect it."""
    body: dict[str, Any] = json.loads(json.dumps(request))
    for _, function in functions(body):
        function.setdefault("description", "")
        function["parameters"] = {"properties": {}, "required": [], **(function.get("parameters") or {})}
    return body
