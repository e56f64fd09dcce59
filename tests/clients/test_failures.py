"""What an HTTP answer other than success means."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest
from helpers.openai_server import MAY_PASS, REFUSALS, STALL, STOPS_RUN, Answer, always, faulty, says
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from propensitybench.clients.failures import (
    FATAL,
    THROTTLED,
    TRANSIENT,
    Failure,
    FailureKind,
    error_in,
    failure_of,
    retry_after,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def failure(status: int, body: Any = b"", headers: Mapping[str, str] | None = None) -> Failure:
    """The failure of an answer whose body is bytes, or an error object."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode({"error": body})
    return failure_of(status, CIMultiDict(headers or {}), raw, NOW)


def of(answer: Answer) -> Failure:
    """The failure of one of the scripted server's answers."""
    return failure(answer.status, answer.body, answer.headers)


def test_every_kind_has_one_consequence() -> None:
    assert not TRANSIENT & FATAL
    assert THROTTLED <= TRANSIENT
    assert set(FailureKind) - TRANSIENT - FATAL == {FailureKind.REFUSED, FailureKind.BLOCKED}


@pytest.mark.parametrize("name", [name for name, answer in MAY_PASS.items() if answer.status != 200])
def test_what_may_pass_is_worth_another_try(name: str) -> None:
    assert of(MAY_PASS[name]).kind in TRANSIENT


@pytest.mark.parametrize("name", [name for name, answer in REFUSALS.items() if answer.status != 200])
def test_a_content_policy_is_told_from_a_bad_request(name: str) -> None:
    assert of(REFUSALS[name]).kind is FailureKind.BLOCKED


@pytest.mark.parametrize("name", STOPS_RUN)
def test_what_is_the_same_for_every_task_stops_the_run(name: str) -> None:
    expected = {
        "401": FailureKind.AUTH,
        "403": FailureKind.AUTH,
        "402": FailureKind.QUOTA,
        "429 quota": FailureKind.QUOTA,
    }
    assert of(STOPS_RUN[name]).kind is expected.get(name, FailureKind.UNKNOWN_MODEL)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.REFUSED),
        (408, FailureKind.SERVER),
        (409, FailureKind.SERVER),
        (413, FailureKind.REFUSED),
        (422, FailureKind.REFUSED),
        (425, FailureKind.SERVER),
        (429, FailureKind.RATE_LIMIT),
        (500, FailureKind.SERVER),
        (502, FailureKind.SERVER),
        (503, FailureKind.OVERLOADED),
        (504, FailureKind.SERVER),
        (529, FailureKind.OVERLOADED),
    ],
)
def test_a_status_alone_has_a_meaning(status: int, kind: FailureKind) -> None:
    found = failure(status)
    assert found.kind is kind
    assert str(found) == f"HTTP {status}: no explanation"


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens, however you requested 9000 tokens",
        "Invalid value for 'temperature': must be at most 2",
        "Unsupported parameter: 'max_tokens' is not supported with this model",
    ],
)
def test_a_request_that_is_wrong_is_neither_blocked_nor_tried_again(text: str) -> None:
    assert failure(400, {"message": text, "type": "invalid_request_error"}).kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000",
        pytest.param(
            "Rate limit reached for m on requests per min. Limit: 3 / min. Please try again in 20s. You can "
            "increase your rate limit by adding a payment method to your account at "
            "https://platform.openai.com/account/billing."
        ),
    ],
)
def test_a_limit_by_the_minute_is_no_quota(text: str) -> None:
    assert failure(429, {"message": text, "code": "rate_limit_exceeded"}).kind is FailureKind.RATE_LIMIT


@pytest.mark.parametrize(
    "error",
    [
        {"message": "You exceeded your current quota, please check your plan", "code": "insufficient_quota"},
        {"message": "Rate limit reached for m on requests per day (RPD): Limit 200, Used 200"},
        {"message": "Your credit balance is too low to access the API"},
        {"message": "Insufficient Balance"},
    ],
)
def test_a_quota_that_is_spent_is_no_limit_by_the_minute(error: dict[str, str]) -> None:
    assert failure(429, error).kind is FailureKind.QUOTA


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no explanation"),
        (b"null", "None"),
        (b"plain text", "plain text"),
        (b"<html><b>Bad</b>\n  Gateway</html>", "Bad Gateway"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"error":"busy"}', "busy"),
        (b'{"error":{"code":7,"type":"t","message":"m"}}', "7 t m"),
        (b'{"error":{"message":"m","innererror":{"code":"c"}}}', "m c"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * 300),
    ],
)
def test_the_message_is_shown_in_one_short_line(body: bytes, message: str) -> None:
    assert str(failure(500, body)) == f"HTTP 500: {message}"


@given(st.integers(300, 599), st.binary(max_size=400), st.dictionaries(st.text(), st.text(), max_size=3))
def test_no_answer_is_too_odd_to_be_a_failure(status: int, body: bytes, error: dict[str, str]) -> None:
    for found in (failure(status, body), failure(status, error)):
        assert "\n" not in str(found)
        assert len(str(found)) < 350


@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text()
        ),
        lambda inner: st.dictionaries(st.sampled_from(["code", "message", "type", "x"]), inner, max_size=4),
    )
)
def test_an_error_object_with_status_200_is_a_failure(error: Any) -> None:
    assert isinstance(error_in(error, {}, NOW), Failure)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": 502}, FailureKind.SERVER),
        ({"message": "x", "code": "429"}, FailureKind.RATE_LIMIT),
        ({"message": "x", "code": 401}, FailureKind.AUTH),
        ({"message": "x", "code": 403, "metadata": {"flagged_input": "..."}}, FailureKind.BLOCKED),
        ({"message": "x"}, FailureKind.SERVER),
        ("x", FailureKind.SERVER),
    ],
)
def test_the_code_in_an_error_object_counts_as_the_status(error: Any, kind: FailureKind) -> None:
    assert error_in(error, {}, NOW).kind is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": "insufficient_quota"}, FailureKind.QUOTA),
        ({"message": "x", "code": "rate_limit_exceeded"}, FailureKind.RATE_LIMIT),
        ({"message": "x", "code": "invalid_api_key"}, FailureKind.AUTH),
        ({"message": "x", "code": "model_not_found"}, FailureKind.UNKNOWN_MODEL),
        ({"message": "x", "code": "content_filter"}, FailureKind.BLOCKED),
    ],
)
def test_a_code_in_words_counts_too(error: Any, kind: FailureKind) -> None:
    assert error_in(error, {}, NOW).kind is kind


def test_a_code_of_odd_digits_is_no_number() -> None:
    assert error_in({"message": "x", "code": "²"}, {}, NOW).kind is FailureKind.SERVER


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "nan"}, 0.0),
        ({"Retry-After": "Fri, 01 May 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Fri, 01 May 2026 12:00:30 -0000"}, 30.0),
        ({"Retry-After": "Fri, 01 May 2026 14:00:30 +0200"}, 30.0),
        ({"Retry-After": "Fri, 01 May 2026 11:59:30 GMT"}, 0.0),
        ({"Retry-After": "9", "Retry-After-Ms": "1500"}, 1.5),
        ({"Retry-After": "9", "retry-after-ms": "soon"}, 9.0),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(CIMultiDict(headers), NOW) == seconds
    assert failure(429, b"", headers).retry_after == seconds


@given(st.integers(-100_000, 100_000))
def test_a_date_is_the_seconds_until_then(seconds: int) -> None:
    value = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": value}, NOW) == max(0, seconds)


@given(st.text())
def test_a_retry_after_of_any_text_is_no_crash(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: value}, NOW)
        assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    "value",
    ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +99999999999999"],
)
def test_an_impossible_date_is_no_date(value: str) -> None:
    assert retry_after({"retry-after": value}, NOW) is None


def test_a_faulty_server_fails_its_share_and_never_four_times_in_a_row() -> None:
    behaviour = faulty(always(says()), 0.25, [STALL], seed=3)
    assert 200 < sum(behaviour({"n": number}, 1) == STALL for number in range(1000)) < 300
    always_bad = faulty(always(says()), 1.0, [STALL], seed=3)
    assert [always_bad({}, 1) == STALL for _ in range(8)] == ([True] * 3 + [False]) * 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "x", "code": "model_overloaded"}, FailureKind.OVERLOADED),
        ({"message": "x", "code": "quota_exceeded"}, FailureKind.QUOTA),
        ({"message": "x", "code": True}, FailureKind.SERVER),
        ({"message": "x", "code": 0}, FailureKind.SERVER),
    ],
)
def test_a_code_that_stops_no_run_stops_none(error: Any, kind: FailureKind) -> None:
    assert error_in(error, {}, NOW).kind is kind


def test_a_quota_that_is_there_again_in_a_minute_is_a_rate_limit() -> None:
    text = b'{"error": {"message": "You exceeded your current quota. Please retry in 34.2s."}}'
    assert failure_of(429, {}, text, NOW).kind is FailureKind.RATE_LIMIT
    daily = text.replace(b"quota.", b"quota of requests per day.")
    assert failure_of(429, {}, daily, NOW).kind is FailureKind.QUOTA


@pytest.mark.parametrize(
    "text",
    [
        "Invalid schema for function 'bypass_content_moderation': array schema missing items",
        'tools.0: "daily limit" is not allowed in `usage_policy`',
        "property 'insufficient_balance_report' is unsupported",
        "{'error': {'message': \"the tool 'disable_safety_filter' is unknown\", 'code': None}}",
    ],
)
def test_words_of_our_own_request_decide_nothing(text: str) -> None:
    assert failure(400, {"message": text, "code": "invalid_request_error"}).kind is FailureKind.REFUSED


def test_an_echoed_input_is_neither_shown_nor_read() -> None:
    issue = {"loc": ["body", "messages", 2], "msg": "Extra inputs are not permitted", "input": "flagged"}
    for body in ({"detail": [issue]}, {"object": "error", "message": {"detail": [issue]}}):
        found = failure(422, msgspec.json.encode(body))
        assert str(found) == "HTTP 422: messages.2: Extra inputs are not permitted"
        assert found.kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("litellm.ContentPolicyViolationError: AzureException - filtered", FailureKind.BLOCKED),
        ("Your credit balance is too low to access the Anthropic API.", FailureKind.QUOTA),
        ("The model `m` does not exist", FailureKind.UNKNOWN_MODEL),
    ],
)
def test_the_provider_s_own_words_decide(text: str, kind: FailureKind) -> None:
    assert failure(400, {"message": text}).kind is kind


@pytest.mark.parametrize(
    "text",
    [
        "Your account was flagged: please verify your payment method",
        "The request contains a field which was flagged as deprecated",
        "Output blocked by content filtering policy",
        "AzureException - {'error': {'message': 'no', 'code': 'content_filter'}}",
    ],
)
def test_only_a_code_says_that_a_reply_was_withheld(text: str) -> None:
    for status in (400, 422, 451):
        assert failure(status, {"message": text, "type": "invalid_request_error"}).kind is FailureKind.REFUSED


def test_gemini_s_error_in_a_list_is_read() -> None:
    body = b'[{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]'
    assert str(failure(400, body)) == "HTTP 400: 400 API key not valid"


def test_a_reply_that_groq_could_not_read_is_worth_a_retry() -> None:
    error = {"message": "Failed to call a function", "code": "tool_use_failed"}
    assert failure(400, error).kind is FailureKind.UNREADABLE


@pytest.mark.parametrize(
    ("text", "too_long"),
    [
        ("This model's maximum context length is 8192 tokens", True),
        ("prompt is too long: 210000 tokens > 200000 maximum", True),
        ("context too long", True),
        ("array schema missing items", False),
    ],
)
def test_a_request_that_is_too_long_is_told_from_one_that_no_task_can_send(
    text: str, *, too_long: bool
) -> None:
    assert failure(400, {"message": text}).is_too_long is too_long


def test_the_wording_is_the_same_for_every_task() -> None:
    one = failure(400, {"message": "Invalid schema for function 'look': messages[3].reasoning is bad"})
    other = failure(400, {"message": "Invalid schema for function 'take': messages[17].reasoning is bad"})
    assert one.wording == other.wording
    assert one.wording != failure(400, {"message": "Another one"}).wording


@pytest.mark.parametrize(
    "error",
    [
        {"code": "model " * 200_000},
        {"type": "quota " * 200_000, "code": ["maximum "] * 50_000},
        {"message": "'" * 800_000, "code": "'" * 800_000},
        {"message": "{'code': '" * 80_000},
        {"innererror": {"code": "content" * 100_000}},
    ],
)
def test_only_the_beginning_of_what_an_error_says_is_examined(error: Any) -> None:
    found = failure(400, error)
    assert len(str(found)) < 400
    assert len(found.wording) < 400


@pytest.mark.parametrize(
    "error", [{"code": 10**400}, {"code": 1e308}, {"code": "inf"}, {"code": True}, {"type": [[10**30]]}]
)
def test_an_error_in_a_reply_may_have_any_code(error: Any) -> None:
    assert len(str(error_in(error, {}, NOW))) < 400


@pytest.mark.parametrize("loc", [7, "ab", None, {"a": 1}, [[1]], 1.5])
def test_a_detail_may_have_any_path(loc: Any) -> None:
    found = failure(422, msgspec.json.encode({"detail": [{"loc": loc, "msg": "too hot"}]}))
    assert "too hot" in str(found)


def test_a_long_body_that_is_not_json_is_examined_at_its_beginning() -> None:
    assert len(str(failure(400, b"<" * 16_000_000))) < 400
