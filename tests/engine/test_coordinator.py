"""Who plays which task: every task once, whatever is lost."""

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from propensitybench.engine.coordinator import (
    HOLD_EVERY_S,
    HOLD_S,
    LEAST_SHARE,
    LOSSES_TO_STOP,
    RESCUE_S,
    SHARE_EVERY_S,
    Coordinator,
    divide,
)
from propensitybench.engine.exchange import Rates

TASKS, WORKERS = 60, 4
RPM = 600.0


class Run(RuleBasedStateMachine):
    """A run on workers that come, end tasks and are lost; `open` is what each believes to be its own."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.coordinator = Coordinator(WORKERS, Rates(rpm=RPM), self.now)
        self.coordinator.add(range(TASKS))
        self.open: dict[int, list[int]] = {}
        self.lost: dict[int, list[int]] = {}
        self.ended: list[int] = []
        self.number = 0

    @precondition(lambda self: len(self.open) < WORKERS)
    @rule(slots=st.integers(1, 9))
    def join(self, slots: int) -> None:
        self.coordinator.join(self.number, slots)
        self.open[self.number] = []
        self.number += 1

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def lease(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.open)))
        self.open[worker] += self.coordinator.lease(worker)

    @precondition(lambda self: any(self.open.values()) or any(self.lost.values()))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A worker reports an outcome, or somebody reads one in the file of a lost one."""
        owned = [(w, task) for w, tasks in {**self.open, **self.lost}.items() for task in tasks]
        worker, task = data.draw(st.sampled_from(owned))
        self.open.get(worker, self.lost.get(worker, [])).remove(task)
        self.coordinator.used(worker, 1, 10)
        if self.coordinator.holds(worker, task):
            self.coordinator.ended(worker, task)
            self.ended.append(task)
        else:
            assert worker in self.lost

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.open)))
        self.coordinator.lose(worker, self.now)
        self.lost[worker] = self.open.pop(worker)
        assert self.coordinator.held(worker) == tuple(sorted(self.lost[worker]))
        assert self.coordinator.lease(worker) == ()
        assert self.coordinator.rates_of(worker) is None

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.lost)))
        self.coordinator.release(worker)
        assert not any(self.coordinator.holds(worker, task) for task in self.lost[worker])

    @rule(seconds=st.floats(0.01, 2 * RESCUE_S))
    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.coordinator.tick(self.now)

    @invariant()
    def every_task_is_waiting_held_or_ended(self) -> None:
        assert len(self.ended) == len(set(self.ended))
        assert self.coordinator.unfinished == TASKS - len(self.ended)
        held = [task for tasks in self.open.values() for task in tasks]
        assert len(held) == len(set(held))
        assert all(self.coordinator.holds(w, task) for w, tasks in self.open.items() for task in tasks)

    @invariant()
    def workers_together_never_exceed_the_rate(self) -> None:
        rates = [self.coordinator.rates_of(worker) for worker in self.open]
        assert sum(rate.rpm or inf for rate in rates if rate) <= RPM * (1 + 1e-9)

    def teardown(self) -> None:
        """Whatever happened, workers that are left end the run."""
        self.coordinator.tick(self.now + 2 * RESCUE_S)  # a sum of floats may fall short of one
        if not self.open:
            self.join(3)
        for _ in range(10 * TASKS):
            for worker, tasks in self.open.items():
                tasks += self.coordinator.lease(worker)
                for task in tasks:
                    self.coordinator.ended(worker, task)
                    self.ended.append(task)
                tasks.clear()
        assert sorted(self.ended) == list(range(TASKS))


TestRun = Run.TestCase
TestRun.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(
    st.floats(1, 1e6),
    st.dictionaries(st.integers(0, 50), st.floats(0, 1e7) | st.just(inf), min_size=1, max_size=20),
)
def test_a_whole_is_divided_by_what_each_wants(whole: float, wants: dict[int, float]) -> None:
    shares = divide(whole, wants)
    equal = whole / len(wants)
    assert sum(shares.values()) == pytest.approx(whole)
    for number, share in shares.items():
        assert share >= min(wants[number], equal) * (1 - 1e-9)
        assert share >= LEAST_SHARE * equal * (1 - 1e-9)


UNLIMITED = Rates()


def two(rates: Rates = UNLIMITED, tasks: int = 1000) -> Coordinator:
    """Two workers with ten slots each."""
    coordinator = Coordinator(2, rates, 0.0)
    coordinator.add(range(tasks))
    coordinator.join(0, 10)
    coordinator.join(1, 10)
    return coordinator


def test_a_worker_has_more_to_play_than_it_plays_at_once_except_near_the_end() -> None:
    many = two()
    assert many.lease(0) == tuple(range(15))
    assert many.lease(0) == ()
    for task in range(12):
        many.ended(0, task)
    assert len(many.lease(0)) == 10 + 24 - 3
    few = two(tasks=12)
    assert (len(few.lease(0)), len(few.lease(1))) == (6, 6)


def test_tasks_of_a_lost_worker_are_played_next_once_its_file_is_read() -> None:
    coordinator = two()
    first = coordinator.lease(0)
    coordinator.lose(0, 5.0)
    coordinator.tick(5.0 + RESCUE_S - 1)
    assert not set(coordinator.lease(1)) & set(first)
    coordinator.ended(0, first[3])
    assert coordinator.holds(0, first[0])
    coordinator.release(0)
    assert not coordinator.holds(0, first[0])  # what it reports from now on is refused
    coordinator.join(2, 40)
    assert coordinator.lease(2)[: len(first) - 1] == first[:3] + first[4:]


def test_tasks_of_a_lost_worker_whose_file_cannot_be_read_do_not_wait_for_ever() -> None:
    coordinator = two()
    first = coordinator.lease(0)
    coordinator.lose(0, 5.0)
    coordinator.tick(5.0 + RESCUE_S)
    assert coordinator.held(0) == ()
    assert coordinator.lease(1)[: len(first)] == first


def test_a_share_that_is_not_used_goes_to_those_that_need_it() -> None:
    coordinator = two(Rates(rpm=120, tpm=1000))
    assert coordinator.rates_of(0) == coordinator.rates_of(1) == Rates(60, 500)
    coordinator.lease(0)
    coordinator.lease(1)
    coordinator.used(0, 10, 80)
    coordinator.used(1, 2, 80)
    coordinator.tick(SHARE_EVERY_S)
    busy, idle = coordinator.rates_of(0), coordinator.rates_of(1)
    assert busy is not None
    assert idle is not None
    assert [busy.rpm, idle.rpm] == pytest.approx([102, 18])
    assert (busy.tpm, idle.tpm) == (500, 500)
    coordinator.join(2, 10)
    assert coordinator.rates_of(0) == coordinator.rates_of(2) == Rates(40, 1000 * (1 / 3))


def test_one_that_is_refused_makes_the_others_hold_but_not_all_the_time() -> None:
    coordinator = two()
    coordinator.throttled(0, 1, 100.0)
    assert (coordinator.hold_of(0), coordinator.hold_of(1), coordinator.hold_of(1)) == (0.0, HOLD_S, 0.0)
    coordinator.throttled(0, 2, 101.0)
    coordinator.throttled(0, 2, 100.0 + HOLD_EVERY_S)
    assert coordinator.hold_of(1) == 0.0
    coordinator.throttled(0, 3, 100.0 + HOLD_EVERY_S)
    assert coordinator.hold_of(1) == HOLD_S


def test_workers_that_are_lost_as_soon_as_they_begin_end_the_run_and_others_do_not() -> None:
    coordinator = two()
    for number in range(2, 2 + 2 * LOSSES_TO_STOP):
        coordinator.used(0, 1, 1)
        coordinator.join(number, 1)
        coordinator.lose(number, 0.0)
    assert not coordinator.is_hopeless
    for number in range(100, 99 + 2 * LOSSES_TO_STOP):
        coordinator.join(number, 1)
        coordinator.lose(number, 0.0)
    assert coordinator.is_hopeless
