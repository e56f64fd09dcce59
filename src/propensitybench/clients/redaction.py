"""Keeps API keys and proxy passwords out of what is stored and shown.

A failure's text is redacted. A reply is never changed: one that repeats a key is not stored, and the run
stops.
"""

from collections.abc import Iterable
from typing import Final

from propensitybench.chat import Reply
from propensitybench.clients.failures import Failure, FailureKind

MARK: Final = "[key]"
# Local servers accept any key, and users type "x", "EMPTY", "none" or "ollama".
MIN_SECRET: Final = 8
# Providers issue keys of at least 20 letters and digits. What is shorter or has no digit ("not-needed",
# "anything", "postgres") is a word that a model may write on its own.
MIN_ISSUED_KEY: Final = 20
# Characters of a failure that are kept: it is matched against patterns and stored.
MAX_FAILURE: Final = 1000


class Redactor:
    """Finds secrets in what an endpoint sends.

    Args:
        secrets: API keys and proxy passwords; those shorter than `MIN_SECRET` characters protect nothing and
            are not looked for.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: a key may begin with another one.
        self._secrets = sorted({text for text in secrets if len(text) >= MIN_SECRET}, key=len, reverse=True)
        self._issued = [text for text in self._secrets if _is_issued(text)]

    def failure(self, raised: Exception) -> Failure:
        """The failure that an attempt raised, with `MARK` in place of each secret.

        It is to be raised apart from the original: exceptions of HTTP packages quote what the endpoint sent,
        and some hold the request's headers.
        """
        known = raised if isinstance(raised, Failure) else None
        text = str(raised) if known else f"unexpected {type(raised).__name__}: {raised}"
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        kind = known.kind if known else FailureKind.UNREADABLE
        return Failure(kind, text[:MAX_FAILURE], known.retry_after if known else None)

    def error_body(self, raw: bytes) -> bytes:
        """The body of an error with `MARK` in place of each secret, so that none is cut in two when shown."""
        for secret in self._secrets:
            raw = raw.replace(secret.encode("utf-8", "surrogatepass"), MARK.encode())
        return raw

    def check_reply(self, reply: Reply) -> None:
        """Accepts a reply unless it repeats a key that a provider issued.

        Raises:
            Failure: of kind KEY_REPEATED.
        """
        if not self._issued:
            return
        calls = [part for call in reply.tool_calls for part in (call.id, call.name, call.arguments)]
        stored = "\n".join((reply.content, reply.model, reply.provider_fields, *calls))
        if any(key in stored for key in self._issued):
            raise Failure(
                FailureKind.KEY_REPEATED,
                "the reply was not stored; replace the key, and ask whoever runs the endpoint",
            )


def _is_issued(secret: str) -> bool:
    return len(secret) >= MIN_ISSUED_KEY and any(character.isdigit() for character in secret)
