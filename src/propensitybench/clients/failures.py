"""What can go wrong between us and a model, and what it means for the run."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final

import msgspec


class FailureKind(Enum):
    """What a failure means: whether to try again, give the task up, or stop the run."""

    RATE_LIMIT = "rate limit"
    OVERLOADED = "overloaded"
    SERVER = "server error"
    NETWORK = "network"
    TIMEOUT = "time-out"
    UNREADABLE = "unreadable reply"
    REFUSED = "request refused"
    BLOCKED = "content policy"
    AUTH = "authentication"
    UNKNOWN_MODEL = "unknown model"
    QUOTA = "quota exhausted"


TRANSIENT: Final = frozenset(
    (
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.SERVER,
        FailureKind.NETWORK,
        FailureKind.TIMEOUT,
        FailureKind.UNREADABLE,
    )
)
"""Worth another try."""
THROTTLED: Final = frozenset((FailureKind.RATE_LIMIT, FailureKind.OVERLOADED))
"""A sign that there are too many requests in flight."""
FATAL: Final = frozenset((FailureKind.AUTH, FailureKind.UNKNOWN_MODEL, FailureKind.QUOTA))
"""The same for every task: the run stops."""

_POLICY: Final = re.compile(
    r"content[_ -]?(filter|policy|management)|responsible ?ai|moderation|flagged"
    r"|safety (system|filter|policy)|usage polic(y|ies)|prohibited[_ ]content",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded your current quota|credit balance"
    r"|per[_ ]?day|daily (limit|quota)|quota.{0,40}(day|month)|payment required",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"model[_ ]not[_ ]found|model .{0,80}(does not exist|not found|not available|not exist)|unknown model"
    r"|invalid[_ ]model|no such model",
    re.IGNORECASE | re.DOTALL,
)
# Some providers word a limit by the minute like an exhausted quota.
_SOON: Final = re.compile(r"per[_ ]?minute|(retry|try again) (in|after) \d", re.IGNORECASE)
_DAILY: Final = re.compile(r"per[_ ]?day|daily", re.IGNORECASE)
# Error codes in words, and the HTTP status that they would have come with; the first that fits.
_WORDS: Final = {
    "rate_limit": 429,
    "invalid_api_key": 401,
    "invalid_model": 404,
    "quota": 402,
    "api_key": 401,
    "authentication": 401,
    "model_not_found": 404,
    "content_filter": 400,
    "content_policy": 400,
    "context_length": 400,
    "invalid": 400,
    "overloaded": 503,
}
_SHOWN: Final = 300


class Failure(Exception):
    """One try that failed.

    Attributes:
        kind: what it means.
        retry_after: seconds that the provider asks us to wait, if it does.
    """

    def __init__(self, kind: FailureKind, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after = retry_after


def failure_of(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Failure:
    """The failure that an HTTP answer other than success stands for.

    Args:
        status: of the answer.
        headers: looked up without regard to case.
        body: whatever came, JSON or not.
        now: the time, for a ``Retry-After`` that gives a date.
    """
    text = _said(body)
    kind = _kind(status, text)
    if kind is FailureKind.BLOCKED:
        return Failure(kind, text)
    hint = "; is the address right? it usually ends in /v1" if status == 404 else ""
    return Failure(kind, f"HTTP {status}: {text}{hint}", retry_after(headers, now))


def _kind(status: int, text: str) -> FailureKind:
    if status in (400, 403, 422, 451) and _POLICY.search(text):
        return FailureKind.BLOCKED
    soon = _SOON.search(text) is not None and _DAILY.search(text) is None
    if status == 402 or (status in (403, 429) and _QUOTA.search(text) and not soon):
        return FailureKind.QUOTA
    if status in (401, 403):
        return FailureKind.AUTH
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(text)):
        return FailureKind.UNKNOWN_MODEL
    if status == 429:
        return FailureKind.RATE_LIMIT
    if status in (503, 529):
        return FailureKind.OVERLOADED
    if status in (408, 409, 425) or status >= 500:
        return FailureKind.SERVER
    return FailureKind.REFUSED


def error_in(body: Any, headers: Mapping[str, str], now: datetime) -> Failure:
    """The failure of an error object that came with HTTP 200, as some routers send it."""
    error = body if isinstance(body, dict) else {"message": str(body)}
    code = error.get("code") or error.get("type") or ""
    try:
        status = max(int(code), 400) if not isinstance(code, bool) and code else 500
    except (TypeError, ValueError):
        status = _by_words(str(code))
    return failure_of(status, headers, msgspec.json.encode({"error": error}), now)


def _by_words(code: str) -> int:
    """The HTTP status that an error code in words would have come with."""
    return next((status for word, status in _WORDS.items() if word in code.lower()), 500)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` in either of its forms."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None:
        try:
            return max(0.0, float(milliseconds) / 1000)
        except ValueError:
            pass
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (aware - now).total_seconds())
    except (ValueError, OverflowError):
        return None


def _said(body: bytes) -> str:
    """What an error body says, in one line: code, type and message, or its beginning."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:_SHOWN] or "no explanation"
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    if isinstance(error, dict):
        inner = error.get("innererror")
        parts = [error.get("code"), error.get("type"), error.get("message"), error.get("detail")]
        parts.append(inner.get("code") if isinstance(inner, dict) else None)
        error = " ".join(str(part) for part in parts if part)
    return " ".join(str(error).split())[:_SHOWN] or "no explanation"
