"""Which replica of a model a conversation is at, and which replicas are dead. The time is passed in."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from propensitybench.clients.failures import FATAL, TRANSIENT, Failure, FailureKind
from propensitybench.clients.limits import Limits, Rates, Seat
from propensitybench.clients.retry import LONGEST_WAIT_S

# Failures in a row after which a replica is dead. One lost connection is no sign: servers close idle ones.
DEAD_AFTER: Final = 3
# An overloaded server that answers nothing else for so long is one that does not work, such as a gateway
# without a backend. Less than the retries of a request take.
SILENT_S: Final = 30.0
# Before a dead replica is asked again; doubles up to the longest.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class Replica:
    """What is known of one replica.

    Attributes:
        url: its address.
        limits: of the requests in flight there.
        asked: requests that wait for their turn or are in flight.
        tokens: served so far.
        is_listed: whether it belongs to the fleet at the moment.
        barred: why no request can succeed there, such as a wrong key; empty if there is no reason.
        again_at: when a dead replica is to be asked again; infinite if it lives.
    """

    def __init__(self, url: str, limits: Limits, first_pause: float = FIRST_PAUSE_S) -> None:
        self.url = url
        self.limits = limits
        self._first_pause = first_pause
        self.asked = self.tokens = 0
        self.is_listed = True
        self.barred = ""
        self.again_at = inf
        self._pause = 0.0
        self._failures = 0
        self._failing_since = inf
        self._answered_at = -inf

    @property
    def is_open(self) -> bool:
        """Whether it may get requests, dead or alive."""
        return self.is_listed and not self.barred

    @property
    def lives(self) -> bool:
        """Whether it gets requests as long as there is no reason against it."""
        return self.is_open and self.again_at == inf

    def answered(self, now: float) -> None:
        """It is there: it has replied, or refused a request as such."""
        self._answered_at = now
        self._failures, self._failing_since, self.again_at = 0, inf, inf

    def failed(self, kind: FailureKind, sent_at: float, now: float) -> None:
        """A request has failed that another replica may answer."""
        if kind is FailureKind.RATE_LIMIT:
            self.answered(now)
        elif self.again_at < inf:
            if sent_at >= self.again_at:
                self.rest(min(2 * self._pause, LONGEST_PAUSE_S), now)
        elif kind is not FailureKind.TIMEOUT or sent_at > self._answered_at:
            self._failing_since = min(self._failing_since, now)
            self._failures += kind is not FailureKind.OVERLOADED
            if self._failures >= DEAD_AFTER or (
                kind is FailureKind.OVERLOADED and now - self._failing_since >= SILENT_S
            ):
                self.rest(self._first_pause, now)

    def rest(self, seconds: float, now: float) -> None:
        """It gets no requests for so long, and then one."""
        self._pause, self.again_at = seconds, now + seconds

    def start_again(self, now: float) -> None:
        """Another server may be at its address."""
        self.barred = ""
        self.answered(now)


class Replicas:
    """All replicas of a model.

    A conversation begins at the least busy replica and stays there. It leaves a replica that is dead, barred
    or no longer listed. A dead replica is asked again by one request at a time.

    Args:
        rates: of each API key, counted over all replicas.
        most: requests in flight at one replica.
        first_pause: seconds before a dead replica is asked again for the first time.
    """

    def __init__(self, rates: Sequence[Rates], most: int, first_pause: float = FIRST_PAUSE_S) -> None:
        self._rates = rates
        self._first_pause = first_pause
        self._most = most
        self._known: dict[str, Replica] = {}

    @property
    def listed(self) -> list[Replica]:
        """Those that belong to the fleet at the moment."""
        return [replica for replica in self._known.values() if replica.is_listed]

    def __getitem__(self, url: str) -> Replica:
        return self._known[url]

    def enlist(self, urls: Iterable[str], now: float) -> None:
        """These are the replicas from now on. One that comes back after it was left out starts again."""
        wanted = dict.fromkeys(urls)
        for url in wanted:
            known = self._known.get(url)
            if known is None:
                self._known[url] = Replica(url, Limits(self._rates, self._most), self._first_pause)
            elif not known.is_listed:
                known.start_again(now)
        for url, known in self._known.items():
            known.is_listed = url in wanted

    def place(self, seat: Seat, now: float) -> Replica | None:
        """The replica for a conversation's next request, where it is now seated; None if none can succeed."""
        home = self._known.get(seat.url)
        if home is None or not home.lives:
            home = self._choice(seat.avoid, now)
        if home is not None:
            seat.url = home.url
            home.asked += 1
        return home

    def _choice(self, avoid: str, now: float) -> Replica | None:
        usable = [replica for replica in self._known.values() if replica.is_open]
        resting = [replica for replica in usable if not replica.lives]
        # By a conversation that has no replica, and so no prefix cache to lose.
        due = [one for one in resting if now >= one.again_at and not one.asked and one.url != avoid]
        if due:
            return min(due, key=lambda one: one.again_at)
        living = [replica for replica in usable if replica.lives]
        living = [replica for replica in living if replica.url != avoid] or living
        if living:
            return min(
                living, key=lambda one: (one.limits.pauses(now), one.asked / one.limits.allowed, one.tokens)
            )
        # Requests are repeated with growing pauses, as at a single endpoint that does not answer.
        return min(resting, key=lambda one: (one.asked, one.again_at), default=None)

    def unplace(self, seat: Seat) -> None:
        """The request was not sent."""
        self._known[seat.url].asked -= 1

    def answered(self, seat: Seat, now: float, tokens: int) -> None:
        """A request was answered, and used so many tokens."""
        replica = self._known[seat.url]
        replica.asked -= 1
        replica.tokens += tokens
        replica.answered(now)

    def failed(self, seat: Seat, failure: Failure, sent_at: float, now: float) -> bool:
        """A request has failed; whether another replica may answer it, where the conversation then goes."""
        replica = self._known[seat.url]
        replica.asked -= 1
        kind = failure.kind
        if kind in FATAL:
            replica.barred = f"{kind.value} ({failure})"
        elif kind not in TRANSIENT:
            replica.answered(now)
            return False
        elif (failure.retry_after or 0.0) > LONGEST_WAIT_S:
            replica.rest(failure.retry_after or 0.0, now)
        else:
            replica.failed(kind, sent_at, now)
        if replica.lives and kind is not FailureKind.NETWORK:
            return False
        others = [one for one in self.listed if one is not replica]
        if not any(one.is_open if replica.barred else one.lives for one in others):
            return False
        seat.leave()
        return True
