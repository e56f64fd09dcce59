"""Plays one episode: sends the state machine's requests to a client."""

from collections.abc import AsyncGenerator

from propensitybench.chat import ConversationContext
from propensitybench.clients import Client, Conversation
from propensitybench.engine.stop import StopCause, Stopped, StopSignal
from propensitybench.episode import EpisodeJob, replay
from propensitybench.episode.length import MAX_CONVERSATION
from propensitybench.errors import ModelError, RunStopped
from propensitybench.scenarios import TaskMetadata
from propensitybench.store import JournalEntry, OutcomeEntry, encode_reply

Entry = JournalEntry | OutcomeEntry


async def run_episode(client: Client, stop: StopSignal, job: EpisodeJob) -> AsyncGenerator[tuple[Entry, ...]]:
    """Plays one task from where its journal ends, and yields the journal entries.

    The next request is sent when the generator is resumed. Commit the entries of each step, in one
    transaction, before resuming it: then every reply is stored before anything is built on it.

    Raises:
        Stopped: the run is being stopped; every reply so far has been yielded.
    """
    episode, request = replay(job)
    turn = len(job.replies)
    conversation = None
    pending: tuple[Entry, ...] = ()
    error = ""
    while request is not None:
        if episode.is_too_long:
            error = (
                f"its conversation has more than {MAX_CONVERSATION:,} characters, so it cannot be finished; "
                "in a new run give a lower --max-tokens"
            )
            break
        if pending:
            yield pending
            pending = ()
        if stop.stop_requested:
            raise Stopped
        try:
            conversation = conversation or open_conversation(client, episode.metadata, turn)
            reply = await conversation.reply(request)
            pending = (JournalEntry(job.number, turn, encode_reply(reply), episode.level),)
        except ModelError as raised:
            error = str(raised)
            break
        except RunStopped as raised:
            cause = StopCause.BAD_INPUT if raised.bad_input else StopCause.PROVIDER
            stop.request_stop(cause, str(raised), raised.__cause__)
            raise Stopped from raised
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - a client that fails must not end the run
            error = f"{type(raised).__name__}: {raised}"
            break
        turn += 1
        try:
            request = episode.receive(reply)
        except ModelError as raised:  # the journal must be one that can be replayed
            pending, error = (), str(raised)
            break
    record = episode.record(error)
    yield (*pending, OutcomeEntry(job.number, record, episode.fingerprint()))


def open_conversation(client: Client, task: TaskMetadata, replies: int = 0) -> Conversation:
    """Opens a task's conversation. Only a simulated agent is given the task's metadata."""
    known = task if client.knows_task else None
    return client.open(ConversationContext(task.task, task.seed, replies, known))
