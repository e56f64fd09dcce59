"""How many requests may be in flight, and how many per minute: a decision, with the time passed in."""

from collections.abc import Sequence
from math import inf, isinf
from typing import Final, NamedTuple

from propensitybench.clients.failures import THROTTLED, FailureKind
from propensitybench.clients.options import RequestLimits

# What each answer gives back of the one that a refusal takes away. So an endpoint that refuses less than one
# request in nine slows nothing down, and one that takes only so many at a time refuses one in nine, however
# long its replies take: growth by the clock would be refused nearly always where replies take half a minute.
RECOVERY: Final = 1 / 8
# Seconds' worth of requests or tokens that may be spent at once.
BURST_S: Final = 1.0
_PER_MINUTE: Final = 60.0


class RequestPermit(NamedTuple):
    """The right to send one request.

    Attributes:
        key: the number of the API key to use.
        since: when the right was given.
        tokens: the expected cost for which it was given.
    """

    key: int
    since: float
    tokens: int


class _Bucket:
    """So much per minute, evenly; None is without limit. A request is at least one unit."""

    def __init__(self, least: float, per_minute: float | None, now: float) -> None:
        self._rate = inf if per_minute is None else per_minute / _PER_MINUTE
        self._level = self._most = max(least, self._rate * BURST_S)
        self._then = now

    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much (or all that it ever holds) is there."""
        if isinf(self._rate):
            return 0.0
        self._level = min(self._most, self._level + (now - self._then) * self._rate)
        self._then = now
        return max(0.0, (min(amount, self._most) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        self._level -= amount


class KeyLimits:
    """The limits of one API key.

    In flight: as many as are asked for. Each request that is refused as one too many takes one away, and each
    answer gives a part of one back. The refusals of requests that were in flight together, a volley, take at
    most half away, and count once against the retries. No other failure changes anything.

    Args:
        most: requests in flight.
        transport: has the rates of each key.
        now: the time, in seconds of any clock that does not go back.
    """

    def __init__(self, most: int, transport: RequestLimits, now: float) -> None:
        self._most = self.limit = float(most)
        self.in_flight = 0
        self._volley_at = self._paused_until = -inf
        self._least = 1.0
        self._has_rates = transport.rpm is not None or transport.tpm is not None
        self._requests = _Bucket(1.0, transport.rpm, now)
        self._tokens = _Bucket(0.0, transport.tpm, now)

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until one more request may be sent; infinite if not before one comes back."""
        if self.in_flight >= max(1, int(self.limit)):
            return inf
        wait = self._paused_until - now if self._paused_until > now else 0.0
        if not self._has_rates:
            return wait
        return max(wait, self._requests.wait(now, 1), self._tokens.wait(now, tokens))

    def enter(self, tokens: int) -> None:
        """One more request is sent."""
        self.in_flight += 1
        self._requests.take(1)
        self._tokens.take(tokens)

    def answered(self, permit: RequestPermit, used: int) -> None:
        """A request was answered, and used so many tokens."""
        self.in_flight -= 1
        self._tokens.take(used - permit.tokens)
        self.limit = min(self._most, self.limit + RECOVERY)

    def failed(self, permit: RequestPermit, now: float, kind: FailureKind, retry_after: float) -> bool:
        """A request has failed; see `SendingLimits.failed`."""
        self.in_flight -= 1
        self._tokens.take(-permit.tokens)
        if kind not in THROTTLED:
            return True
        self._paused_until = max(self._paused_until, now + retry_after)
        begins = permit.since > self._volley_at
        if begins:
            self._volley_at, self._least = now, max(1.0, self.limit / 2)
        self.limit = max(self._least, self.limit - 1)
        return begins


class SendingLimits:
    """The limits of all keys at an endpoint, which take turns.

    Args:
        keys: their number; 0 and 1 are the same.
        transport: concurrency over all keys, and the rates of each.
        now: the time.
    """

    def __init__(self, keys: int, transport: RequestLimits, now: float) -> None:
        most = transport.concurrency
        used = max(1, min(keys, most))
        shares = [most // used + (index < most % used) for index in range(used)]
        self.keys: Sequence[KeyLimits] = [KeyLimits(share, transport, now) for share in shares]
        self._next = 0

    def enter(self, now: float, tokens: int) -> RequestPermit | float:
        """The right to send a request that may cost so many tokens, or the seconds to wait for it."""
        soonest = inf
        for step in range(len(self.keys)):
            index = (self._next + step) % len(self.keys)
            wait = self.keys[index].wait(now, tokens)
            if wait <= 0:
                self.keys[index].enter(tokens)
                self._next = index + 1
                return RequestPermit(index, now, tokens)
            soonest = min(soonest, wait)
        return soonest

    def answered(self, permit: RequestPermit, used: int) -> None:
        """Gives the right back after an answer that used so many tokens."""
        self.keys[permit.key].answered(permit, used)

    def failed(self, permit: RequestPermit, now: float, kind: FailureKind, retry_after: float = 0.0) -> bool:
        """Gives the right back after a failure.

        Returns:
            Whether the failure counts against the request's retries. One that was throttled together with
            others does not: too many requests were sent at once.
        """
        return self.keys[permit.key].failed(permit, now, kind, retry_after)
