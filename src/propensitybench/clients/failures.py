"""What can go wrong between us and a model, and what it means for the run.

A failure is classified by what the provider says, never by what it repeats of our request: quoted parts of
a message and echoed inputs do not count.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec


class FailureKind(Enum):
    """What a failure means: whether to retry, to give the task up, or to stop the run."""

    RATE_LIMIT = "rate limit"
    OVERLOADED = "overloaded"
    SERVER = "server error"
    NETWORK = "network"
    TIMEOUT = "timeout"
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
"""Worth a retry."""
THROTTLED: Final = frozenset((FailureKind.RATE_LIMIT, FailureKind.OVERLOADED))
"""A sign that there are too many requests in flight."""
FATAL: Final = frozenset((FailureKind.AUTH, FailureKind.UNKNOWN_MODEL, FailureKind.QUOTA))
"""The same for every task: the run stops."""

_POLICY: Final = re.compile(
    r"content[_ -]?(filter|policy|management)|responsible ?ai|moderation|flagged"
    r"|safety (system|filter|policy)|usage polic(y|ies)|prohibited[_ ]content",
    re.IGNORECASE,
)
_SPENT: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded your current quota|credit balance"
    r"|payment required|billing[_ ]hard[_ ]limit",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    rf"{_SPENT.pattern}|per[_ ]?day|daily (limit|quota)|quota.{{0,40}}(day|month)", re.IGNORECASE
)
# The length of a conversation is its task's own; other refusals are the same for every task.
_TOO_LONG: Final = re.compile(
    r"context[_ ](length|window|size)|(context|prompt|input|request) (is )?too (long|large)"
    r"|too many (input )?tokens"
    r"|maximum.{0,30}tokens",
    re.IGNORECASE,
)
# Quoted text, which is often our own: a tool's name, a value. An apostrophe within a word is no quote.
_QUOTED: Final = re.compile(r"""(?<!\w)(['"`])(?:(?!\1).){1,200}?\1(?!\w)""", re.DOTALL)
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
# Gateways repeat a provider's error object as text.
_FIELD: Final = re.compile(
    r"""(['"])(?:code|type|status|message)\1\s*:\s*(['"])(?P<inside>.*?)\2(?=\s*[,}\]])""", re.DOTALL
)
# Bytes of an error body that is not JSON.
_EXAMINED: Final = 4096
_SHOWN: Final = 300
# Without "<" inside, so that a text of only "<" takes linear time.
_TAG: Final = re.compile(r"<[^<>]*>")


class Failure(Exception):
    """One attempt that failed.

    Attributes:
        kind: what it means.
        retry_after: seconds that the provider asks us to wait, if it does.
    """

    def __init__(self, kind: FailureKind, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def is_too_long(self) -> bool:
        """Whether the request was refused for its length."""
        return self.kind is FailureKind.REFUSED and _TOO_LONG.search(str(self)) is not None

    @property
    def wording(self) -> str:
        """The text without what differs from request to request: quoted parts, positions, numbers."""
        return re.sub(r"[\[.]?\d+\]?", "", without_quotes(str(self)))


class Explanation(NamedTuple):
    """What an error body says: all of it in one short line, and the machine-readable codes in it."""

    text: str
    codes: str


def failure_of(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Failure:
    """The failure that an HTTP answer other than success stands for.

    Its text is the provider's own message.

    Args:
        status: of the answer.
        headers: looked up without regard to case.
        body: whatever came, JSON or not.
        now: the time, for a ``Retry-After`` that gives a date.
    """
    return _failure(status, headers, message_of(body), now)


def _failure(status: int, headers: Mapping[str, str], explanation: Explanation, now: datetime) -> Failure:
    text, codes = explanation
    kind = _kind(status, f"{codes} {without_quotes(text)}", codes)
    if kind is FailureKind.BLOCKED:
        return Failure(kind, text)
    hint = "; is the address right? it usually ends in /v1" if status == 404 else ""
    if 300 <= status < 400:
        hint = "; redirects are not followed: give the address that it points to"
    return Failure(kind, f"HTTP {status}: {text}{hint}", retry_after(headers, now))


def without_quotes(text: str) -> str:
    """A message without its quoted parts, which may be words of our request."""
    return _QUOTED.sub(" ", _FIELD.sub(r" \g<inside> ", text))


def _kind(status: int, text: str, codes: str) -> FailureKind:
    if "tool_use_failed" in codes:
        return FailureKind.UNREADABLE  # Groq's name for a reply that it could not read: not our request
    soon = _SOON.search(text) is not None and _DAILY.search(text) is None
    if status == 402 or (status in (403, 429) and _QUOTA.search(text) and not soon):
        return FailureKind.QUOTA
    if status == 400 and _SPENT.search(text):
        return FailureKind.QUOTA  # Anthropic's "credit balance is too low"
    if status in (400, 403, 422, 451) and _POLICY.search(text):
        return FailureKind.BLOCKED
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
    except (TypeError, ValueError, OverflowError):
        status = _by_words(_text(code))
    return _failure(min(status, 599), headers, _explanation({"error": error}), now)


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


def message_of(body: bytes) -> Explanation:
    """What an error body says: codes, types and message, or its beginning; never an echoed input."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:_EXAMINED].decode("utf-8", "replace")
        return Explanation(_line(_TAG.sub(" ", text)), "")
    return _explanation(decoded)


def _explanation(decoded: Any) -> Explanation:
    if isinstance(decoded, list) and decoded and isinstance(decoded[0], dict):
        decoded = decoded[0]  # Gemini puts its error into a list
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    if not isinstance(error, dict):
        return Explanation(_line(_text(error)), "")
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    words = [error.get("code"), error.get("type"), _words(error.get("message")), _words(error.get("detail"))]
    if isinstance(inner, dict):
        words.append(inner.get("code"))
    text = " ".join(_text(word) for word in words if word)
    return Explanation(_line(text), _line(" ".join(_text(code) for code in codes if code), ""))


def _words(message: Any) -> str:
    """A message in words: some servers send a list of what is wrong with which field."""
    if isinstance(message, dict) and "detail" in message:
        message = message["detail"]
    if not isinstance(message, list):
        return _text(message) if message else ""
    return "; ".join(_field_error(item) for item in message)


def _field_error(item: Any) -> str:
    if not isinstance(item, dict):
        return _text(item)
    path = item.get("loc")
    where = ".".join(_text(part) for part in (path if isinstance(path, list) else ()) if part != "body")
    what = _text(item.get("msg") or item.get("message") or item.get("type") or "refused")
    return f"{where}: {what}" if where else what


def _text(value: Any) -> str:
    """A value of an error as text."""
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits
        return "a value that cannot be shown"


def _line(text: str, otherwise: str = "no explanation") -> str:
    return " ".join(text.split())[:_SHOWN] or otherwise
