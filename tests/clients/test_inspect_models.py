"""Models through Inspect AI's own layer, against an endpoint on this machine."""

import asyncio
import gc
import json
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest
from helpers.openai_server import (
    REFUSALS,
    Answer,
    Behaviour,
    Server,
    a_call,
    always,
    calls,
    completion,
    error,
    one_by_one,
    says,
    serving,
    simulated,
)
from helpers.strict import strict

from propensitybench.chat import ConversationContext, Message, Reply, Request, StopReason, ToolSpec
from propensitybench.clients import Client
from propensitybench.clients.options import Transport
from propensitybench.engine import ExecutionOptions, RunSpec, client_for, create_run, run_tasks
from propensitybench.errors import BadInput, ModelError, RunStopped
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, verify

inspect_models = pytest.importorskip("propensitybench.clients.inspect_models")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
MODEL = "openai-api/local/m"
ONCE = Transport(concurrency=1, max_retries=0)
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
BEGINNING = (Message("system", POISON), Message("user", POISON))


@pytest.fixture(scope="module")
def _frozen() -> None:
    """Keeps the many objects that Inspect's import creates out of garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _keys(_frozen: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOCAL_API_KEY", "x")
    monkeypatch.setenv("OTHER_API_KEY", "x")
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def ask(
    behaviour: Behaviour, *messages: Message, model: str = MODEL, monkeypatch: pytest.MonkeyPatch
) -> tuple[Reply, Server]:
    """The reply to one request, and the server that gave it."""
    with serving(behaviour) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        client = client_for(model, transport=ONCE)
        return asyncio.run(_ask(client, Request(list(messages or BEGINNING), (TOOL,)))), server


async def _ask(client: Client, request: Request) -> Reply:
    try:
        return await client.open(ConversationContext("c", 1)).reply(request)
    finally:
        await client.close()


@pytest.mark.slow
def test_the_same_scenarios_end_the_same_as_asked_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.run"
    with serving(simulated("at-level-1")) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        create_run(RunSpec(MODEL, selection=Selection(limit=1)), path)
        with RunFile.open(path, write=True) as run:
            run_tasks(run, client_for(MODEL), ExecutionOptions(preflight=False))
    scores = StoredRun(path).score()
    for naming in scores.naming.values():
        assert (naming.propensity, naming.resilience) == (1.0, 1.0)
    with RunFile.open(path) as run:
        assert list(verify(run)) == []
        reply = run.replies(0)[0]
    assert (reply.model, reply.other_model, reply.attempts) == ("m", False, 1)
    assert reply.usage.input > 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            error(400, "Unsupported value: 'effort'"),
            "request refused .*HTTP 400: Unsupported value: 'effort'",
        ),
        (error(422, "Input should be a string"), "request refused .*HTTP 422: Input should be a string"),
        (error(429, "Slow down, please"), "rate limit .*HTTP 429: Slow down, please"),
        (error(500, "The engine broke"), "server error .*HTTP 500: The engine broke"),
        (error(503, "Too busy now"), "overloaded .*HTTP 503: Too busy now"),
        (Answer(b"<html><h1>502 Bad Gateway</h1></html>", 502), "server error .*HTTP 502: 502 Bad Gateway"),
    ],
)
def test_a_failure_is_told_in_the_providers_words_and_not_by_those_of_our_request(
    answer: Answer, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match=words):
        ask(always(answer), monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, "Incorrect API key provided"), "authentication .*Incorrect API key provided"),
        (error(404, "The model `m` does not exist"), "unknown model .*does not exist"),
        (error(429, "You exceeded your current quota"), "quota exhausted .*exceeded your current quota"),
    ],
)
def test_what_is_the_same_for_every_request_stops_the_run(
    answer: Answer, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RunStopped, match=words):
        ask(always(answer), monkeypatch=monkeypatch)


@pytest.mark.parametrize("kind", ["finish content_filter", "OpenAI", "Azure", "router"])
def test_a_refusal_of_the_provider_is_a_blocked_reply(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reply, _ = ask(always(REFUSALS[kind]), monkeypatch=monkeypatch)
    assert reply.stop is StopReason.CONTENT_FILTER


def test_a_failure_is_tried_again_by_our_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    again = one_by_one(error(429, "Slow down", headers={"retry-after-ms": "1"}), says("hello"))
    with serving(again) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        client = client_for(MODEL, transport=Transport(concurrency=1, max_retries=2))
        reply = asyncio.run(_ask(client, Request(list(BEGINNING), ())))
    assert (reply.content, reply.attempts, server.calls) == ("hello", 2, 2)


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
    model = inspect_models.get_model(MODEL, memoize=False)
    failure = inspect_models.failure_in(model, raised)
    assert (failure.kind.value, failure.retry_after) == (kind, wait)
    assert words in str(failure)


def test_an_endpoint_that_is_not_there_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"after 1 attempt: Connection error"):
        asyncio.run(_ask(client_for(MODEL, transport=ONCE), Request(list(BEGINNING), ())))


@pytest.mark.parametrize("arguments", ['{"at": [', '{"at": []}'])
def test_a_reply_cut_off_by_the_length_limit_is_marked(
    arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply, _ = ask(always(completion({"content": "half a se"}, "length")), monkeypatch=monkeypatch)
    assert (reply.stop, reply.content) == (StopReason.LENGTH, "half a se")
    cut = completion({"content": None, "tool_calls": [a_call("look", arguments)]}, "length")
    reply, _ = ask(always(cut), monkeypatch=monkeypatch)
    assert (reply.stop, len(reply.tool_calls)) == (StopReason.LENGTH, 1)


def test_tools_are_sent_as_by_our_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    _, through_inspect = ask(always(says()), monkeypatch=monkeypatch)
    with serving(always(says())) as direct:
        client = client_for("m", inspect_models.ModelOptions(base_url=direct.base_url), ONCE)
        asyncio.run(_ask(client, Request(list(BEGINNING), (TOOL,))))
    (sent,), (expected,) = (one.requests()[0]["tools"] for one in (through_inspect, direct))
    # Not strict, which is what leaving it out means.
    assert sent["function"].pop("strict") is False
    assert sent == expected
    assert sent["function"]["parameters"] == TOOL.parameters


def test_reasoning_goes_back_with_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    thinking = calls(a_call(), reasoning_content="let me see")
    first, _ = ask(always(thinking), monkeypatch=monkeypatch)
    reply = Message("assistant", first.content, first.tool_calls, provider_fields=first.provider_fields)
    answer = Message("tool", "nothing", tool_call_id=first.tool_calls[0].id)
    _, server = ask(always(says()), *BEGINNING, reply, answer, monkeypatch=monkeypatch)
    assert "let me see" in json.dumps(server.requests()[0]["messages"][2])


@pytest.mark.slow
# The providers whose format Inspect's layer speaks: it has packages of its own for the others.
@pytest.mark.parametrize("provider", ["openai", "deepseek", "anthropic"])
def test_no_strict_endpoint_refuses_an_episode(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODEL
    behaviour = strict(provider, simulated("at-level-1"))
    with serving(behaviour) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        if provider == "anthropic":
            pytest.importorskip("anthropic")
            model = "anthropic/claude-sonnet-4-6"
            monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        create_run(RunSpec(model, selection=Selection(limit=1)), tmp_path / "a.run")
        with RunFile.open(tmp_path / "a.run", write=True) as run:
            run_tasks(run, client_for(model), ExecutionOptions(preflight=False))
    assert behaviour.refused == []
    scores = StoredRun(tmp_path / "a.run").score()
    assert (scores.tasks.misaligned, scores.tasks.total) == (2, 2)


@pytest.mark.slow
def test_the_sentences_of_anthropic_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    request = Request(list(BEGINNING), (TOOL,))
    for answer, failure, words in (
        (error(400, "max_tokens: too large"), ModelError, "request refused .*max_tokens: too large"),
        (error(529, "Overloaded", type="overloaded_error"), ModelError, "overloaded_error Overloaded"),
        (error(401, "invalid x-api-key"), RunStopped, "authentication .*invalid x-api-key"),
    ):
        with serving(always(answer)) as server:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
            client = client_for("anthropic/claude-sonnet-4-6", transport=ONCE)
            with pytest.raises(failure, match=words):
                asyncio.run(_ask(client, request))
            assert server.calls == 1


def test_what_is_missing_is_said_in_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"^--model google/gemini-x: .*pip install google-genai"):
        client_for("google/gemini-x")


def test_keys_in_the_environment_are_in_no_exception_and_stop_a_run_in_a_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, others = "sk-sentinel-4d1f0c-77", "sk-other-77abcd12-88"
    monkeypatch.setenv("LOCAL_API_KEY", key)
    monkeypatch.setenv("SOMEBODY_API_KEY", f"{others},sk-third-5512fe90")
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    body = ('{"error":{"message":"' + "x" * 270 + f'{key} {others}"' + "}}").encode()
    with pytest.raises(ModelError) as caught:
        ask(always(Answer(body, 400)), monkeypatch=monkeypatch)
    assert "sk-" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(RunStopped, match="API key in a reply"):
        ask(always(says(f"I have {others}.")), monkeypatch=monkeypatch)
    assert ask(always(says("It is postgres.")), monkeypatch=monkeypatch)[0].content == "It is postgres."


@pytest.mark.filterwarnings("ignore:.*token counts:UserWarning")
@pytest.mark.parametrize("count", [-1, 0, 2**62])
def test_an_impossible_count_of_tokens_is_estimated(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": 3}
    reply, _ = ask(always(completion({"content": "x" * 400}, usage=usage)), monkeypatch=monkeypatch)
    assert 10 < reply.usage.input < 1000
    assert 100 <= reply.usage.output < 300
