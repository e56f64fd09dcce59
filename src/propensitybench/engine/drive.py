"""One episode from its first request to its last: the shell around the state machine."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from propensitybench.chat import Reply, Request
from propensitybench.clients import Client, Conversation
from propensitybench.engine.prices import Spending
from propensitybench.engine.stop import Cause, Stop
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import AgentFault, RunStopped
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

    async def add(self, *entries: Said | Ended) -> None:
        """Returns when the entries are committed, all together, or raises what prevented it."""
        for entry in entries:
            if isinstance(entry, Said):
                self._said.append(entry)
            else:
                self._ended.append(entry)
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self._commit)
        # Shielded: one episode that is cancelled must not take the others' commit with it.
        await asyncio.shield(self._batch)

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


@dataclass
class Floor:
    """What all episodes of a run share while it is played.

    Attributes:
        waiting: tasks that wait for a reply, and since when by ``clock``.
        calls: replies so far in this session.
    """

    run: RunFile
    client: Client
    commit: GroupCommit
    stop: Stop
    spending: Spending
    clock: Callable[[], float]
    waiting: dict[str, float] = field(default_factory=dict)
    calls: int = 0


async def drive(floor: Floor, task: NumberedTask) -> EpisodeRecord:
    """Plays one task from where its journal ends, and journals its outcome.

    Raises:
        Stopped: the run is being stopped; what was answered is journaled.
    """
    episode, request, turn = replay(floor.run, task)
    conversation = None
    said: list[Said] = []
    fault = ""
    while request is not None:
        if floor.stop.wished:
            raise Stopped
        try:
            conversation = conversation or floor.client.open(episode.labels, turn)
            reply = await _reply(floor, task.task.key, conversation, request)
            said = [Said(task.number, turn, encode_reply(reply))]
        except AgentFault as error:
            fault = str(error)
            break
        except RunStopped as error:
            floor.stop.wish(Cause.BAD_INPUT if error.bad_input else Cause.PROVIDER, str(error))
            raise Stopped from error
        except Exception as error:  # noqa: BLE001 - the one place: no client may take the run with it
            fault = f"{type(error).__name__}: {error}"
            break
        turn += 1
        request = episode.receive(reply)
        if request is not None:  # it is sent when the reply before it is in the file
            await floor.commit.add(*said)
            said = []
    record = episode.record(fault)
    await floor.commit.add(*said, Ended(task.number, record, episode.fingerprint()))
    return record


async def _reply(floor: Floor, key: str, conversation: Conversation, request: Request) -> Reply:
    floor.waiting[key] = floor.clock()
    try:
        reply = await conversation.reply(request)
    finally:
        del floor.waiting[key]
    floor.calls += 1
    floor.spending.add(reply.usage)
    if exhausted := floor.spending.exhausted():
        floor.stop.wish(Cause.BUDGET, exhausted)
    return reply
