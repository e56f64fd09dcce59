"""Options of a model and of the requests to it."""

from math import inf
from typing import Any, Final, Literal

import msgspec

from propensitybench.errors import BadInput

_TAKEN: Final = frozenset(("model", "messages", "tools", "stream"))


class ModelOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options that affect the replies; stored in the run file and part of a run's identity.

    None leaves an option to the provider; ``extra_body`` is merged into every request body.
    """

    base_url: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Raises `BadInput` for a value out of range, or a field that the program sets itself."""
        if self.temperature is not None and not 0 <= self.temperature < inf:
            raise BadInput(f"--temperature: must be 0 or more, found {self.temperature}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise BadInput(f"--top-p: must be above 0 and at most 1, found {self.top_p}")
        for name in _TAKEN & self.extra_body.keys():
            raise BadInput(f"--extra-body: {name!r} is set by the program")

    def body(self, limit_field: str = "max_tokens") -> dict[str, Any]:
        """The options as fields of a chat-completions request, with the given name for the output limit."""
        named = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            limit_field: self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
        }
        return {**{name: value for name, value in named.items() if value is not None}, **self.extra_body}


class RequestLimits(msgspec.Struct, frozen=True):
    """How requests are sent; does not affect the replies, and may change when a run is resumed.

    Attributes:
        timeout: seconds for one attempt, from sending to the last byte.
        connect_timeout: seconds to reach the endpoint.
        max_retries: attempts after the first, for transient errors (rate limits, overload, network).
        rpm: requests per minute and key; None is unlimited.
        tpm: tokens per minute and key, input and output; None is unlimited.
        concurrency: most requests in flight, over all keys.
    """

    timeout: float = 600.0
    connect_timeout: float = 20.0
    max_retries: int = 8
    rpm: float | None = None
    tpm: float | None = None
    concurrency: int = 64

    def divided(self, shards: int) -> "RequestLimits":
        """The part of one of several shards that send at the same time: rates divided by their number.

        However small its part, a shard sends a request whenever it has saved enough for one.
        """
        rpm, tpm = (None if rate is None else rate / shards for rate in (self.rpm, self.tpm))
        return msgspec.structs.replace(self, rpm=rpm, tpm=tpm)
