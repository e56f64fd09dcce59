"""What else providers send: replies that they withheld, cut or broke off, and errors, each with its source.

`MixedIn` sends them among the replies of a strict endpoint. What a reply becomes is written here by hand,
not taken from the program's own table.
"""

import json
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, Final, Literal, NamedTuple

from helpers.openai_server import JSON_TYPE, Answer, Behaviour, Json, a_call, completion, error
from helpers.strict.anthropic_wire import as_events
from helpers.strict.endpoint import EVENTS, Strict

from propensitybench.digests import digest, seed_from
from propensitybench.engine.preflight import REPORT

Becomes = Literal["blocked", "truncated", "asked again", "errored"]


class OtherAnswer(NamedTuple):
    """One of a provider's answers."""

    answer: Answer
    becomes: Becomes
    source: str


_CUT_CALL: Final = {"content": None, "tool_calls": [a_call(arguments='{"at":')]}
# The shortest wait that the header can ask for, since a test waits for it.
_SOON: Final = {"retry-after-ms": "1"}


def _choice(**choice: Any) -> Answer:
    """A completion whose only choice is that, without a message unless it has one."""
    return completion({}, choices=[{"index": 0, **choice}])


def _body(status: int, body: Any) -> Answer:
    return Answer(json.dumps(body).encode(), status, {**JSON_TYPE, **_SOON})


def _google(status: int, name: str, message: str) -> Answer:
    return _body(status, [{"error": {"code": status, "message": message, "status": name}}])


def _message(stop: str, *content: Json) -> Answer:
    """A message of Anthropic's API."""
    usage = {"input_tokens": 100, "output_tokens": 10}
    return _body(
        200,
        {
            "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage,
        },
    )  # fmt: skip


def _anthropic(status: int, kind: str, message: str) -> Answer:
    return _body(status, {"type": "error", "error": {"type": kind, "message": message}})


_OPENAI: Final = "https://platform.openai.com/docs/api-reference/chat/object"
_OPENAI_ERRORS: Final = "https://platform.openai.com/docs/guides/error-codes"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/api/create-chat-completion"
_DEEPSEEK_ERRORS: Final = "https://api-docs.deepseek.com/quick_start/error_codes"
_GEMINI: Final = "https://ai.google.dev/api/generate-content#FinishReason"
_ANTHROPIC: Final = "https://docs.claude.com/en/api/handling-stop-reasons"
_GROQ_ERRORS: Final = "https://console.groq.com/docs/errors"

OTHER_ANSWERS: Final[Mapping[str, Mapping[str, OtherAnswer]]] = {
    "openai": {
        "content_filter": OtherAnswer(completion({"content": ""}, "content_filter"), "blocked", _OPENAI),
        "length, all of it reasoning": OtherAnswer(
            completion({"content": ""}, "length"), "truncated", _OPENAI
        ),
        "length, within a call": OtherAnswer(completion(_CUT_CALL, "length"), "truncated", _OPENAI),
        "invalid_prompt": OtherAnswer(
            error(
                400,
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                type="invalid_request_error",
                code="invalid_prompt",
            ),
            "blocked",
            "https://github.com/BeehiveInnovations/pal-mcp-server/issues/178",
        ),
        "429": OtherAnswer(
            error(429, "Rate limit reached", type="requests", code="rate_limit_exceeded", headers=_SOON),
            "asked again",
            _OPENAI_ERRORS,
        ),
        "500": OtherAnswer(
            error(500, "The server had an error", type="server_error"), "asked again", _OPENAI_ERRORS
        ),
    },
    "mistral": {
        "model_length": OtherAnswer(
            completion({"content": ""}, "model_length"),
            "truncated",
            "https://docs.rs/mistral-openapi-client (FinishReason)",
        ),
        "error": OtherAnswer(completion({"content": ""}, "error"), "asked again", "the same"),
        "429": OtherAnswer(
            _body(
                429,
                {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"},
            ),
            "asked again",
            "https://github.com/cline/cline/issues/9085",
        ),
        "capacity": OtherAnswer(
            _body(
                429,
                {
                    "object": "error",
                    "message": "Service tier capacity exceeded for this model.",
                    "type": "invalid_request_error",
                    "code": None,
                },
            ),
            "asked again",
            "https://github.com/continuedev/continue/issues/6185",
        ),
    },
    "gemini": {
        # without a message: https://github.com/ravendb/ravendb and others parse it so
        "content_filter: PROHIBITED_CONTENT": OtherAnswer(
            _choice(finish_reason="content_filter: PROHIBITED_CONTENT"),
            "blocked",
            "https://github.com/HKUDS/Vibe-Trading/pull/308 and clients that parse it",
        ),
        "SAFETY": OtherAnswer(completion({"content": None}, "SAFETY"), "blocked", _GEMINI),
        "RECITATION": OtherAnswer(completion({"content": None}, "RECITATION"), "blocked", _GEMINI),
        "content_filter: SPII": OtherAnswer(
            _choice(finish_reason="content_filter: SPII"), "blocked", _GEMINI
        ),
        "function_call_filter: MALFORMED_FUNCTION_CALL": OtherAnswer(
            _choice(
                finish_reason="function_call_filter: MALFORMED_FUNCTION_CALL", message={"role": "assistant"}
            ),
            "asked again",
            "https://github.com/google-gemini/gemini-cli/issues/12674; " + _GEMINI,
        ),
        "length": OtherAnswer(completion({"content": None}, "length"), "truncated", _GEMINI),
        "503": OtherAnswer(
            _google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            "asked again",
            "https://github.com/google-gemini/gemini-cli/issues/5191",
        ),
    },
    "groq": {
        "length": OtherAnswer(completion({"content": ""}, "length"), "truncated", _OPENAI),
        "tool_use_failed": OtherAnswer(
            error(400, "Failed to call a function.", type="invalid_request_error", code="tool_use_failed"),
            "asked again",
            _GROQ_ERRORS,
        ),
        "429": OtherAnswer(
            error(
                429,
                "Rate limit reached for model `m` in organization `o` service tier `on_demand` on requests "
                "per minute (RPM): Limit 30, Used 30, Requested 1. Please try again in 2s.",
                type="requests",
                code="rate_limit_exceeded",
                headers=_SOON,
            ),
            "asked again",
            "https://github.com/nminaya/grammar-nazi-bot/issues/900",
        ),
        "498": OtherAnswer(
            error(498, "Flex tier capacity exceeded", type="capacity_exceeded", headers=_SOON),
            "asked again",
            _GROQ_ERRORS,
        ),
    },
    "deepseek": {
        "insufficient_system_resource": OtherAnswer(
            completion({"content": ""}, "insufficient_system_resource"), "asked again", _DEEPSEEK
        ),
        "insufficient_system_resource, after half a text": OtherAnswer(
            completion({"content": "I will"}, "insufficient_system_resource"), "asked again", _DEEPSEEK
        ),
        "content_filter": OtherAnswer(completion({"content": ""}, "content_filter"), "blocked", _DEEPSEEK),
        "length": OtherAnswer(completion({"content": ""}, "length"), "truncated", _DEEPSEEK),
        "Content Exists Risk": OtherAnswer(
            error(400, "Content Exists Risk", type="invalid_request_error", code="invalid_request_error"),
            "errored",
            "https://github.com/666ghj/BettaFish/issues/108",
        ),
        "503": OtherAnswer(
            error(503, "Service is too busy.", type="service_unavailable_error", headers=_SOON),
            "asked again",
            _DEEPSEEK_ERRORS,
        ),
    },
    "anthropic": {
        "refusal": OtherAnswer(_message("refusal"), "blocked", _ANTHROPIC),
        "max_tokens": OtherAnswer(_message("max_tokens"), "truncated", _ANTHROPIC),
        # Inspect does not know it, and so cannot say that the reply was cut
        "model_context_window_exceeded": OtherAnswer(
            _message("model_context_window_exceeded"), "errored", _ANTHROPIC
        ),
        "content filtering": OtherAnswer(
            _anthropic(400, "invalid_request_error", "Output blocked by content filtering policy"),
            "blocked",
            "https://github.com/anthropics/claude-code/issues/25541",
        ),
    },
}


class MixedIn(Strict):
    """A strict endpoint in which each of the provider's other answers replaces a share of the replies.

    The preflight is left alone, and no request is answered otherwise more than 3 times in a row.

    Attributes:
        sent: how often each answer was sent.
    """

    def __init__(self, provider: str, behaviour: Behaviour, share: float, seed: int, only: str = "") -> None:
        super().__init__(provider, behaviour)
        self.sent: Counter[str] = Counter()
        others = OTHER_ANSWERS[provider]
        self._others = {only: others[only]} if only else others
        self._share = share
        self._seed = seed
        self._seen: Counter[str] = Counter()

    def __call__(self, request: Json, number: int) -> Answer:
        """One of the other answers, or that of the endpoint."""
        name = (
            None if REPORT in json.dumps(request.get("tools")) else self._drawn(digest(json.dumps(request)))
        )
        if name is None:
            return super().__call__(request, number)
        self.sent[name] += 1
        answer = self._others[name].answer
        if answer.status == 200 and request.get("stream"):  # only Anthropic's package asks for it
            return answer._replace(body=as_events(json.loads(answer.body)), headers=EVENTS)
        return answer

    def _drawn(self, request: str) -> str | None:
        self._seen[request] += 1
        place = int(Random(seed_from(self._seed, request, self._seen[request])).random() / self._share)
        names = list(self._others)
        name = names[place] if place < len(names) and self._seen[request] % 4 else None
        # An error has no count of attempts, so nothing else may have been tried before it.
        lost = name and self._others[name].becomes == "errored" and self._seen[request] > 1
        return None if lost else name

    def sent_that(self, become: Becomes) -> int:
        """How many answers of one kind were sent."""
        return sum(self.sent[name] for name, other in self._others.items() if other.becomes == become)
