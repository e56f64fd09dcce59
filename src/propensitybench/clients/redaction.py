"""Removes secrets (API keys, proxy passwords) from what an endpoint sends.

Every reply and every failure of an endpoint passes through one `Redactor` before anything stores or shows it.
Secrets are found as they are and as JSON, percent-encoding, HTML, Python or base64 write them, also nested. A
secret that is split over several fields or encoded in another way is not recognised.
"""

import re
from base64 import b64encode
from collections.abc import Awaitable, Iterable
from typing import Final

import msgspec

from propensitybench.chat import Reply, ToolCall, is_object
from propensitybench.clients.escapes import Unescaped, occurrences
from propensitybench.clients.failures import Failure, FailureKind
from propensitybench.errors import PropensityBenchError

MARK: Final = "[key]"
# Local servers accept any key, and users type "x", "EMPTY", "none" or "ollama". Such words occur in replies
# and protect nothing. No provider issues keys this short.
SHORTEST_SECRET: Final = 8
# Characters of a failure that are kept: it is matched against patterns and stored.
LONGEST_FAILURE: Final = 1000
# In percent-encoding and HTML.
_OTHER_ESCAPE: Final = "%(?:25)*+[2-7c-f][0-9a-f]|&(?:#|quot|apos|amp|lt|gt)"
# JSON may put a backslash before these.
_MAY_BE_ESCAPED: Final = frozenset("\"'/\\")


class Redactor:
    """Replaces secrets in texts by `MARK`.

    Args:
        secrets: to remove; those shorter than `SHORTEST_SECRET` characters are left in place.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        long_enough = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        forms = {form for secret in long_enough for form in _forms(secret)}
        # The longest first: a key may begin with another one.
        self._forms = sorted(forms, key=len, reverse=True)
        self._without_backslashes = [text for form in self._forms if (text := form.replace("\\", ""))]
        is_plain = all(secret.isascii() and _MAY_BE_ESCAPED.isdisjoint(secret) for secret in long_enough)
        # Without one of these a text has no escape that can be part of a secret.
        self._marks = ("\\u00" if is_plain else "\\", "%", "&")
        self._escape = re.compile(f"{re.escape(self._marks[0])}|{_OTHER_ESCAPE}", re.IGNORECASE)
        self._in_bytes = [text.encode("utf-8", "surrogatepass") for text in (*self._forms, *self._marks)]

    def text(self, text: str) -> str:
        """The text without secrets."""
        if not self._may_occur(text):
            return text
        for form in self._forms:
            text = text.replace(form, MARK)
        return self._without_escaped(text) if self._may_be_escaped(text) else text

    def body(self, raw: bytes) -> bytes:
        """The body of an HTTP response without secrets, for one that may be shown undecoded."""
        if not self._forms or not any(part in raw for part in self._in_bytes):
            return raw
        return self.text(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def reply(self, reply: Reply) -> Reply:
        """The reply without secrets in any of its fields."""
        calls = [part for call in reply.tool_calls for part in (call.id, call.name, call.arguments)]
        if not self._may_occur("\n".join((reply.content, reply.model, reply.provider_fields, *calls))):
            return reply
        text = self.text
        fields = text(reply.provider_fields)
        return msgspec.structs.replace(
            reply,
            content=text(reply.content),
            tool_calls=tuple(
                ToolCall(text(call.id), text(call.name), text(call.arguments)) for call in reply.tool_calls
            ),
            model=text(reply.model),
            provider_fields=fields if fields == reply.provider_fields or is_object(fields) else "",
        )

    def failure(self, failure: Failure) -> Failure:
        """The failure without secrets in its text, and without the exceptions that led to it."""
        return Failure(failure.kind, self.text(str(failure))[:LONGEST_FAILURE], failure.retry_after)

    async def outcome(self, attempt: Awaitable[Reply]) -> Reply | Failure:
        """The reply or the failure of one attempt.

        The failure is returned, not raised, so that no exception is chained to it: exceptions of HTTP
        packages quote what the endpoint sent, and some hold the request's headers.

        Raises:
            PropensityBenchError: raised by the attempt.
        """
        try:
            return self.reply(await attempt)
        except Failure as raised:
            failure = raised
        except PropensityBenchError:
            raise
        except Exception as raised:  # noqa: BLE001 - whatever an endpoint provokes, its text may hold a key
            failure = Failure(FailureKind.UNREADABLE, f"unexpected {type(raised).__name__}: {raised}")
        return self.failure(failure)

    def _may_occur(self, text: str) -> bool:
        """Whether the text has a secret, or an escape that may be part of one."""
        if not self._forms:
            return False
        return any(form in text for form in self._forms) or self._may_be_escaped(text)

    def _may_be_escaped(self, text: str) -> bool:
        # The marks alone are faster, and most texts have none of them.
        return any(mark in text for mark in self._marks) and self._escape.search(text) is not None

    def _without_escaped(self, text: str) -> str:
        """The text without secrets that are written with escapes."""
        unescaped = Unescaped(text)
        parts: list[str] = []
        done = 0
        for begin, end in occurrences(self._without_backslashes, unescaped.text):
            start, stop = unescaped.origin(begin, end)
            parts += [text[done:start], MARK]
            done = stop
        return "".join((*parts, text[done : unescaped.length]))


NO_SECRETS: Final = Redactor()


def _forms(secret: str) -> list[str]:
    """A secret, its UTF-8 bytes read as Latin-1, and what of its base64 is the same in every context."""
    raw = secret.encode()
    units = secret.encode("utf-16-be")
    surrogates = "".join(chr(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2))
    forms = [secret, raw.decode("latin-1"), surrogates] if not secret.isascii() else [secret]
    for before in range(3):
        encoded = b64encode(bytes(before) + raw).decode()
        first, last = -(-8 * before // 6), 8 * (before + len(raw)) // 6
        forms += [encoded[first:last], encoded[first:last].replace("+", "-").replace("/", "_")]
    return forms
