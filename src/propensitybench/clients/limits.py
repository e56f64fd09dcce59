"""How many requests may be in flight, and how many per minute: a decision, with the time passed in."""

from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple

from propensitybench.clients.failures import THROTTLED, FailureKind

# Doubles with every round of answers until the first sign of too much: 1,000 after six rounds. A server
# on one machine has about as many slots.
FIRST_LIMIT: Final = 16
# A window of fewer replies says little, since their lengths differ.
SMALLEST_WINDOW: Final = 16
# So much more in flight than at the best rate, with less than this gain in replies, is no use.
MORE: Final = 1.5
GAIN: Final = 0.1
# A rate below this share of the best one means another server, or longer conversations: measured again.
CHANGED: Final = 0.7
# A window in which fewer were in flight than this share of the limit says nothing about it.
FULL: Final = 0.6
# Seconds' worth of requests or tokens that may be spent at once.
BURST_S: Final = 1.0
_PER_MINUTE: Final = 60.0


class Lease(NamedTuple):
    """The right to send one request: which key to use, since when, and the tokens it was taken for."""

    key: int
    since: float
    tokens: int


class _Bucket:
    """So much per minute, evenly."""

    def __init__(self, per_minute: float, burst: float, now: float) -> None:
        self._rate = per_minute / _PER_MINUTE
        self._most = burst
        self._level = burst
        self._then = now

    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much (or all that it ever holds) is there."""
        self._level = min(self._most, self._level + (now - self._then) * self._rate)
        self._then = now
        return max(0.0, (min(amount, self._most) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        self._level -= amount


class _Throughput:
    """Whether more requests in flight bring more replies.

    A server with few slots and a queue refuses nothing: replies only take longer. So replies are counted in
    windows of about one round of them, and a window's rate is compared with the best one so far.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._best_rate = self._best_load = 0.0
        self._begin(limit, now)

    def _begin(self, limit: float, now: float) -> None:
        self._since, self._limit = now, limit
        self._size = max(SMALLEST_WINDOW, int(limit))
        self._replies = self._load = 0

    def add(self, now: float, in_flight: int, limit: float) -> float | None:
        """One more reply; the load to go back to, at the end of a window that shows that more is no use.

        Args:
            now: the time.
            in_flight: requests, with the one that was answered.
            limit: how many are allowed.
        """
        self._replies += 1
        self._load += in_flight
        if self._replies < self._size:
            return None
        took, load = now - self._since, self._load / self._replies
        rate = self._replies / took if took > 0 else inf
        was_full = load >= FULL * self._limit
        self._begin(limit, now)
        if not was_full or rate == inf:
            return None
        if rate > self._best_rate * (1 + GAIN) or rate < self._best_rate * CHANGED:
            self._best_rate, self._best_load = rate, load
            return None
        return self._best_load if load > MORE * self._best_load else None


class KeyLimits:
    """The limits of one API key.

    In flight: begins low and grows by one with every answer. It halves at a sign of too much, returns to
    what was enough when more in flight brought no more replies, and grows slowly from then on. Signs from
    requests that were sent before the last halving count once.
    """

    def __init__(self, most: int, rpm: int | None, tpm: int | None, now: float) -> None:
        self._most = float(most)
        self.limit = min(float(FIRST_LIMIT), self._most)
        self.in_flight = 0
        self._halved_at = -inf
        self._grows_slowly = False
        self._throughput = _Throughput(self.limit, now)
        self._paused_until = -inf
        self._requests = _Bucket(rpm, max(1.0, rpm / _PER_MINUTE * BURST_S), now) if rpm else None
        self._tokens = _Bucket(tpm, tpm / _PER_MINUTE * BURST_S, now) if tpm else None

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until one more request may be sent; infinite if not before one comes back."""
        if self.in_flight >= max(1, int(self.limit)):
            return inf
        wait = max(0.0, self._paused_until - now)
        if self._requests is not None:
            wait = max(wait, self._requests.wait(now, 1))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(now, tokens))
        return wait

    def enter(self, tokens: int) -> None:
        """One more request is sent."""
        self.in_flight += 1
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def leave(
        self, lease: Lease, now: float, failed: FailureKind | None, retry_after: float, used: int
    ) -> bool:
        """A request has come back; see `Limits.leave`."""
        self.in_flight -= 1
        if self._tokens is not None:
            self._tokens.take(used - lease.tokens)
        if failed in THROTTLED:
            self._paused_until = max(self._paused_until, now + retry_after)
            if lease.since <= self._halved_at:
                return False
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = now
            self._grows_slowly = True
        elif failed is None:
            self._grow(now)
        return True

    def _grow(self, now: float) -> None:
        enough = self._throughput.add(now, self.in_flight + 1, self.limit)
        if enough is not None and enough < self.limit:
            self.limit = max(1.0, enough)
            self._grows_slowly = True
        else:
            self.limit = min(self._most, self.limit + (1 / self.limit if self._grows_slowly else 1.0))


class Limits:
    """The limits of all keys of a provider, which take turns.

    Args:
        keys: number of keys, 1 or more.
        most: requests in flight over all keys.
        rpm, tpm: requests and tokens per minute, for each key.
        now: the time, in seconds of any clock that does not go back.
    """

    def __init__(self, keys: int, most: int, rpm: int | None, tpm: int | None, now: float) -> None:
        used = max(1, min(keys, most))
        shares = [most // used + (index < most % used) for index in range(used)]
        self.keys: Sequence[KeyLimits] = [KeyLimits(share, rpm, tpm, now) for share in shares]
        self._next = 0

    def enter(self, now: float, tokens: int) -> Lease | float:
        """The right to send a request that may cost so many tokens, or the seconds to wait for it."""
        soonest = inf
        for step in range(len(self.keys)):
            index = (self._next + step) % len(self.keys)
            wait = self.keys[index].wait(now, tokens)
            if wait <= 0:
                self.keys[index].enter(tokens)
                self._next = index + 1
                return Lease(index, now, tokens)
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
