"""Failed requests: their classification, and what follows for the run.

Classification uses status, machine-readable codes and the provider's own words. Quoted parts of a message and
echoed inputs are ignored, because they may come from the request. `ERRORS` is the whole of it; docs/rules.md
prints that table.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec


class FailureKind(Enum):
    """The kind of a failure; decides whether to retry, to fail the task or to stop the run."""

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
    KEY_REPEATED = "API key in a reply"


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
"""Retried."""
THROTTLED: Final = frozenset((FailureKind.RATE_LIMIT, FailureKind.OVERLOADED))
"""Too many requests were in flight."""
FATAL: Final = frozenset(
    (FailureKind.AUTH, FailureKind.UNKNOWN_MODEL, FailureKind.QUOTA, FailureKind.KEY_REPEATED)
)
"""Would fail every task, or must not happen again, so the run stops."""

# By words alone a filter cannot be told from trouble with the account: "Your account was flagged".
BLOCK_CODES: Final = frozenset(
    (
        "content_filter",  # Azure, and gateways after it
        "responsibleaipolicyviolation",  # Azure's inner error
        "content_policy_violation",  # OpenAI
        "invalid_prompt",  # OpenAI's reasoning models: "your prompt was flagged"
        "litellm.contentpolicyviolationerror",
        "flagged_input",  # OpenRouter's moderation, in the metadata
    )
)
"""Codes with which a provider says that it withholds a reply, in lower case."""
_SPENT: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded your current quota|credit balance"
    r"|payment required|billing[_ ]hard[_ ]limit",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    rf"{_SPENT.pattern}|per[_ ]?day|daily (limit|quota)|quota.{{0,40}}(day|month)", re.IGNORECASE
)
# Length differs between tasks; other rejections would hit every task.
_TOO_LONG: Final = re.compile(
    r"context[_ ](length|window|size)|(context|prompt|input|request) (is )?too (long|large)"
    r"|too many (input )?tokens"
    r"|maximum.{0,30}tokens",
    re.IGNORECASE,
)
# Quoted text often comes from the request: a tool's name, a value. Apostrophes within words do not quote.
_QUOTED: Final = re.compile(r"""(?<!\w)(['"`])(?:(?!\1).){1,200}?\1(?!\w)""", re.DOTALL)
_NO_MODEL: Final = re.compile(
    r"model[_ ]not[_ ]found|model .{0,80}(does not exist|not found|not available|not exist)|unknown model"
    r"|invalid[_ ]model|no such model",
    re.IGNORECASE | re.DOTALL,
)
# Some providers word a per-minute limit like an exhausted quota.
_SOON: Final = re.compile(r"per[_ ]?minute|(retry|try again) (in|after) \d", re.IGNORECASE)
_DAILY: Final = re.compile(r"per[_ ]?day|daily", re.IGNORECASE)
# Parts of error codes and the HTTP status that they correspond to; the first match counts.
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
# LiteLLM's proxy begins a message with the class of the exception that it raised.
_LITELLM: Final = re.compile(r"litellm\.\w+Error(?=:)")
# Bytes of an error body that is not JSON.
_EXAMINED: Final = 4096
_SHOWN: Final = 300
# Without "<" inside, so that a text of only "<" takes linear time.
_TAG: Final = re.compile(r"<[^<>]*>")


class Failure(Exception):
    """A failed attempt.

    Attributes:
        kind: decides what happens next.
        retry_after: seconds to wait, if the provider states them.
    """

    def __init__(self, kind: FailureKind, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.retry_after = retry_after

    @property
    def is_too_long(self) -> bool:
        """Whether the request was rejected for its length."""
        return self.kind is FailureKind.REFUSED and _TOO_LONG.search(str(self)) is not None

    @property
    def wording(self) -> str:
        """The text without parts that differ between requests: quotes, positions, numbers."""
        return re.sub(r"[\[.]?\d+\]?", "", without_quotes(str(self)))


class Explanation(NamedTuple):
    """The content of an error body: one short line, and the machine-readable codes in it, in lower case."""

    text: str
    codes: frozenset[str] = frozenset()


class ErrorRule(NamedTuple):
    """What an error of an endpoint means.

    Attributes:
        kind: what it is.
        statuses: HTTP statuses; empty means any.
        codes: of which the error must have one; empty means that none is needed.
        says: whether a message without its quoted parts has the words that are needed; None needs none.
        sign: ``codes`` or ``says`` for a reader.
        why: why it means this.
    """

    kind: FailureKind
    statuses: Collection[int] = ()
    codes: frozenset[str] = frozenset()
    says: Callable[[str], object] | None = None
    sign: str = ""
    why: str = ""

    def matches(self, status: int, words: str, codes: frozenset[str]) -> bool:
        """Whether it is the rule for an error."""
        return (
            (not self.statuses or status in self.statuses)
            and (not self.codes or not self.codes.isdisjoint(codes))
            and (self.says is None or bool(self.says(words)))
        )


def _is_spent(words: str) -> bool:
    soon = _SOON.search(words) is not None and _DAILY.search(words) is None
    return _QUOTA.search(words) is not None and not soon


ERRORS: Final = (
    ErrorRule(
        FailureKind.UNREADABLE,
        codes=frozenset(("tool_use_failed",)),
        sign="code `tool_use_failed`, without what the model wrote",
        why="Groq could not parse the model's call; with its text, that text is the reply",
    ),
    ErrorRule(
        FailureKind.BLOCKED,
        range(400, 500),
        BLOCK_CODES,
        sign="code " + ", ".join(f"`{code}`" for code in sorted(BLOCK_CODES)),
        why="the provider says in a code, not in prose, that it withholds the reply",
    ),
    ErrorRule(FailureKind.QUOTA, (402,), why="no credit"),
    ErrorRule(
        FailureKind.QUOTA,
        (403, 429),
        says=_is_spent,
        sign="a spent or daily quota",
        why="more attempts are refused too",
    ),
    ErrorRule(
        FailureKind.QUOTA, (400,), says=_SPENT.search, sign="no credit", why="Anthropic's status for it"
    ),
    ErrorRule(FailureKind.AUTH, (401, 403), why="key or account"),
    ErrorRule(FailureKind.UNKNOWN_MODEL, (404,), why="model or address"),
    ErrorRule(
        FailureKind.UNKNOWN_MODEL, (400, 422), says=_NO_MODEL.search, sign="no such model", why="model"
    ),
    ErrorRule(FailureKind.RATE_LIMIT, (429,), why="too many requests"),
    ErrorRule(FailureKind.OVERLOADED, (498, 503, 529), why="no capacity; 498 is Groq's, 529 Anthropic's"),
    ErrorRule(FailureKind.SERVER, (408, 409, 425, *range(500, 600)), why="the endpoint failed"),
    ErrorRule(
        FailureKind.REFUSED, why="something about the request, which is ours, or a filter without a code"
    ),
)
"""The first that matches counts; the last matches everything."""

WITHOUT_ERROR: Final = {
    FailureKind.NETWORK: "no connection, or it broke",
    FailureKind.TIMEOUT: "no reply in time",
    FailureKind.UNREADABLE: "a body that is no chat completion, or an empty reply whose finish reason is "
    "missing, unknown or `tool_calls`: nothing says that the model had ended it",
    FailureKind.KEY_REPEATED: "a run file that holds the key must not be written",
}
"""Failures without an error of the endpoint, and why they are failures."""


def failure_of(status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> Failure:
    """The failure for an unsuccessful HTTP response. Its text is the provider's message.

    Args:
        status: of the response.
        headers: case-insensitive.
        body: JSON or anything else.
        now: the time, for a ``Retry-After`` with a date.
    """
    return _failure(status, headers, message_of(body), now)


def _failure(status: int, headers: Mapping[str, str], explanation: Explanation, now: datetime) -> Failure:
    text, codes = explanation
    words = without_quotes(text)
    kind = next(rule.kind for rule in ERRORS if rule.matches(status, words, codes))
    hint = "; is the address right? it usually ends in /v1" if status == 404 else ""
    if 300 <= status < 400:
        hint = "; redirects are not followed: give the address that it points to"
    return Failure(kind, f"HTTP {status}: {text}{hint}", retry_after(headers, now))


def without_quotes(text: str) -> str:
    """A message without its quoted parts, which may come from the request."""
    return _QUOTED.sub(" ", _FIELD.sub(r" \g<inside> ", text))


def error_in(body: Any, headers: Mapping[str, str], now: datetime) -> Failure:
    """The failure for an error object in an HTTP 200 response, as some routers send it."""
    error = body if isinstance(body, dict) else {"message": str(body)}
    code = error.get("code") or error.get("type") or ""
    try:
        status = max(int(code), 400) if not isinstance(code, bool) and code else 500
    except (TypeError, ValueError, OverflowError):
        status = _by_words(_text(code))
    return _failure(min(status, 599), headers, _explanation({"error": error}), now)


def _by_words(code: str) -> int:
    """The HTTP status that corresponds to an error code in words."""
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
    """Codes, types and message of an error body, or its beginning if it is not JSON; no echoed input."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body[:_EXAMINED].decode("utf-8", "replace")
        return Explanation(_line(_TAG.sub(" ", text)))
    return _explanation(decoded)


def _explanation(decoded: Any) -> Explanation:
    if isinstance(decoded, list) and decoded and isinstance(decoded[0], dict):
        decoded = decoded[0]  # Gemini puts its error into a list
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    if not isinstance(error, dict):
        return Explanation(_line(_text(error)))
    inner = as_object(error.get("innererror")) or as_object(
        as_object(error.get("provider_specific_fields")).get("innererror")
    )
    message = _words(error.get("message"))
    named = [error.get("code"), error.get("type"), inner.get("code")]
    words = [*named[:2], message, _words(error.get("detail")), named[2]]
    return Explanation(
        _line(" ".join(_text(word) for word in words if word)),
        frozenset(code.lower() for code in _codes(named, message, as_object(error.get("metadata")))),
    )


def _codes(named: Iterable[Any], message: str, metadata: Mapping[str, Any]) -> Iterator[str]:
    """The codes of an error: those named as such, LiteLLM's exception class, OpenRouter's moderation."""
    yield from (_text(code)[:_SHOWN] for code in named if code)
    if raised := _LITELLM.match(message):
        yield raised[0]
    if "flagged_input" in metadata:
        yield "flagged_input"


def as_object(value: Any) -> dict[str, Any]:
    """A decoded value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _words(message: Any) -> str:
    """A message as text; some servers send a list of field errors."""
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
