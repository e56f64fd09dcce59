"""What is changed after a refusal, and what never is."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from helpers.strict import violations
from helpers.strict.samples import GONE, chat, edited

from propensitybench.clients.adaptation import without_rejected
from propensitybench.clients.dialect import DEFAULT_DIALECT, ChatDialect
from propensitybench.clients.failures import failure_of
from propensitybench.clients.options import ModelOptions

LIMITED = ModelOptions(max_tokens=9)
PARAMETERS = "tools.0.function.parameters"
EMPTY = {"type": "object", "properties": {}}


def refusal(provider: str, edits: dict[str, Any]) -> str:
    """What we see of a provider's refusal of a request."""
    name = "deepseek" if provider.startswith("deepseek") else provider
    violation = violations(provider, edited(chat(name), edits))[0]
    return str(failure_of(violation.status, {}, json.dumps(violation.body).encode(), datetime.now(UTC)))


def dialect(**fields: Any) -> ChatDialect:
    return msgspec.structs.replace(DEFAULT_DIALECT, **fields)


@pytest.mark.parametrize(
    ("provider", "edits", "before", "field", "after"),
    [
        ("openai", {"model": "o4-mini", "max_tokens": 9}, {}, "limit_field", "max_completion_tokens"),
        (
            "mistral",
            {"max_completion_tokens": 9},
            {"limit_field": "max_completion_tokens"},
            "limit_field",
            "max_tokens",
        ),
        ("deepseek", {"messages.2.reasoning_content": GONE}, {}, "always", ("reasoning_content",)),
        ("deepseek-v3.2", {"messages.2.reasoning_content": GONE}, {}, "always", ("reasoning_content",)),
        (
            "deepseek-r1",
            {"messages.2.reasoning_content": "x"},
            {},
            "echo",
            ("reasoning", "reasoning_details", "thinking_blocks"),
        ),
        (
            "groq",
            {"model": "llama-3.3-70b-versatile", "messages.2.reasoning": "x"},
            {},
            "echo",
            ("reasoning_content", "reasoning_details", "thinking_blocks"),
        ),
        ("mistral", {"messages.2.tool_calls.0.extra_content": {}}, {}, "echo_in_calls", ()),
        ("deepseek", {"messages.2.content": GONE}, {}, "no_content", "empty text"),
        ("gemini", {"messages.3.name": GONE}, {}, "tool_message_name", True),
        ("groq", {"messages.3.name": "look"}, {"tool_message_name": True}, "tool_message_name", False),
        ("gemini", {PARAMETERS: EMPTY}, {}, "no_arguments", "omitted"),
        ("mistral", {PARAMETERS: GONE}, {"no_arguments": "omitted"}, "no_arguments", "empty object"),
        (
            "gemini",
            {f"{PARAMETERS}.properties.at": {"type": "null"}},
            {"no_arguments": "omitted"},
            "schema",
            "gemini",
        ),
        ("gemini", {f"{PARAMETERS}.additionalProperties": False}, {}, "schema", "gemini"),
        (
            "gemini",
            {"disable_tool_validation": True},
            {"extra": {"disable_tool_validation": True}},
            "extra",
            {},
        ),
    ],
)
def test_a_form_that_is_refused_is_changed_and_said(
    provider: str, edits: dict[str, Any], before: dict[str, Any], field: str, after: Any
) -> None:
    sentence = refusal(provider, edits)
    new = without_rejected(dialect(**before), sentence, LIMITED)
    assert new is not None, sentence
    assert getattr(new, field) == after
    assert len(new.changes) == 1
    again = without_rejected(
        msgspec.structs.replace(dialect(**before), changes=new.changes), sentence, LIMITED
    )
    assert again is None or again.changes != new.changes


@pytest.mark.parametrize(
    ("provider", "edits"),
    [
        ("openai", {"model": "o4-mini", "temperature": 0.5}),
        ("openai", {"model": "o4-mini", "top_p": 0.5}),
        ("openai", {"model": "gpt-5.6", "reasoning_effort": "high"}),
        ("openai", {"model": "gpt-4.1", "reasoning_effort": "high"}),
        ("mistral", {"seed": 7}),
        ("groq", {"logprobs": True}),
    ],
)
def test_what_the_model_reads_or_how_it_samples_is_never_changed(
    provider: str, edits: dict[str, Any]
) -> None:
    assert without_rejected(DEFAULT_DIALECT, refusal(provider, edits), LIMITED) is None


def test_a_limit_that_nobody_set_is_not_renamed() -> None:
    sentence = refusal("openai", {"model": "o4-mini", "max_tokens": 9})
    assert without_rejected(DEFAULT_DIALECT, sentence, ModelOptions()) is None
