"""The one writer of a run file while it is executed."""

import asyncio
from collections.abc import Sequence

from propensitybench.store import JournalEntry, OutcomeEntry, RunFile


class JournalWriter:
    """Commits what arrives in one turn of the event loop together, and tells those who wait.

    An episode sends its next request only after `add` has returned, so a reply is in the file before
    anything is built on it; a hundred episodes share the cost of one commit.
    """

    def __init__(self, run: RunFile) -> None:
        self._run = run
        self._replies: list[JournalEntry] = []
        self._outcomes: list[OutcomeEntry] = []
        self._batch: asyncio.Future[None] | None = None

    async def add(self, entries: Sequence[JournalEntry | OutcomeEntry]) -> None:
        """Returns when the entries are committed, all together, or raises what prevented it."""
        for entry in entries:
            if isinstance(entry, JournalEntry):
                self._replies.append(entry)
            else:
                self._outcomes.append(entry)
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self._commit)
        # Shielded: one episode that is cancelled must not take the others' commit with it.
        await asyncio.shield(self._batch)

    def _commit(self) -> None:
        replies, outcomes, batch = self._replies, self._outcomes, self._batch
        assert batch is not None
        self._replies, self._outcomes, self._batch = [], [], None
        try:
            self._run.append(replies, outcomes)
        except Exception as error:  # noqa: BLE001 - handed on to every episode that waits for it
            batch.set_exception(error)
        else:
            batch.set_result(None)
