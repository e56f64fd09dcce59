"""The single writer of a run file during execution."""

import asyncio
from collections.abc import Sequence

from propensitybench.store import JournalEntry, OutcomeEntry, RunFile


class JournalWriter:
    """Commits all entries that arrive in one turn of the event loop in one transaction.

    An episode sends its next request only after `add` returns, so every reply is in the file before
    anything is built on it, and a hundred episodes share the cost of one commit.
    """

    def __init__(self, run: RunFile) -> None:
        self._run = run
        self._replies: list[JournalEntry] = []
        self._outcomes: list[OutcomeEntry] = []
        self._batch: asyncio.Future[None] | None = None

    async def add(self, entries: Sequence[JournalEntry | OutcomeEntry]) -> None:
        """Returns once the entries are committed, in one transaction; raises the error if they cannot be."""
        for entry in entries:
            if isinstance(entry, JournalEntry):
                self._replies.append(entry)
            else:
                self._outcomes.append(entry)
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self._commit)
        # Shielded: cancelling one episode must not cancel the commit that others wait for.
        await asyncio.shield(self._batch)

    def _commit(self) -> None:
        replies, outcomes, batch = self._replies, self._outcomes, self._batch
        assert batch is not None
        self._replies, self._outcomes, self._batch = [], [], None
        try:
            self._run.append(replies, outcomes)
        except Exception as error:  # noqa: BLE001 - passed on to every episode that waits for the commit
            batch.set_exception(error)
        else:
            batch.set_result(None)
