"""Who plays which task: the decisions of a run on several workers, without I/O and with the time passed in.

A worker is known by a number that is never given again, so a worker that was lost stays lost: whatever it
reports afterwards is refused, since its tasks belong to nobody or to another. A task belongs to one worker
at a time (`holder`), and only its entries count. So no task ever gets two journals.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from math import ceil, inf
from typing import Final

from propensitybench.engine.exchange import Rates

# Seconds in which a lost worker's own file has to be read; then its tasks are played from what was reported.
RESCUE_S: Final = 60.0
# Workers are told to hold their requests for so long, but not more often than that: a provider that refuses
# a few requests all the time must not hold the whole run all the time.
HOLD_S: Final = 1.0
HOLD_EVERY_S: Final = 10.0
# Rates are shared again so often. In less time a worker sends too few requests to tell what it needs.
SHARE_EVERY_S: Final = 10.0
# A worker that used so much of its share may need more; one that used less has room to grow by that factor.
USED: Final = 0.8
ROOM: Final = 1.5
# The least share of a worker, of an equal one: it must be able to show that it needs more.
LEAST_SHARE: Final = 0.1
# Workers lost with not one entry reported between them, for each worker of the run: something kills them all.
LOSSES_TO_STOP: Final = 3
_PER_MINUTE: Final = 60.0


class _Member:
    """A worker that is not lost.

    Attributes:
        slots: episodes that it plays at a time.
        open: its unfinished tasks.
        finished: tasks since its last lease.
        requests, tokens: since rates were last shared.
        throttled: refusals for sending too many requests, since it began.
        hold: seconds that it has yet to be told to hold.
        rates: that it has; None before the first.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.open: set[int] = set()
        self.finished = 0
        self.requests = self.tokens = 0
        self.throttled = 0
        self.hold = 0.0
        self.rates: Rates | None = None


class Coordinator:
    """Leases, rates and losses of one run.

    Args:
        workers: how many there are to be.
        rates: of the whole run; None in it is unlimited.
        now: the time, in seconds of any clock that does not go back.
    """

    def __init__(self, workers: int, rates: Rates, now: float) -> None:
        self._workers = workers
        self._rates = rates
        self._pending: deque[int] = deque()
        self._holder: dict[int, int] = {}
        self._members: dict[int, _Member] = {}
        self._lost: dict[int, tuple[float, set[int]]] = {}
        self._shared_at = now
        self._held_at = -inf
        self._losses = 0

    @property
    def unfinished(self) -> int:
        """Number of tasks that have not ended."""
        return len(self._pending) + len(self._holder)

    def add(self, tasks: Iterable[int]) -> None:
        """More tasks to play, after those that wait already."""
        self._pending.extend(tasks)

    def join(self, worker: int, slots: int) -> None:
        """A worker with a new number begins; it plays ``slots`` episodes at a time."""
        self._members[worker] = _Member(slots)
        for member in self._members.values():
            member.rates = None

    def holds(self, worker: int, task: int) -> bool:
        """Whether a worker's entries of a task count: the task is its own, or it was lost with it."""
        return self._holder.get(task) == worker

    def lease(self, worker: int) -> tuple[int, ...]:
        """Further tasks for a worker, the first of those that wait; none for a lost one.

        It gets as many as it can play at once, and some more, so that it has something to play until its next
        lease: about twice as many as it has ended since the last one, but at most half of its part of what
        waits when all workers are busy. So no worker hoards tasks near the end of a run.
        """
        member = self._members.get(worker)
        if member is None:
            return ()
        finished, member.finished = member.finished, 0
        living = max(len(self._members), self._workers)
        at_once = min(member.slots, ceil(self.unfinished / living))
        waiting = max(0, self.unfinished - at_once * living)
        ahead = min(max(2 * finished, member.slots // 2), waiting // (2 * living))
        number = min(len(self._pending), max(0, at_once + ahead - len(member.open)))
        tasks = tuple(self._pending.popleft() for _ in range(number))
        member.open.update(tasks)
        self._holder.update(dict.fromkeys(tasks, worker))
        return tasks

    def used(self, worker: int, requests: int, tokens: int) -> None:
        """A worker has had so many replies, with so many tokens, since this was last called for it."""
        if member := self._members.get(worker):
            member.requests += requests
            member.tokens += tokens
            self._losses = 0

    def throttled(self, worker: int, refusals: int, now: float) -> None:
        """A worker was refused so often for sending too many requests, since it began: all slow down."""
        member = self._members.get(worker)
        if member is None:
            return
        refused = refusals > member.throttled
        member.throttled = refusals
        if refused and now - self._held_at >= HOLD_EVERY_S:
            self._held_at = now
            for number, other in self._members.items():
                if number != worker:  # its own client waits as the provider asks
                    other.hold = HOLD_S

    def ended(self, worker: int, task: int) -> None:
        """A task that the worker held has ended."""
        del self._holder[task]
        if member := self._members.get(worker):
            member.open.discard(task)
            member.finished += 1
            self._losses = 0
        elif worker in self._lost:
            self._lost[worker][1].discard(task)

    def lose(self, worker: int, now: float) -> None:
        """A worker is lost. Its tasks wait until `release`, or until `RESCUE_S` have passed."""
        self._losses += 1
        self._lost[worker] = (now, self._members.pop(worker).open)

    def held(self, worker: int) -> tuple[int, ...]:
        """The tasks of a lost worker that nobody else has yet."""
        return tuple(sorted(self._lost[worker][1])) if worker in self._lost else ()

    @property
    def is_hopeless(self) -> bool:
        """Whether workers are lost as soon as they begin."""
        return self._losses >= LOSSES_TO_STOP * self._workers

    def release(self, worker: int) -> None:
        """A lost worker's file was read, or cannot be: its tasks are played by others, before new ones."""
        if worker not in self._lost:
            return
        _, tasks = self._lost.pop(worker)
        for task in tasks:
            del self._holder[task]
        self._pending.extendleft(sorted(tasks, reverse=True))

    def tick(self, now: float) -> None:
        """Gives up what has taken too long, and shares the rates again; to be called about once a second."""
        for worker in [worker for worker, (since, _) in self._lost.items() if now - since >= RESCUE_S]:
            self.release(worker)
        if now - self._shared_at >= SHARE_EVERY_S:
            self._share(now)

    def hold_of(self, worker: int) -> float:
        """Seconds that a worker is to hold its requests; told once."""
        member = self._members.get(worker)
        if member is None:
            return 0.0
        hold, member.hold = member.hold, 0.0
        return hold

    def rates_of(self, worker: int) -> Rates | None:
        """A worker's present share of the rates; None if it is lost. The shares never exceed the whole."""
        member = self._members.get(worker)
        if member is None:
            return None
        if member.rates is None:  # equal shares, until it has shown what it uses
            equal = 1 / max(len(self._members), self._workers)
            rpm, tpm = self._rates.rpm, self._rates.tpm
            member.rates = Rates(None if rpm is None else rpm * equal, None if tpm is None else tpm * equal)
        return member.rates

    def _share(self, now: float) -> None:
        minutes = (now - self._shared_at) / _PER_MINUTE
        old = {number: member.rates or Rates() for number, member in self._members.items()}
        rpm, tpm = {}, {}
        if self._rates.rpm is not None:
            wants = {n: _want(m, m.requests / minutes, old[n].rpm) for n, m in self._members.items()}
            rpm = divide(self._rates.rpm, wants)
        if self._rates.tpm is not None:
            wants = {n: _want(m, m.tokens / minutes, old[n].tpm) for n, m in self._members.items()}
            tpm = divide(self._rates.tpm, wants)
        for number, member in self._members.items():
            member.rates = Rates(rpm.get(number), tpm.get(number))
            member.requests = member.tokens = 0
        self._shared_at = now


def _want(member: _Member, used: float, share: float | None) -> float:
    """How much a minute a worker can use, by what it used of its share."""
    if not member.open:
        return 0.0
    return inf if share is None or used >= USED * share else ROOM * used


def divide(whole: float, wants: Mapping[int, float]) -> dict[int, float]:
    """Shares that add up to the whole: nobody gets less than an equal share unless it wants less.

    What nobody wants is divided equally, and nobody gets less than a tenth of an equal share.
    """
    least = LEAST_SHARE * whole / max(1, len(wants))
    shares: dict[int, float] = {}
    left = whole
    for index, number in enumerate(sorted(wants, key=lambda one: wants[one])):
        shares[number] = min(max(least, wants[number]), left / (len(wants) - index))
        left -= shares[number]
    return {number: share + left / len(shares) for number, share in shares.items()}
