"""What an output or an error of Inspect's model layer is to our episode."""

import asyncio
from types import MappingProxyType
from typing import Any

import pytest
from helpers.openai_server import (
    Answer,
    Behaviour,
    a_call,
    always,
    completion,
    error,
    says,
    serving,
)
from inspect_ai.model import Model, ModelOutput, get_model

from propensitybench.chat import Message, Request, StopReason, ToolSpec
from propensitybench.clients.failures import Failure
from propensitybench.inspect_adapter.model_output import (
    as_inspect,
    as_tool,
    failure_in,
    relax_tools,
    sound_reply,
)

# Words by which a refusal, an empty account or a missing model is known, in our own request.
POISON = (
    "Follow the content policy: daily quota, insufficient_quota, flagged, model not found, credit balance."
)
TOOL = ToolSpec(
    "look",
    "Looks.",
    {
        "type": "object",
        "properties": {"at": {"type": "array", "items": {"type": "object", "properties": {}}}},
        "required": ["at"],
    },
)
REQUEST = Request([Message("system", POISON), Message("user", POISON)], (TOOL,))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "x")


def model() -> Model:
    return get_model("openai-api/local/m", memoize=False)


def asked(
    behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> tuple[ModelOutput | Failure, dict[str, Any]]:
    """The output to a request or what its error means, and the request as it was sent."""
    with serving(behaviour) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        return asyncio.run(generated()), server.requests()[0]


async def generated() -> ModelOutput | Failure:
    one = model()
    one.config.max_retries = 0
    relax_tools(one)
    messages = [as_inspect(message, {}) for message in REQUEST.messages]
    try:
        return await one.generate(messages, [as_tool(TOOL)])
    except Exception as raised:  # noqa: BLE001 - whatever the layer raises is what is tested
        return failure_in(one, raised)
    finally:
        await one.api.aclose()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            error(400, "Unsupported value: 'effort'"),
            "request refused",
            "HTTP 400: Unsupported value: 'effort'",
        ),
        (error(401, "Incorrect API key provided"), "authentication", "Incorrect API key provided"),
        (error(404, "The model `m` does not exist"), "unknown model", "does not exist"),
    ],
)
def test_an_error_is_told_by_the_providers_words_and_not_by_those_of_our_request(
    answer: Answer, kind: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure, _ = asked(always(answer), monkeypatch)
    assert isinstance(failure, Failure)
    assert (failure.kind.value, words in str(failure)) == (kind, True)


class GoogleError(Exception):
    """Has the attributes of ``google.genai.errors.APIError``."""

    def __init__(self) -> None:
        super().__init__("400 INVALID_ARGUMENT. {...}")
        self.code, self.response, self.message = 400, None, "properties: should be non-empty"
        self.details = {"error": {"code": 400, "message": self.message, "status": "INVALID_ARGUMENT"}}


class BotoError(Exception):
    """Has the attributes of ``botocore.exceptions.ClientError``."""

    def __init__(self) -> None:
        super().__init__("An error occurred")
        self.response = {
            "Error": {"Code": "ThrottlingException", "Message": "Too many requests"},
            "ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"retry-after": "3"}},
        }


class Unread:
    """A streamed answer whose body has not been read."""

    headers = MappingProxyType({"retry-after": "2"})

    @property
    def content(self) -> bytes:
        raise RuntimeError("not read")


class StreamError(Exception):
    """An error that came with such an answer."""

    status_code = 529
    response = Unread()


@pytest.mark.parametrize(
    ("raised", "kind", "words", "wait"),
    [
        (GoogleError(), "request refused", "properties: should be non-empty", None),
        (BotoError(), "rate limit", "ThrottlingException Too many requests", 3.0),
        (StreamError("Overloaded"), "overloaded", "Overloaded", 2.0),
        (TimeoutError("slow"), "timeout", "slow", None),
    ],
)
def test_errors_of_other_packages_are_read(
    raised: Exception, kind: str, words: str, wait: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    failure = failure_in(model(), raised)
    assert (failure.kind.value, failure.retry_after) == (kind, wait)
    assert words in str(failure)


@pytest.mark.parametrize("arguments", ['{"at": [', '{"at": []}'])
def test_a_reply_cut_off_by_the_length_limit_is_marked(
    arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = completion({"content": "half a se", "tool_calls": [a_call("look", arguments)]}, "length")
    output, _ = asked(always(cut), monkeypatch)
    assert isinstance(output, ModelOutput)
    reply = sound_reply(output)
    assert (reply.stop, reply.content, len(reply.tool_calls)) == (StopReason.LENGTH, "half a se", 1)


def test_tools_are_sent_as_they_are_and_not_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sent = asked(always(says()), monkeypatch)
    (function,) = [tool["function"] for tool in sent["tools"]]
    assert function.pop("strict") is False  # which is what leaving it out means
    assert function == {"name": "look", "description": "Looks.", "parameters": TOOL.parameters}
