"""How many requests may be in flight, and how many per minute: a decision, with the time passed in."""

from collections.abc import Sequence
from math import inf, isinf
from typing import Final, NamedTuple

from propensitybench.clients.failures import THROTTLED, FailureKind

# What each answer gives back of the one that a refusal takes away. So an endpoint that refuses less than one
# request in nine slows nothing down, and one that takes only so many at a time refuses one in nine, however
# long its replies take: growth by the clock would be refused nearly always where replies take half a minute.
RECOVERY: Final = 1 / 8
# Seconds' worth of requests or tokens that may be spent at once.
BURST_S: Final = 1.0
_PER_MINUTE: Final = 60.0


class Lease(NamedTuple):
    """The right to send one request.

    Attributes:
        key: the number of the API key to use.
        since: when the right was given.
        tokens: the expected cost for which it was given.
        seat: of the conversation, if the model has several replicas.
    """

    key: int
    since: float
    tokens: int
    seat: "Seat | None" = None


class Seat:
    """A conversation's place among the replicas of a model.

    Attributes:
        url: the replica that has the conversation in its prefix cache; empty before the first request.
        avoid: the replica that the conversation has just left; empty if there is none.
    """

    __slots__ = ("avoid", "url")

    def __init__(self) -> None:
        self.url = self.avoid = ""

    def leave(self) -> None:
        """The conversation continues at another replica, if there is one."""
        self.url, self.avoid = "", self.url


class _Bucket:
    """So much per minute, evenly; None is without limit. A request is at least one unit."""

    def __init__(self, least: float, per_minute: float | None, now: float) -> None:
        self._least = least
        self._then = now
        self._set(per_minute)
        self._level = self._most

    def _set(self, per_minute: float | None) -> None:
        self._rate = inf if per_minute is None else per_minute / _PER_MINUTE
        self._most = max(self._least, self._rate * BURST_S)

    def change(self, per_minute: float | None, now: float) -> None:
        """Fills at another rate from now on. What is there stays, up to the new burst."""
        was_free = isinf(self._rate)
        self._fill(now)
        self._set(per_minute)
        self._level = 0.0 if was_free else min(self._most, self._level)

    def _fill(self, now: float) -> None:
        if not isinf(self._rate):
            self._level = min(self._most, self._level + (now - self._then) * self._rate)
        self._then = now

    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much (or all that it ever holds) is there."""
        if isinf(self._rate):
            return 0.0
        self._fill(now)
        return max(0.0, (min(amount, self._most) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        self._level -= amount


class Rates:
    """Requests and tokens per minute of one API key, which may be in use at several replicas.

    Args:
        rpm, tpm: above 0; None is without limit.
        now: the time, in seconds of any clock that does not go back.
    """

    def __init__(self, rpm: float | None, tpm: float | None, now: float) -> None:
        self._requests = _Bucket(1.0, rpm, now)
        self._tokens = _Bucket(0.0, tpm, now)
        self._is_limited = rpm is not None or tpm is not None
        self._held_until = -inf

    def change(self, rpm: float | None, tpm: float | None, now: float) -> None:
        """Other rates from now on; no burst is gained by a change."""
        self._requests.change(rpm, now)
        self._tokens.change(tpm, now)
        self._is_limited = rpm is not None or tpm is not None

    def hold(self, until: float) -> None:
        """Nothing is sent until then."""
        self._held_until = max(self._held_until, until)

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until a request of so many tokens may be sent."""
        wait = self._held_until - now if self._held_until > now else 0.0
        if not self._is_limited:
            return wait
        return max(wait, self._requests.wait(now, 1), self._tokens.wait(now, tokens))

    def take(self, requests: int, tokens: int) -> None:
        """Requests that were sent, and tokens that were used; negative gives back."""
        if self._is_limited:
            self._requests.take(requests)
            self._tokens.take(tokens)


class KeyLimits:
    """The limits of one API key.

    In flight: as many as are asked for. Each request that is refused as one too many takes one away, and each
    answer gives a part of one back. The refusals of requests that were in flight together, a volley, take at
    most half away, and count once against the retries. No other failure changes anything.
    """

    def __init__(self, most: int, rates: Rates) -> None:
        self._most = self.limit = float(most)
        self.in_flight = 0
        self._volley_at = -inf
        self._least = 1.0
        self.paused_until = -inf
        self._rates = rates

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until one more request may be sent; infinite if not before one comes back."""
        if self.in_flight >= max(1, int(self.limit)):
            return inf
        wait = self._rates.wait(now, tokens)
        return max(wait, self.paused_until - now) if self.paused_until > now else wait

    def enter(self, tokens: int) -> None:
        """One more request is sent."""
        self.in_flight += 1
        self._rates.take(1, tokens)

    def leave(
        self, lease: Lease, now: float, failed: FailureKind | None, retry_after: float, used: int
    ) -> bool:
        """A request has come back; see `Limits.leave`."""
        self.in_flight -= 1
        self._rates.take(0, used - lease.tokens)
        if failed is None:
            self.limit = min(self._most, self.limit + RECOVERY)
        if failed not in THROTTLED:
            return True
        self.paused_until = max(self.paused_until, now + retry_after)
        begins = lease.since > self._volley_at
        if begins:
            self._volley_at, self._least = now, max(1.0, self.limit / 2)
        self.limit = max(self._least, self.limit - 1)
        return begins


class Limits:
    """The limits of all keys at an endpoint, which take turns.

    Args:
        rates: of each key, one or more.
        most: requests in flight over all keys.
    """

    def __init__(self, rates: Sequence[Rates], most: int) -> None:
        used = max(1, min(len(rates), most))
        shares = [most // used + (index < most % used) for index in range(used)]
        self.keys: Sequence[KeyLimits] = [
            KeyLimits(share, of_key) for share, of_key in zip(shares, rates, strict=False)
        ]
        self._next = 0

    @property
    def allowed(self) -> float:
        """Requests that may be in flight at the moment, over all keys."""
        return sum(key.limit for key in self.keys)

    def pauses(self, now: float) -> bool:
        """Whether the endpoint has asked for a pause with every key."""
        return all(key.paused_until > now for key in self.keys)

    def enter(self, now: float, tokens: int, seat: Seat | None = None) -> Lease | float:
        """The right to send a request that may cost so many tokens, or the seconds to wait for it."""
        soonest = inf
        for step in range(len(self.keys)):
            index = (self._next + step) % len(self.keys)
            wait = self.keys[index].wait(now, tokens)
            if wait <= 0:
                self.keys[index].enter(tokens)
                self._next = index + 1
                return Lease(index, now, tokens, seat)
            soonest = min(soonest, wait)
        return soonest

    def leave(
        self,
        lease: Lease,
        now: float,
        failed: FailureKind | None = None,
        retry_after: float = 0.0,
        used: int = 0,
    ) -> bool:
        """Gives the right back: what the request failed with, if it did, and the tokens it used.

        Returns:
            Whether a failure counts against the request's retries. One that was throttled together with
            others does not: it was our volley that was too large.
        """
        return self.keys[lease.key].leave(lease, now, failed, retry_after, used)
