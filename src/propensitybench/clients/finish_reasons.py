"""What a finish reason of an endpoint means: the model's own reply, a cut, a filter, or a failure.

docs/rules.md prints this table.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from propensitybench.chat import StopReason
from propensitybench.clients.failures import FailureKind


class FinishReasons(NamedTuple):
    """Finish reasons with one meaning.

    Attributes:
        reasons: in lower case. Of Gemini's ``content_filter: SPII`` the part before the colon counts.
        meaning: how the reply ended, or the failure that stands in its place.
        sent_by: endpoints known to send them.
        why: why they have this meaning.
    """

    reasons: tuple[str, ...]
    meaning: StopReason | FailureKind
    sent_by: str
    why: str


FINISH_REASONS: Final = (
    FinishReasons(
        ("stop", "end_turn", "stop_sequence", "eos", "eos_token"),
        StopReason.STOP,
        "all; Anthropic, Together, TGI",
        "the model ended its reply",
    ),
    FinishReasons(
        ("tool_calls", "function_call", "tool_use"),
        StopReason.TOOL_CALLS,
        "all; Anthropic",
        "the model called a tool",
    ),
    FinishReasons(
        ("length", "max_tokens", "model_length", "model_context_window_exceeded"),
        StopReason.LENGTH,
        "all; Gemini, Mistral, Anthropic",
        "the reply was cut: the rest of it is unknown",
    ),
    FinishReasons(
        (
            "content_filter", "content_filtered", "guardrail_intervened", "safety", "prohibited_content",
            "blocklist", "spii", "recitation", "language", "image_safety", "image_prohibited_content",
            "image_recitation",
        ),
        StopReason.CONTENT_FILTER,
        "OpenAI, Azure, DeepSeek, Gemini, Bedrock",
        "the provider withheld what the model wrote",
    ),
    FinishReasons(("refusal",), StopReason.REFUSAL, "Anthropic", "the provider's classifier ended the reply"),
    FinishReasons(
        (
            "function_call_filter", "malformed_function_call", "malformed_response", "unexpected_tool_call",
            "too_many_tool_calls", "missing_thought_signature",
        ),
        FailureKind.UNREADABLE,
        "Gemini",
        "the provider could not parse the model's call and withheld it",
    ),
    FinishReasons(
        ("insufficient_system_resource",),
        FailureKind.OVERLOADED,
        "DeepSeek",
        "the provider had no capacity left",
    ),
    FinishReasons(
        ("error", "abort", "other", "finish_reason_unspecified"),
        FailureKind.SERVER,
        "Mistral, OpenRouter, vLLM, Gemini",
        "the provider broke the reply off",
    ),
)  # fmt: skip
_MEANINGS: Final[Mapping[str, StopReason | FailureKind]] = {
    reason: row.meaning for row in FINISH_REASONS for reason in row.reasons
}


def meaning_of(reason: str) -> StopReason | FailureKind | None:
    """What a finish reason means; None if it is not in the table."""
    return _MEANINGS.get(reason.partition(":")[0].strip().lower())
