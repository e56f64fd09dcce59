"""Which replica gets a request, which replicas are dead, and when one is asked again: time is passed in."""

from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from propensitybench.clients.failures import FATAL, TRANSIENT, Failure, FailureKind
from propensitybench.clients.limits import Rates, Seat
from propensitybench.clients.replicas import (
    DEAD_AFTER,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    SILENT_S,
    Replica,
    Replicas,
)
from propensitybench.clients.retry import LONGEST_WAIT_S

URLS = ("a", "b", "c", "d")
LOST = Failure(FailureKind.NETWORK, "closed")


def fleet(*urls: str, most: int = 64) -> Replicas:
    """Replicas that nothing is known of."""
    replicas = Replicas([Rates(None, None, 0.0)], most)
    replicas.enlist(urls, 0.0)
    return replicas


def placed(replicas: Replicas, now: float = 0.0, seat: Seat | None = None) -> Seat:
    """A conversation that has been placed."""
    seat = seat or Seat()
    assert replicas.place(seat, now) is not None
    return seat


def kill(replicas: Replicas, url: str, now: float = 0.0) -> None:
    """As many failures as it takes."""
    for _ in range(DEAD_AFTER):
        seat = Seat()
        seat.url = url
        placed(replicas, now, seat)
        replicas.failed(seat, LOST, now, now)
    assert not replicas[url].lives


class Fleet(RuleBasedStateMachine):
    """A fleet in every kind of trouble, against what must always be so."""

    @initialize(urls=st.sets(st.sampled_from(URLS), min_size=1))
    def start(self, urls: set[str]) -> None:
        self.replicas = fleet(*sorted(urls))
        self.listed = urls
        self.now = 0.0
        self.idle: list[Seat] = []
        self.flying: list[tuple[Seat, float]] = []
        # Failures since the last sign of life, and the first of them.
        self.failures: dict[str, list[float]] = {url: [] for url in URLS}
        self.barred: set[str] = set()
        self.resting: set[str] = set()

    def state(self) -> list[Replica]:
        return [self.replicas[url] for url in sorted(self.listed)]

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data(), new=st.booleans())
    def ask(self, data: st.DataObject, new: bool) -> None:
        seat = (
            Seat() if new or not self.idle else self.idle.pop(data.draw(st.integers(0, len(self.idle) - 1)))
        )
        before, avoid = seat.url, seat.avoid
        usable = [one for one in self.state() if one.is_open]
        living = [one for one in usable if one.lives]
        due = [one for one in usable if not one.lives and one.again_at <= self.now and not one.asked]
        load = {one.url: one.asked / one.limits.allowed for one in usable}
        got = self.replicas.place(seat, self.now)
        if got is None:
            assert not usable
            return
        self.flying.append((seat, self.now))
        assert got in usable
        assert seat.url == got.url
        if before in [one.url for one in living]:
            assert got.url == before
        elif got.lives:
            assert [one for one in due if one.url != avoid] == []
            others = [one for one in living if one.url != avoid] or living
            assert load[got.url] == min(load[one.url] for one in others)
        else:
            assert got in due or not living

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), tokens=st.integers(0, 1000))
    def answer(self, data: st.DataObject, tokens: int) -> None:
        seat, _ = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        self.replicas.answered(seat, self.now, tokens)
        self.alive(seat.url)
        self.idle.append(seat)

    def alive(self, url: str) -> None:
        self.failures[url] = []
        self.resting.discard(url)
        assert self.replicas[url].again_at == inf

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), kind=st.sampled_from(FailureKind), wait=st.sampled_from([None, 1.0, 1000.0]))
    def fail(self, data: st.DataObject, kind: FailureKind, wait: float | None) -> None:
        seat, sent_at = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        url = seat.url
        moves = self.replicas.failed(seat, Failure(kind, "x", wait), sent_at, self.now)
        if kind in FATAL:
            self.barred.add(url)
        elif kind in TRANSIENT and (wait or 0) > LONGEST_WAIT_S:
            self.resting.add(url)
        elif kind not in TRANSIENT or kind is FailureKind.RATE_LIMIT:
            self.alive(url)
        else:
            self.failures[url].append(self.now)
        assert moves == (seat.url == "")
        assert not moves or seat.avoid == url
        elsewhere = [one for one in self.state() if one.lives and one.url != url]
        if moves:
            assert elsewhere or url in self.barred
            assert kind is FailureKind.NETWORK or not self.replicas[url].lives
        elif kind in TRANSIENT and elsewhere:
            assert kind is not FailureKind.NETWORK
            assert self.replicas[url].lives
        self.idle.append(seat)

    @precondition(lambda self: self.flying)
    @rule()
    def cancel(self) -> None:
        seat, _ = self.flying.pop()
        self.replicas.unplace(seat)
        self.idle.append(seat)

    @rule(urls=st.sets(st.sampled_from(URLS), min_size=1))
    def change_the_list(self, urls: set[str]) -> None:
        self.replicas.enlist(urls, self.now)
        for url in urls - self.listed:
            self.barred.discard(url)
            self.alive(url)
        self.listed = urls

    @invariant()
    def every_request_is_counted_where_it_is(self) -> None:
        where = [seat.url for seat, _ in self.flying]
        for one in self.state():
            assert one.asked == where.count(one.url)

    @invariant()
    def none_is_dead_without_a_reason(self) -> None:
        for one in self.state():
            assert bool(one.barred) == (one.url in self.barred)
            if one.again_at < inf and one.url not in self.resting:
                failures = self.failures[one.url]
                assert len(failures) >= DEAD_AFTER or self.now - failures[0] >= SILENT_S


TestFleet = Fleet.TestCase
TestFleet.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_conversations_are_spread_evenly_and_stay() -> None:
    replicas = fleet("a", "b", "c")
    seats = [placed(replicas) for _ in range(9)]
    assert sorted(seat.url for seat in seats) == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    before = [seat.url for seat in seats]
    for seat in seats:
        replicas.answered(seat, 1.0, 10)
    assert [placed(replicas, 2.0, seat).url for seat in reversed(seats)] == before[::-1]


def test_of_equally_busy_ones_the_next_is_the_one_that_has_served_the_fewest_tokens() -> None:
    replicas = fleet("a", "b", "c")
    for url, tokens in (("a", 30), ("b", 10), ("c", 20)):
        seat = Seat()
        seat.url = url
        replicas.answered(placed(replicas, 0.0, seat), 1.0, tokens)
    assert [placed(replicas, 2.0).url for _ in range(4)] == ["b", "c", "a", "b"]


def test_one_that_is_allowed_less_gets_less() -> None:
    replicas = fleet("a", "b")
    replicas["a"].limits.keys[0].limit = 2.0
    where = [placed(replicas).url for _ in range(2 + 64)]
    assert where.count("a") == 2


def test_one_that_asked_for_a_pause_gets_no_new_conversation() -> None:
    replicas = fleet("a", "b")
    limits = replicas["a"].limits
    lease = limits.enter(0.0, 1)
    assert not isinstance(lease, float)
    limits.leave(lease, 0.0, FailureKind.RATE_LIMIT, retry_after=30.0)
    assert {placed(replicas, 1.0).url for _ in range(20)} == {"b"}
    assert "a" in {placed(replicas, 31.0).url for _ in range(20)}


def test_a_dead_one_is_asked_by_one_request_at_a_time_after_growing_pauses() -> None:
    replicas = fleet("a", "b")
    kill(replicas, "a")
    now, pauses = 0.0, []
    for _ in range(9):
        assert {placed(replicas, now + 0.9 * FIRST_PAUSE_S).url for _ in range(3)} == {"b"}
        pauses.append(replicas["a"].again_at - now)
        now = replicas["a"].again_at
        first, second = placed(replicas, now), placed(replicas, now)
        assert (first.url, second.url) == ("a", "b")
        assert replicas.failed(first, LOST, now, now)
        assert placed(replicas, now, first).url == "b"
    assert pauses == [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(9)]
    now = replicas["a"].again_at
    replicas.answered(placed(replicas, now), now, 1)
    assert replicas["a"].lives
    assert "a" in [placed(replicas, now).url for _ in range(2)]


def test_a_conversation_whose_connection_was_lost_goes_elsewhere_even_if_its_replica_lives() -> None:
    replicas = fleet("a", "b")
    seats = [placed(replicas) for _ in range(3)]
    assert [seat.url for seat in seats] == ["a", "b", "a"]
    replicas.answered(seats[2], 1.0, 1)
    assert replicas.failed(seats[0], LOST, 0.0, 1.0)
    assert replicas["a"].lives
    assert placed(replicas, 1.0, seats[0]).url == "b"


def test_timeouts_count_only_if_nothing_was_answered_since_they_were_sent() -> None:
    replicas = fleet("a", "b")
    late = Failure(FailureKind.TIMEOUT, "no answer")
    for answered_at, lives in ((5.0, True), (1.0, False)):
        seats = []
        for _ in range(DEAD_AFTER + 1):
            seat = Seat()
            seat.url = "a"
            seats.append(placed(replicas, 2.0, seat))
        replicas.answered(seats.pop(), answered_at, 1)
        moved = [replicas.failed(seat, late, 2.0, 600.0) for seat in seats]
        assert replicas["a"].lives == lives
        assert moved == [False] * (DEAD_AFTER - 1) + [not lives]


@pytest.mark.parametrize(("seconds", "lives"), [(0.9 * SILENT_S, True), (SILENT_S, False)])
def test_overload_is_no_death_unless_nothing_else_is_answered_for_long(seconds: float, lives: bool) -> None:
    replicas = fleet("a", "b")
    seat = placed(replicas)
    url = seat.url
    overloaded = Failure(FailureKind.OVERLOADED, "HTTP 503")
    for step in range(11):
        assert replicas[url].lives
        now = seconds * step / 10
        moves = replicas.failed(seat, overloaded, now, now)
        assert moves == (step == 10 and not lives)
        placed(replicas, now, seat)
    assert replicas[url].lives == lives


def test_rate_limits_are_never_a_death() -> None:
    replicas = fleet("a", "b")
    for step in range(100):
        seat = Seat()
        seat.url = "a"
        placed(replicas, float(step), seat)
        assert not replicas.failed(seat, Failure(FailureKind.RATE_LIMIT, "HTTP 429"), step, step)
    assert replicas["a"].lives


def test_when_none_lives_all_are_asked_as_a_single_one_would_be() -> None:
    replicas = fleet("a", "b")
    kill(replicas, "a")
    kill(replicas, "b")
    seats = [placed(replicas, 0.1) for _ in range(6)]
    assert [seat.url for seat in seats].count("a") == 3
    assert not any(replicas.failed(seat, LOST, 0.1, 0.2) for seat in seats)


def test_a_barred_one_is_left_even_for_one_that_is_dead_and_the_last_one_is_not_left() -> None:
    replicas = fleet("a", "b")
    wrong_key = Failure(FailureKind.AUTH, "HTTP 401")
    kill(replicas, "b")
    seat = placed(replicas)
    assert replicas.failed(seat, wrong_key, 0.0, 0.0)
    assert replicas["a"].barred == "authentication (HTTP 401)"
    assert placed(replicas, 0.1, seat).url == "b"
    assert not replicas.failed(seat, wrong_key, 0.1, 0.2)
    assert replicas.place(Seat(), 0.3) is None
