"""How many requests may be in flight and when, and when to retry: time is passed in, nothing sleeps."""

import heapq
import itertools
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.clients.executor import FIRST_PAUSE_S, MAX_PAUSE_S, pause_before
from propensitybench.clients.failures import THROTTLED, TRANSIENT, FailureKind
from propensitybench.clients.limits import BURST_S, RECOVERY, RequestPermit, SendingLimits
from propensitybench.clients.options import RequestLimits

# What a comparison of sums of floats may be off by.
EPSILON = 1e-6
OUTCOMES = st.one_of(st.none(), st.sampled_from(list(FailureKind)))


def permit(limits: SendingLimits, now: float = 0.0, tokens: int = 1) -> RequestPermit:
    """A permit that must be there to be had."""
    got = limits.enter(now, tokens)
    assert isinstance(got, RequestPermit), f"wait {got}"
    return got


def fill(limits: SendingLimits, now: float = 0.0) -> list[RequestPermit]:
    """Every permit that can be had at once."""
    permits = []
    while isinstance(got := limits.enter(now, 1), RequestPermit):
        permits.append(got)
    return permits


def leave(
    limits: SendingLimits,
    permit: RequestPermit,
    now: float,
    failed: FailureKind | None = None,
    retry_after: float = 0.0,
    used: int = 0,
) -> bool:
    """Gives a permit back; whether a failure counts."""
    if failed is not None:
        return limits.failed(permit, now, failed, retry_after)
    limits.answered(permit, used)
    return True


def free(most: int = 1000, keys: int = 1) -> SendingLimits:
    """Limits of the number in flight alone."""
    return SendingLimits(keys, RequestLimits(concurrency=most), 0.0)


def limited(rpm: float | None, tpm: float | None) -> SendingLimits:
    """Limits of one key, that have hardly any of the number in flight."""
    return SendingLimits(1, RequestLimits(rpm=rpm, tpm=tpm, concurrency=10**6), 0.0)


@given(st.integers(1, 90), st.lists(st.tuples(st.booleans(), OUTCOMES, st.floats(0, 5)), max_size=300))
def test_in_flight_stays_within_what_is_allowed(
    most: int, steps: list[tuple[bool, FailureKind | None, float]]
) -> None:
    limits = free(most)
    (key,) = limits.keys
    out: list[RequestPermit] = []
    now = 0.0
    for enters, failed, passed in steps:
        now += passed
        if enters or not out:
            before = key.limit
            got = limits.enter(now, 1)
            if isinstance(got, RequestPermit):
                out.append(got)
                assert key.in_flight <= before
        else:
            leave(limits, out.pop(0), now, failed, passed)
        assert key.in_flight == len(out) <= most
        assert 1 <= key.limit <= most


@given(st.integers(1, 6), st.integers(1, 40))
def test_several_keys_together_stay_within_what_is_allowed(keys: int, each: int) -> None:
    assert len(fill(free(keys * each, keys))) == keys * each


@pytest.mark.parametrize(("most", "keys"), [(3, 2), (1, 2), (7, 5)])
def test_what_is_allowed_need_not_be_a_multiple_of_the_keys(most: int, keys: int) -> None:
    assert len(fill(free(most, keys))) <= most


@pytest.mark.parametrize("sign", [kind for kind in FailureKind if kind in THROTTLED])
def test_a_refusal_takes_one_away_and_a_volley_of_them_half_and_counts_once(sign: FailureKind) -> None:
    limits = free(64)
    permits = fill(limits, 1.0)
    counted = [leave(limits, one, 2.0, sign) for one in permits[:8]]
    assert limits.keys[0].limit == 64 - 8
    counted += [leave(limits, one, 2.0, sign) for one in permits[8:]]
    assert limits.keys[0].limit == 64 / 2
    assert counted == [True] + [False] * 63
    assert leave(limits, permit(limits, 3.0), 4.0, sign)
    assert limits.keys[0].limit == 64 / 2 - 1


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in THROTTLED])
def test_other_failures_change_nothing(kind: FailureKind) -> None:
    limits = free(100)
    assert leave(limits, permit(limits), 1.0, kind)
    assert limits.keys[0].limit == 100


def test_answers_give_back_what_a_refusal_took_and_no_more() -> None:
    limits = free(64)
    leave(limits, permit(limits, 1.0), 2.0, FailureKind.RATE_LIMIT)
    answers = round(1 / RECOVERY)
    for _ in range(answers - 1):
        leave(limits, permit(limits, 3.0), 4.0)
    assert len(fill(limits, 5.0)) == 63
    limits = free(64)
    leave(limits, permit(limits, 1.0), 2.0, FailureKind.RATE_LIMIT)
    for _ in range(2 * answers):
        leave(limits, permit(limits, 3.0), 4.0)
    assert len(fill(limits, 5.0)) == 64


def test_it_never_falls_below_one() -> None:
    limits = free(2)
    for now in range(1, 20):
        leave(limits, permit(limits, float(now)), now + 0.5, FailureKind.OVERLOADED)
    assert limits.keys[0].limit == 1
    assert isinstance(limits.enter(30.0, 1), RequestPermit)


def test_full_means_waiting_for_another_to_come_back() -> None:
    limits = free(1)
    first = permit(limits)
    assert limits.enter(5.0, 1) == float("inf")
    leave(limits, first, 6.0)
    assert isinstance(limits.enter(6.0, 1), RequestPermit)


def test_a_provider_that_asks_for_patience_gets_it_on_that_key_alone() -> None:
    limits = free(10, keys=2)
    first = permit(limits)
    leave(limits, first, 1.0, FailureKind.RATE_LIMIT, retry_after=30.0)
    assert {permit(limits, 2.0).key for _ in range(3)} == {1 - first.key}
    fill(limits, 2.0)
    assert limits.enter(11.0, 1) == 20.0
    assert permit(limits, 31.0).key == first.key


def test_a_later_shorter_wish_does_not_cut_an_earlier_one_short() -> None:
    limits = free(10)
    first, second = permit(limits), permit(limits)
    leave(limits, first, 1.0, FailureKind.RATE_LIMIT, retry_after=30.0)
    leave(limits, second, 2.0, FailureKind.RATE_LIMIT, retry_after=1.0)
    assert limits.enter(3.0, 1) == 28.0


@given(st.integers(1, 5), st.integers(1, 30))
def test_keys_take_turns(keys: int, rounds: int) -> None:
    limits = free(10**6, keys)
    used = [permit(limits).key for _ in range(rounds * keys)]
    assert used == list(range(keys)) * rounds


@given(st.integers(1, 5000), st.lists(st.floats(0, 3), min_size=2, max_size=150))
def test_no_window_has_more_requests_than_the_rate_and_one_burst(rpm: int, pauses: list[float]) -> None:
    limits = limited(rpm, None)
    sent: list[float] = []
    now = 0.0
    for pause in pauses:
        now += pause
        if isinstance(got := limits.enter(now, 1), RequestPermit):
            sent.append(now)
            leave(limits, got, now)
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
        if isinstance(got := limits.enter(now, tokens), RequestPermit):
            total += tokens
            leave(limits, got, now, used=tokens)
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
        if not isinstance(got, RequestPermit):
            assert 0 < got < float("inf")
            now += got + EPSILON
            got = permit(limits, now, tokens)
        leave(limits, got, now, used=tokens)


def test_tokens_are_corrected_by_what_was_used() -> None:
    limits = limited(None, 6000)  # 100 a second, 100 at once
    got = permit(limits, tokens=100)
    assert limits.enter(0.0, 50) == pytest.approx(0.5)
    leave(limits, got, 0.0, used=20)
    assert isinstance(limits.enter(0.0, 50), RequestPermit)
    leave(limits, permit(limits, tokens=30), 0.0, used=330)
    assert limits.enter(0.0, 100) == pytest.approx(4.0)


def test_a_failed_request_gives_its_tokens_back() -> None:
    limits = limited(None, 6000)
    leave(limits, permit(limits, tokens=100), 0.0, FailureKind.NETWORK)
    assert isinstance(limits.enter(0.0, 100), RequestPermit)


def test_a_request_larger_than_a_burst_is_let_through_and_paid_for_afterwards() -> None:
    limits = limited(None, 6000)
    leave(limits, permit(limits, tokens=1000), 0.0, used=1000)
    assert limits.enter(0.0, 1000) == pytest.approx(10.0)


@given(st.floats(1e-3, 0.5))
def test_a_rate_of_less_than_one_request_a_minute_still_sends_one(rpm: float) -> None:
    limits = limited(rpm, rpm)
    leave(limits, permit(limits, tokens=50), 0.0, used=50)
    wait = limits.enter(0.0, 50)
    assert isinstance(wait, float)
    assert wait >= 60 / rpm * (1 - EPSILON)
    permit(limits, wait + EPSILON * wait, 50)


class Played(NamedTuple):
    """What came of conversations, each of which has one request at a time."""

    lowest: float  # the limit
    in_flight: float  # on average, without those that were refused
    answers: int
    refused: int
    given_up: int  # requests that had no retry left


class Endpoint:
    """An endpoint on a clock of its own, without any queue: a request takes as long however many there are.

    Args:
        service: seconds to a reply.
        failure: of a request in so many; it comes back after 10 ms.
        one_in: 0 if none fails.
        at_once: requests that it takes at a time; others are refused.
    """

    def __init__(
        self,
        service: Callable[[Random], float],
        failure: FailureKind = FailureKind.RATE_LIMIT,
        one_in: int = 0,
        at_once: int = 10**6,
    ) -> None:
        self.service = service
        self.failure = failure
        self.one_in = one_in
        self.at_once = at_once


def play(endpoint: Endpoint, concurrency: int, seconds: float, seed: int) -> Played:
    """Plays as many conversations as are asked for, with the retries and pauses of the client."""
    chance, limits, most_retries = Random(seed), free(concurrency), RequestLimits().max_retries
    (key,) = limits.keys
    now, served, area, lowest = 0.0, 0, 0.0, key.limit
    answers = refused = given_up = 0
    ready = [0] * concurrency  # the counted attempts of each request that waits for its turn
    order = itertools.count()
    events: list[tuple[float, int, int, RequestPermit | None, FailureKind | None]] = []
    while now < seconds:
        while ready and isinstance(got := limits.enter(now, 1), RequestPermit):
            is_bad = endpoint.one_in and not chance.randrange(endpoint.one_in)
            failed = endpoint.failure if is_bad or served >= endpoint.at_once else None
            served += failed is None
            back = now + (0.01 if failed else endpoint.service(chance))
            heapq.heappush(events, (back, next(order), ready.pop(0), got, failed))
        then, _, attempts, sent, failed = heapq.heappop(events)
        area, now = area + served * (then - now), then
        if sent is None:  # its pause is over
            ready.append(attempts)
            continue
        counts = leave(limits, sent, now, failed)
        lowest = min(lowest, key.limit)
        if failed is None:
            answers, served = answers + 1, served - 1
            ready.append(0)
            continue
        refused += 1
        again = attempts + counts
        if again > most_retries:
            given_up += 1
            again = 0
        pause = pause_before(again, None, chance.random())
        heapq.heappush(events, (now + pause, next(order), again, None, None))
    return Played(lowest, area / now, answers, refused, given_up)


def half_a_second(_chance: Random) -> float:
    return 0.5


@pytest.mark.parametrize("seed", range(3))
def test_replies_of_different_lengths_change_nothing(seed: int) -> None:
    """Tool calls after about a second, and as many replies with reasoning after about half a minute."""
    mixed = Endpoint(lambda chance: chance.choice((1, 30)) * chance.uniform(0.75, 1.25))
    played = play(mixed, 1024, 900, seed)
    assert played.lowest == 1024
    assert played.in_flight > 1023


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind in TRANSIENT - THROTTLED])
def test_failures_that_have_other_reasons_do_not_slow_a_run_down(kind: FailureKind) -> None:
    played = play(Endpoint(half_a_second, kind, one_in=30), 64, 60, seed=1)
    assert played.refused > 100
    assert played.lowest == 64


@pytest.mark.parametrize("one_in", [500, 100, 20])
def test_rare_refusals_hardly_slow_a_run_down(one_in: int) -> None:
    played = play(Endpoint(half_a_second, one_in=one_in), 64, 300, seed=2)
    assert played.refused > 50
    assert played.in_flight > 0.9 * 64


@pytest.mark.parametrize("service", [0.5, 30.0])
def test_an_endpoint_that_takes_only_so_many_is_kept_busy_and_seldom_refuses(service: float) -> None:
    strict = Endpoint(lambda chance: service * chance.uniform(0.5, 1.5), at_once=16)
    played = play(strict, 64, 600 * service, seed=3)
    assert played.in_flight > 12
    assert played.refused < 0.2 * played.answers
    assert played.given_up == 0


def test_after_an_overload_has_passed_the_number_in_flight_comes_back() -> None:
    limits, now = free(64), 1.0
    while limits.keys[0].limit > 1:
        for one in fill(limits, now):
            leave(limits, one, now + 0.5, FailureKind.OVERLOADED)
        now += 1
    rounds = 0
    while limits.keys[0].limit < 64:
        for one in fill(limits, now):
            leave(limits, one, now + 0.5)
        now, rounds = now + 1, rounds + 1
    assert rounds < 50


@given(st.integers(1, 60), st.floats(0, 1, exclude_max=True), st.one_of(st.none(), st.floats(0, 1e6)))
def test_pauses_double_up_to_a_bound_unless_more_is_asked_for(
    attempts: int, jitter: float, asked: float | None
) -> None:
    wait = pause_before(attempts, asked, jitter)
    most = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempts - 1))
    if asked is not None and asked >= most:
        assert wait == asked
    else:
        assert max(most / 2, asked or 0) <= wait <= most
