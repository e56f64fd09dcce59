"""One episode from its first request to its last: the shell around the state machine."""

import asyncio
from collections.abc import Callable

from propensitybench.clients import Client
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import AgentFault, IllegalStep
from propensitybench.store import Ended, NumberedTask, RunFile, Said, encode_reply, replay


class Stopped(Exception):
    """The run is being stopped; the episode is left where its journal ends."""


class GroupCommit:
    """Commits what arrives in one turn of the event loop together, and tells those who wait.

    An episode awaits `add` before it sends its next request, so a reply is in the file before
    anything is built on it; a hundred episodes share the cost of one commit.
    """

    def __init__(self, run: RunFile) -> None:
        self._run = run
        self._said: list[Said] = []
        self._ended: list[Ended] = []
        self._batch: asyncio.Future[None] | None = None

    def add(self, entry: Said | Ended) -> "asyncio.Future[None]":
        """Takes an entry; the future is done when it is committed, or has the error that prevented it."""
        if isinstance(entry, Said):
            self._said.append(entry)
        else:
            self._ended.append(entry)
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self._commit)
        return self._batch

    def _commit(self) -> None:
        said, ended, batch = self._said, self._ended, self._batch
        assert batch is not None
        self._said, self._ended, self._batch = [], [], None
        try:
            self._run.append(said, ended)
        except Exception as error:  # noqa: BLE001 - handed on to every episode that waits for it
            batch.set_exception(error)
        else:
            batch.set_result(None)


async def drive(
    run: RunFile,
    task: NumberedTask,
    client: Client,
    commit: GroupCommit,
    stopping: Callable[[], bool],
) -> EpisodeRecord:
    """Plays one task from where its journal ends, and journals its outcome.

    Raises:
        Stopped: ``stopping()`` became true between two turns.
    """
    episode, request, turn = replay(run, task)
    conversation = client.open(episode.labels, turn)
    fault = ""
    while request is not None:
        if stopping():
            raise Stopped
        try:
            reply = await conversation.reply(request)
        except AgentFault as error:
            fault = str(error)
            break
        except IllegalStep:
            raise
        except Exception as error:  # noqa: BLE001 - the one place: no client may take the run with it
            fault = f"{type(error).__name__}: {error}"
            break
        await commit.add(Said(task.number, turn, encode_reply(reply)))
        turn += 1
        request = episode.receive(reply)
    record = episode.record(fault)
    await commit.add(Ended(task.number, record, episode.fingerprint()))
    return record
