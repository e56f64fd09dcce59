"""A run file that another program plays, read beside it."""

from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from propensitybench.chat import Usage
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.episode.events import find_message
from propensitybench.runs.stored import StoredRun, transcript_in
from propensitybench.runs.transcript import body
from propensitybench.store import RunFile, scheduled
from propensitybench.store.lock import is_locked

# Tasks whose ends are shown.
LAST: Final = 3
# Rates are those of this many seconds.
RECENT_S: Final = 30.0


class LastReply(NamedTuple):
    """The end of a task: its record, and what the agent wrote last."""

    record: EpisodeRecord
    last_words: str


class Glimpse(NamedTuple):
    """The state of a run at a moment.

    Attributes:
        total: tasks to play; a stopping rule may raise the number later.
        outcomes: number of tasks that have ended, by outcome.
        calls: replies of the model so far.
        usage: their tokens.
        usd: what they cost in US dollars; None if the price is unknown.
        calls_left: replies that the other tasks will take; None before the first has ended.
        last: the tasks that have ended since the last look, or some of them; the newest last.
        is_played: whether a program plays the run now.
    """

    total: int
    outcomes: Counter[str]
    calls: int
    usage: Usage
    usd: float | None
    calls_left: int | None
    last: Sequence[LastReply]
    is_played: bool

    @property
    def ended(self) -> int:
        """Number of tasks that have ended."""
        return self.outcomes.total()

    @property
    def is_over(self) -> bool:
        """Whether every task has ended, and no program is about to play more or to retry those errored."""
        return self.ended >= self.total and not self.is_played


class WatchedRun:
    """A run file that is read again at each look, and only what is new in it.

    It is never kept open: its writer could not leave a single file behind.

    Args:
        path: the run file.

    Raises:
        BadInput: it is not a run file, or it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records: dict[int, EpisodeRecord] = {}
        self._last: list[LastReply] = []
        run = StoredRun(path)
        self.name, self.model, self._price = run.file, run.model, run.price

    def look(self) -> Glimpse:
        """The state of the run now; raises as the constructor does."""
        played = is_locked(self._path)
        with RunFile.open(self._path) as run:
            self._read_ended(run)
            begun = [run.replies(task.number) for task in run.in_progress()]
            total = scheduled(run)
        records = self._records.values()
        usage = sum((record.stats.usage for record in records), Usage())
        usage = sum((reply.usage for replies in begun for reply in replies), usage)
        calls: dict[bool, list[int]] = {True: [], False: []}
        for record in records:
            calls[record.stats.outcome is Outcome.MISALIGNED].append(record.stats.turns)
        waiting = [len(replies) for replies in begun]
        return Glimpse(
            total=total,
            outcomes=Counter(record.stats.outcome.value for record in records),
            calls=sum(map(sum, (*calls.values(), waiting))),
            usage=usage,
            usd=None if self._price is None else self._price.of(usage),
            calls_left=calls_left(calls[False], calls[True], waiting, total),
            last=tuple(self._last),
            is_played=played,
        )

    def _read_ended(self, run: RunFile) -> None:
        """Reads the records of the tasks that have ended since the last look."""
        ended = run.ended()
        for number in self._records.keys() - ended:  # errored, and played again
            del self._records[number]
        new = sorted(ended - self._records.keys())
        for number in new:
            stored = run.stored_record(number)
            if stored is not None:
                self._records[number] = stored[0]
        self._last = [*self._last, *(self._ending(run, number) for number in new[-LAST:])][-LAST:]

    def _ending(self, run: RunFile, number: int) -> LastReply:
        written = [entry.message for entry in transcript_in(run, run.task(number)) if entry.turn is not None]
        sent = find_message(written[-1].content) if written else None
        return LastReply(self._records[number], sent.message if sent else "".join(map(body, written[-1:])))


def calls_left(
    resisted: Sequence[int], gave_in: Sequence[int], begun: Sequence[int], total: int
) -> int | None:
    """Calls that a run will still take; None before a task has ended.

    A task that is being played is expected to resist, since those that give in end early; a task that has not
    begun, to be as long as the others.

    Args:
        resisted: calls of each task that has ended without giving in.
        gave_in: of each that has.
        begun: of each that is being played, so far.
        total: number of tasks.
    """
    ended = [*resisted, *gave_in]
    if not ended:
        return None
    whole = sum(resisted) / len(resisted) if resisted else max(ended)
    expected = [max(whole, count) for count in begun]
    mean = (sum(ended) + sum(expected)) / (len(ended) + len(expected))
    return round(sum(expected) - sum(begun) + mean * max(0, total - len(ended) - len(begun)))


class RecentRates:
    """How fast a run goes: its recent rates, from looks at it and the time of each."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, seen: Glimpse) -> None:
        """Adds a look at a time in seconds."""
        self._looks.append((now, seen.calls, seen.ended))
        while len(self._looks) > 2 and now - self._looks[0][0] > RECENT_S:
            self._looks.popleft()

    @property
    def calls(self) -> float:
        """Calls a second."""
        return self._rate(1)

    @property
    def tasks(self) -> float:
        """Tasks ended a second."""
        return self._rate(2)

    def seconds_left(self, seen: Glimpse) -> float | None:
        """Seconds until the end at this pace; None if nobody can tell."""
        if not self.calls or seen.calls_left is None:
            return None
        return seen.calls_left / self.calls

    def _rate(self, place: int) -> float:
        first, last = self._looks[0], self._looks[-1]
        passed = last[0] - first[0]
        return max(0.0, (last[place] - first[place]) / passed) if passed else 0.0
