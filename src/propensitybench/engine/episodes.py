"""One episode from its first request to its last: the shell around the state machine."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients import Client, Conversation
from propensitybench.engine.prices import Spending
from propensitybench.engine.stop import StopCause, StopSignal
from propensitybench.episode import EpisodeJob, replay
from propensitybench.errors import ModelError, RunStopped
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import TaskAware
from propensitybench.store import JournalEntry, OutcomeEntry, encode_reply

Entry = JournalEntry | OutcomeEntry


class Stopped(Exception):
    """The run is being stopped; the episode is left where its journal ends."""


@dataclass
class RunContext:
    """What all episodes of a run share where they are played; the journal's writer is elsewhere.

    Attributes:
        waiting: tasks that wait for a reply, and since when by ``clock``.
        calls: replies so far in this session.
    """

    client: Client
    stop: StopSignal
    spending: Spending
    clock: Callable[[], float]
    waiting: dict[str, float] = field(default_factory=dict)
    calls: int = 0


async def run_episode(context: RunContext, job: EpisodeJob) -> AsyncGenerator[tuple[Entry, ...]]:
    """Plays one task from where its journal ends, and yields what has to be journaled.

    The next request is sent when the iterator is asked for more: whoever iterates first commits what it
    was given, all together.

    Raises:
        Stopped: the run is being stopped; what was answered has been yielded.
    """
    episode, request = replay(job)
    turn = len(job.replies)
    conversation = None
    pending: tuple[Entry, ...] = ()
    error = ""
    while request is not None:
        if pending:
            yield pending
            pending = ()
        if context.stop.stop_requested:
            raise Stopped
        try:
            conversation = conversation or open_conversation(context.client, episode.metadata, turn)
            reply = await _reply(context, job.task.key, conversation, request)
            pending = (JournalEntry(job.number, turn, encode_reply(reply)),)
        except ModelError as raised:
            error = str(raised)
            break
        except RunStopped as raised:
            cause = StopCause.BAD_INPUT if raised.bad_input else StopCause.PROVIDER
            context.stop.request_stop(cause, str(raised))
            raise Stopped from raised
        except Exception as raised:  # noqa: BLE001 - the one place: no client may take the run with it
            error = f"{type(raised).__name__}: {raised}"
            break
        turn += 1
        request = episode.receive(reply)
    record = episode.record(error)
    yield (*pending, OutcomeEntry(job.number, record, episode.fingerprint()))


def open_conversation(client: Client, task: TaskMetadata, replies: int = 0) -> Conversation:
    """Opens a task's conversation; only a simulated agent learns what the task is about."""
    if isinstance(client, TaskAware):
        return client.open_task(task, replies)
    return client.open(ConversationContext(task.task, task.seed, replies))


async def _reply(context: RunContext, key: str, conversation: Conversation, request: Request) -> Reply:
    context.waiting[key] = context.clock()
    try:
        reply = await conversation.reply(request)
    finally:
        del context.waiting[key]
    context.calls += 1
    context.spending.add(reply.usage)
    if exhausted := context.spending.exhausted():
        context.stop.request_stop(StopCause.BUDGET, exhausted)
    return reply
