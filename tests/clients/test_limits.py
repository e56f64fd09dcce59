"""How many requests may be in flight and when, and when to retry: time is passed in, nothing sleeps."""

import heapq
import itertools
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.clients.failures import THROTTLED, TRANSIENT, Failure, FailureKind
from propensitybench.clients.limits import BURST_S, FIRST_LIMIT, Lease, Limits, Rates
from propensitybench.clients.retry import LONGEST_WAIT_S, Backoff

# What a comparison of sums of floats may be off by.
EPSILON = 1e-6
OUTCOMES = st.one_of(st.none(), st.sampled_from(list(FailureKind)))


def lease(limits: Limits, now: float = 0.0, tokens: int = 1) -> Lease:
    """A lease that must be there to be had."""
    got = limits.enter(now, tokens)
    assert isinstance(got, Lease), f"wait {got}"
    return got


def fill(limits: Limits, now: float = 0.0) -> list[Lease]:
    """Every lease that can be had at once."""
    leases = []
    while isinstance(got := limits.enter(now, 1), Lease):
        leases.append(got)
    return leases


def free(most: int = 1000, keys: int = 1) -> Limits:
    """Limits of the number in flight alone."""
    return Limits([Rates(None, None, 0.0) for _ in range(keys)], most, 0.0)


def limited(rpm: float | None, tpm: float | None) -> Limits:
    """Limits of one key, that have hardly any of the number in flight."""
    return Limits([Rates(rpm, tpm, 0.0)], 10**6, 0.0)


@given(st.integers(1, 90), st.lists(st.tuples(st.booleans(), OUTCOMES, st.floats(0, 5)), max_size=300))
def test_in_flight_stays_within_what_is_allowed(
    most: int, steps: list[tuple[bool, FailureKind | None, float]]
) -> None:
    limits = free(most)
    (key,) = limits.keys
    out: list[Lease] = []
    now = 0.0
    for enters, failed, passed in steps:
        now += passed
        if enters or not out:
            before = key.limit
            got = limits.enter(now, 1)
            if isinstance(got, Lease):
                out.append(got)
                assert key.in_flight <= before
        else:
            limits.leave(out.pop(0), now, failed, passed)
        assert key.in_flight == len(out) <= most
        assert 1 <= key.limit <= most


@given(st.integers(1, 6), st.integers(1, 40))
def test_several_keys_together_stay_within_what_is_allowed(keys: int, each: int) -> None:
    assert len(fill(free(keys * each, keys))) == keys * min(each, FIRST_LIMIT)


@pytest.mark.parametrize(("most", "keys"), [(3, 2), (1, 2), (7, 5)])
def test_what_is_allowed_need_not_be_a_multiple_of_the_keys(most: int, keys: int) -> None:
    assert len(fill(free(most, keys))) <= most


def test_the_number_in_flight_doubles_with_every_round_of_answers() -> None:
    limits = free(1000)
    seen = []
    for _ in range(7):
        leases = fill(limits)
        seen.append(len(leases))
        for one in leases:
            limits.leave(one, 0.0)
    assert seen == [FIRST_LIMIT * 2**round_ for round_ in range(6)] + [1000]


@pytest.mark.parametrize("sign", [kind for kind in FailureKind if kind in THROTTLED])
def test_a_sign_of_too_much_halves_and_a_volley_of_them_counts_once(sign: FailureKind) -> None:
    limits = free(64)
    leases = fill(limits, 1.0)
    counted = [limits.leave(one, 2.0, sign) for one in leases]
    assert limits.keys[0].limit == FIRST_LIMIT / 2
    assert counted == [True] + [False] * (FIRST_LIMIT - 1)
    assert limits.leave(lease(limits, 3.0), 4.0, sign)
    assert limits.keys[0].limit == FIRST_LIMIT / 4


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in THROTTLED])
def test_other_failures_change_nothing(kind: FailureKind) -> None:
    limits = free(100)
    assert limits.leave(lease(limits), 1.0, kind)
    assert limits.keys[0].limit == FIRST_LIMIT


def test_after_a_halving_it_grows_by_about_one_a_round() -> None:
    limits = free(64)
    limits.leave(lease(limits, 1.0), 2.0, FailureKind.RATE_LIMIT)
    leases = fill(limits, 3.0)
    for one in leases:
        limits.leave(one, 4.0)
    half = FIRST_LIMIT // 2
    assert len(leases) == half
    assert half + 0.9 < limits.keys[0].limit < half + 1.1


def test_it_never_falls_below_one() -> None:
    limits = free(2)
    for now in range(1, 20):
        limits.leave(lease(limits, float(now)), now + 0.5, FailureKind.OVERLOADED)
    assert limits.keys[0].limit == 1
    assert isinstance(limits.enter(30.0, 1), Lease)


def test_full_means_waiting_for_another_to_come_back() -> None:
    limits = free(1)
    first = lease(limits)
    assert limits.enter(5.0, 1) == float("inf")
    limits.leave(first, 6.0)
    assert isinstance(limits.enter(6.0, 1), Lease)


def test_a_provider_that_asks_for_patience_gets_it_on_that_key_alone() -> None:
    limits = free(10, keys=2)
    first = lease(limits)
    limits.leave(first, 1.0, FailureKind.RATE_LIMIT, retry_after=30.0)
    assert {lease(limits, 2.0).key for _ in range(3)} == {1 - first.key}
    fill(limits, 2.0)
    assert limits.enter(11.0, 1) == 20.0
    assert lease(limits, 31.0).key == first.key


def test_a_later_shorter_wish_does_not_cut_an_earlier_one_short() -> None:
    limits = free(10)
    first, second = lease(limits), lease(limits)
    limits.leave(first, 1.0, FailureKind.RATE_LIMIT, retry_after=30.0)
    limits.leave(second, 2.0, FailureKind.RATE_LIMIT, retry_after=1.0)
    assert limits.enter(3.0, 1) == 28.0


@given(st.integers(1, 5), st.integers(1, 30))
def test_keys_take_turns(keys: int, rounds: int) -> None:
    limits = free(10**6, keys)
    used = [lease(limits).key for _ in range(min(rounds, FIRST_LIMIT) * keys)]
    assert used == list(range(keys)) * min(rounds, FIRST_LIMIT)


@given(st.integers(1, 5000), st.lists(st.floats(0, 3), min_size=2, max_size=150))
def test_no_window_has_more_requests_than_the_rate_and_one_burst(rpm: int, pauses: list[float]) -> None:
    limits = limited(rpm, None)
    sent: list[float] = []
    now = 0.0
    for pause in pauses:
        now += pause
        if isinstance(got := limits.enter(now, 1), Lease):
            sent.append(now)
            limits.leave(got, now)
    burst = max(1.0, rpm / 60 * BURST_S)
    for first, since in enumerate(sent):
        for last, until in enumerate(sent[first:], first):
            assert last - first + 1 <= burst + rpm / 60 * (until - since) + EPSILON


@given(st.integers(60, 100_000), st.lists(st.tuples(st.floats(0, 3), st.floats(0, 1)), max_size=150))
def test_no_window_has_more_tokens_than_the_rate_and_one_burst(
    tpm: int, asked: list[tuple[float, float]]
) -> None:
    limits = limited(None, tpm)
    burst = tpm / 60 * BURST_S
    now, total, lowest = 0.0, 0.0, 0.0
    for pause, share in asked:
        now += pause
        tokens = int(share * burst)
        if isinstance(got := limits.enter(now, tokens), Lease):
            total += tokens
            limits.leave(got, now, used=tokens)
            # The most that any window ending here holds, over what the rate alone gives.
            assert total - tpm / 60 * now - lowest <= burst + EPSILON
        lowest = min(lowest, total - tpm / 60 * now)


@given(
    st.integers(1, 600),
    st.one_of(st.none(), st.integers(60, 10_000)),
    st.lists(st.tuples(st.floats(0, 2), st.integers(0, 500)), min_size=1, max_size=60),
)
def test_the_wait_that_is_told_is_enough(rpm: int, tpm: int | None, asked: list[tuple[float, int]]) -> None:
    limits = limited(rpm, tpm)
    now = 0.0
    for pause, tokens in asked:
        now += pause
        got = limits.enter(now, tokens)
        if not isinstance(got, Lease):
            assert 0 < got < float("inf")
            now += got + EPSILON
            got = lease(limits, now, tokens)
        limits.leave(got, now, used=tokens)


def test_tokens_are_corrected_by_what_was_used() -> None:
    limits = limited(None, 6000)  # 100 a second, 100 at once
    got = lease(limits, tokens=100)
    assert limits.enter(0.0, 50) == pytest.approx(0.5)
    limits.leave(got, 0.0, used=20)
    assert isinstance(limits.enter(0.0, 50), Lease)
    limits.leave(lease(limits, tokens=30), 0.0, used=330)
    assert limits.enter(0.0, 100) == pytest.approx(4.0)


def test_a_failed_request_gives_its_tokens_back() -> None:
    limits = limited(None, 6000)
    limits.leave(lease(limits, tokens=100), 0.0, FailureKind.NETWORK)
    assert isinstance(limits.enter(0.0, 100), Lease)


def test_a_request_larger_than_a_burst_is_let_through_and_paid_for_afterwards() -> None:
    limits = limited(None, 6000)
    limits.leave(lease(limits, tokens=1000), 0.0, used=1000)
    assert limits.enter(0.0, 1000) == pytest.approx(10.0)


@given(
    st.lists(st.tuples(st.floats(0, 3), st.one_of(st.none(), st.floats(1, 5000))), min_size=1, max_size=60)
)
def test_a_change_of_rates_gives_no_burst_of_its_own(changes: list[tuple[float, float | None]]) -> None:
    """After a change nothing is sent that the rates since then, and what was left before, do not allow."""
    rates = Rates(60.0, None, 0.0)
    limits = Limits([rates], 10**6, 0.0)
    now, per_minute, left = 0.0, 60.0, 1.0
    for passed, rpm in changes:
        now += passed
        left = min(max(1.0, per_minute / 60 * BURST_S), left + per_minute / 60 * passed)
        rates.change(rpm, None, now)
        if rpm is None:
            assert len(fill_some(limits, now, 100)) == 100
            rates.change(60.0, None, now)
            rpm, left = 60.0, 0.0
        per_minute = rpm
        left = min(left, max(1.0, rpm / 60 * BURST_S))
        sent = len(fill_some(limits, now, 1000))
        assert sent <= left + EPSILON
        assert sent >= int(left - EPSILON)
        left -= sent


def fill_some(limits: Limits, now: float, most: int) -> list[Lease]:
    """So many leases, if they can be had at once; each is given back."""
    leases: list[Lease] = []
    while len(leases) < most and isinstance(got := limits.enter(now, 0), Lease):
        limits.leave(got, now)
        leases.append(got)
    return leases


def test_rates_count_over_all_replicas_and_a_hold_is_for_all_of_them() -> None:
    rates = Rates(60.0, 6000.0, 0.0)
    here, there = Limits([rates], 10, 0.0), Limits([rates], 10, 0.0)
    here.leave(lease(here, tokens=100), 0.0, used=300)
    assert there.enter(0.0, 100) == pytest.approx(3.0)
    rates.hold(10.0)
    rates.hold(5.0)
    assert (here.enter(4.0, 1), there.enter(4.0, 1)) == (6.0, 6.0)
    lease(there, 10.0)


@given(st.floats(1e-3, 0.5))
def test_a_rate_of_less_than_one_request_a_minute_still_sends_one(rpm: float) -> None:
    limits = limited(rpm, rpm)
    limits.leave(lease(limits, tokens=50), 0.0, used=50)
    wait = limits.enter(0.0, 50)
    assert isinstance(wait, float)
    assert wait >= 60 / rpm * (1 - EPSILON)
    lease(limits, wait + EPSILON * wait, 50)


class Outcome(NamedTuple):
    """What came of a client that always has more to send, and of its last requests."""

    limit: float
    replies: int
    refused: int
    seconds: float


class Slots:
    """A server with a number of slots on a clock of its own; beyond them requests wait, or are refused."""

    def __init__(self, number: int, *, refuses: bool = False, service: Callable[[], float] = lambda: 1.0):
        self._free_at = [0.0] * number
        self._refuses = refuses
        self._service = service

    def back_at(self, now: float) -> tuple[float, FailureKind | None]:
        """When a request that is sent now comes back, and with what."""
        if self._refuses and self._free_at[0] > now:
            return now + 0.01, FailureKind.OVERLOADED
        done = max(now, self._free_at[0]) + self._service()
        heapq.heapreplace(self._free_at, done)
        return done, None


def simulate(server: Slots, most: int, replies: int) -> list[Outcome]:
    """Sends as the limits allow; the outcome of each tenth of the replies."""
    limits, now, count = free(most), 0.0, 0
    flying: list[tuple[float, int, Lease, FailureKind | None]] = []
    parts, part_since, refused = [], 0.0, 0
    for number in itertools.count():
        while isinstance(got := limits.enter(now, 1), Lease):
            back, failed = server.back_at(now)
            heapq.heappush(flying, (back, number, got, failed))
            number += 1
        now, _, got, failed = heapq.heappop(flying)
        limits.leave(got, now, failed)
        count += failed is None
        refused += failed is not None
        if failed is None and count % (replies // 10) == 0:
            parts.append(Outcome(limits.keys[0].limit, replies // 10, refused, now - part_since))
            part_since, refused = now, 0
            if len(parts) == 10:
                return parts
    raise AssertionError


def test_on_few_slots_with_a_queue_it_stops_growing_when_more_brings_no_more() -> None:
    parts = simulate(Slots(8), 64, 2000)
    assert max(part.limit for part in parts) <= 48
    assert parts[-1].limit < 32
    assert parts[-1].seconds == pytest.approx(200 / 8, rel=0.05)


def test_on_few_slots_that_refuse_it_keeps_them_busy_and_is_seldom_refused() -> None:
    last = simulate(Slots(8, refuses=True), 64, 2000)[-1]
    assert last.refused < 0.1 * last.replies
    assert last.replies / last.seconds > 0.7 * 8


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_on_many_slots_it_grows_to_what_is_allowed(spread: float) -> None:
    chance = Random(7)
    server = Slots(10_000, service=lambda: 1.0 + spread * chance.uniform(-1, 1))
    assert simulate(server, 1000, 60_000)[-1].limit == 1000


FAILED = Failure(FailureKind.SERVER, "x")


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True), st.one_of(st.none(), st.floats(0, 1e6)))
def test_backoff_doubles_up_to_a_bound_unless_more_is_asked_for(
    attempts: int, jitter: float, asked: float | None
) -> None:
    wait = Backoff(60, 0.5, 60.0).wait(Failure(FailureKind.RATE_LIMIT, "x", asked), attempts, jitter)
    most = min(60.0, 0.5 * 2 ** (attempts - 1))
    assert wait is not None
    if asked is not None and asked >= most:
        assert wait == asked
    else:
        assert max(most / 2, asked or 0) <= wait <= most


@given(st.integers(0, 30))
def test_tries_are_bounded(max_retries: int) -> None:
    backoff = Backoff(max_retries)
    waits = [backoff.wait(FAILED, attempts, 0.0) for attempts in range(1, max_retries + 5)]
    assert [wait is not None for wait in waits] == [True] * max_retries + [False] * 4


@pytest.mark.parametrize("kind", list(FailureKind))
def test_only_what_may_pass_is_tried_again(kind: FailureKind) -> None:
    wait = Backoff().wait(Failure(kind, "x", 0.0), 1, 0.0)
    assert (wait is not None) == (kind in TRANSIENT)


def test_a_wish_for_another_day_is_told_as_it_is() -> None:
    """Whoever asks decides what is too long: the decision does not cut it."""
    wait = Backoff().wait(Failure(FailureKind.RATE_LIMIT, "x", 10 * LONGEST_WAIT_S), 1, 0.0)
    assert wait == 10 * LONGEST_WAIT_S
