"""How far an execution has come, in levels: many tasks are played at once, and few have ended until late."""

from collections.abc import Callable


class Pace:
    """The levels that an execution has played, those that it may still have to, and the time that they take.

    A task that is being played is expected to resist to the end; one that has not begun, to be as long as
    those that have.

    Args:
        levels: of a task that resists to the end.
        clock: seconds.
    """

    def __init__(self, levels: int, clock: Callable[[], float]) -> None:
        self._levels = levels
        self._clock = clock
        self._began = self._counted = clock()
        # The level that each task has reached that is being played, and for how long all of them were played.
        self._reached: dict[int, int] = {}
        self._task_seconds = 0.0
        self._played = 0
        self._ended = 0
        self._ended_at = 0

    def reach(self, task: int, level: int) -> None:
        """A reply of a task has arrived; what it played before the first one was in an earlier execution."""
        self._count_time()
        self._played += level - self._reached.get(task, level)
        self._reached[task] = level

    def end(self, task: int, level: int) -> None:
        """A task has ended at a level."""
        self.reach(task, level)
        del self._reached[task]
        self._played += 1
        self._ended += 1
        self._ended_at += level + 1

    def share(self, not_ended: int) -> float:
        """The share of the work that is done, where so many tasks are still to end."""
        return self._played / (self._played + self._left(not_ended)) if self._played else 0.0

    def seconds_left(self, not_ended: int) -> float | None:
        """The time that is left, where so many tasks are still to end; None if nothing has been played.

        As much as the work left takes at the pace so far, but not less than the task with the most levels
        left: the last ones are played alone.
        """
        if not self._played:
            return None
        self._count_time()
        longest = max((self._levels - level for level in self._reached.values()), default=0)
        each = self._task_seconds / self._played
        return max(
            self._left(not_ended) * (self._clock() - self._began) / self._played,
            longest * each,
        )

    def _left(self, not_ended: int) -> float:
        """The number of levels that are left."""
        being_played = len(self._reached)
        begun = self._ended + being_played
        mean = (self._ended_at + self._levels * being_played) / begun if begun else self._levels
        left = sum(self._levels - level for level in self._reached.values())
        return left + mean * max(0, not_ended - being_played)

    def _count_time(self) -> None:
        now = self._clock()
        self._task_seconds += (now - self._counted) * len(self._reached)
        self._counted = now
