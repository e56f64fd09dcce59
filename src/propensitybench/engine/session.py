"""One execution of a run file, wherever its tasks are played."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from propensitybench.engine.prices import Spending
from propensitybench.engine.sequential import is_drawn, tasks_drawn, tasks_to_draw
from propensitybench.engine.stop import StopCause, StopSignal, stopped_by_cancelling
from propensitybench.store import NumberedTask, RunFile

TICK_S: Final = 1.0
# Tasks that have waited longer than this for a reply are reported as stalled.
STALLED_S: Final = 60.0
STALLED_SHOWN: Final = 3
# Tasks that have waited long for a reply, longest first, with the seconds.
Stalled = tuple[tuple[str, float], ...]


class Progress(NamedTuple):
    """The progress of a run, reported after each task and every second.

    Attributes:
        finished, total: tasks; a stopping rule may raise the total as it draws more.
        calls: replies received in this session.
        tokens, usd: spent over all sessions; ``usd`` is None if the price is unknown.
        stalled: tasks that have waited long for a reply, longest first, with the seconds.
    """

    finished: int
    total: int
    calls: int
    tokens: int
    usd: float | None
    stalled: Stalled


class Result(NamedTuple):
    """The state of a run file after execution; ``cause`` is None if nothing stopped it.

    ``total`` is the number of tasks to play; under a stopping rule, of those drawn.
    """

    finished: int
    total: int
    cause: StopCause | None
    reason: str


Listener = Callable[[Progress], None]
# The number of tasks to play once every task drawn so far has ended.
Draw = Callable[[RunFile], int]


class Player(Protocol):
    """Plays tasks of one run file, on this machine or on others."""

    @property
    def calls(self) -> int:
        """Replies received so far."""
        ...

    def stalled(self) -> Stalled:
        """Tasks that have waited long for a reply."""
        ...

    async def play(self, tasks: Iterator[NumberedTask], number: int, ended: Callable[[], None]) -> None:
        """Plays tasks until there are none left, or until a few seconds after a request to stop.

        Args:
            tasks: that have no outcome.
            number: how many they are.
            ended: called once the outcome of a task is in the run file.
        """
        ...

    async def close(self) -> None:
        """Plays nothing more."""
        ...


class Session:
    """Plays every drawn task of a run file; under a stopping rule or a gate, in batches until it is met.

    Args:
        run: the run file, open for writing.
        player: plays its tasks.
        spending: what the run has cost, which the player adds to.
        stop: ends the session when requested, from any thread; cancelling requests it.
        on_progress: called after each task and every second.
        draw: says how many tasks to play next; None follows the stopping rule.
    """

    def __init__(
        self,
        run: RunFile,
        player: Player,
        spending: Spending,
        stop: StopSignal,
        on_progress: Listener | None,
        draw: Draw | None = None,
    ) -> None:
        self._run = run
        self._draw = draw or tasks_to_draw
        self._player = player
        self._spending = spending
        self._stop = stop
        self._on_progress = on_progress
        self._finished = run.count("outcome")
        self._total = tasks_drawn(run)

    async def run(self) -> Result:
        """Plays; raises `BadInput` if the file cannot be written to."""
        stop = self._stop
        if exhausted := self._spending.exhausted():
            stop.request_stop(StopCause.BUDGET, exhausted)
        ticker = asyncio.create_task(self._tick())
        try:
            await stopped_by_cancelling(self._play(), stop)
        finally:
            ticker.cancel()
            await self._player.close()
        return Result(self._finished, self._total, stop.cause, stop.reason)

    async def _play(self) -> None:
        """Plays the drawn tasks, then draws more for as long as the stopping rule requires it."""
        while True:
            todo = takewhile(
                lambda task: is_drawn(self._run, task.number, self._total), self._run.unfinished()
            )
            await self._player.play(todo, max(1, self._total - self._finished), self._ended)
            if self._finished < self._total or (more := self._draw(self._run)) == self._total:
                return
            self._total = more

    def _ended(self) -> None:
        self._finished += 1
        self._tell()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._tell()

    def _tell(self) -> None:
        if self._on_progress is None:
            return
        spent, player = self._spending, self._player
        self._on_progress(
            Progress(self._finished, self._total, player.calls, spent.tokens, spent.usd, player.stalled())
        )
