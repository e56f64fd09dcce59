"""Asks models something outside the course of an episode: judges, probes, readers of a panel, writers.

Every reply is in a store before it is used. What is in the store is never asked for again.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from propensitybench.chat import ConversationContext, Reply, Request
from propensitybench.clients import Client
from propensitybench.clients.adaptation import adapt_to
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import StopCause, Stopped, StopSignal, until_stopped
from propensitybench.errors import ModelError, RequestRefused, RunStopped

K = TypeVar("K", bound=Hashable)
Key = TypeVar("Key", bound=Hashable, contravariant=True)


class ReplyStore(Protocol[Key]):
    """Where replies are kept: a run file, or the journal of a working folder."""

    def known(self, key: Key) -> Reply | None:
        """The reply to what was asked under a key, if there is one."""
        ...

    def keep(self, key: Key, reply: Reply) -> None:
        """Stores a reply; it is committed when this returns. Raises `ModelError` if it cannot be stored."""
        ...


class Prompt(NamedTuple):
    """What a model is asked, and what its client knows of the conversation besides."""

    request: Request
    context: ConversationContext


class Enquiry(NamedTuple, Generic[K]):
    """Something to ask.

    Attributes:
        key: in the store.
        prompt: makes what is asked, just before it is sent.
    """

    key: K
    prompt: Callable[[], Prompt]


class AskingProgress(NamedTuple):
    """The progress: replies of all sessions, of how many; spent over all sessions."""

    finished: int
    total: int
    tokens: int
    usd: float | None


class AskingResult(NamedTuple):
    """How a session ended.

    Attributes:
        finished, total: replies in the store, of how many.
        calls: replies received in this session.
        failures: requests without a reply in this session; they are sent again next time.
        last_failure: why the last of them has none.
        tokens, usd: spent over all sessions; ``usd`` is None if a price is unknown.
        stop: whether and why the session was stopped.
    """

    finished: int
    total: int
    calls: int
    failures: int
    last_failure: str
    tokens: int
    usd: float | None
    stop: StopSignal


AskingListener = Callable[[AskingProgress], None]


def unanswered(store: ReplyStore[K], asked: Sequence[Enquiry[K]]) -> list[Enquiry[K]]:
    """What has no reply in a store."""
    return [one for one in asked if store.known(one.key) is None]


class AskingSession(Generic[K]):
    """Asks for replies that are not in a store, and stops when the budget is spent.

    Args:
        store: of the replies.
        costs: of all sessions so far, by the addresses of the models.
        on_progress: called after each reply.
        stop: stops it when requested, from any thread.

    Attributes:
        stop: the same, or one of its own.
        calls: replies received in this session.
    """

    def __init__(
        self,
        store: ReplyStore[K],
        costs: Costs,
        on_progress: AskingListener | None = None,
        stop: StopSignal | None = None,
    ) -> None:
        self.stop = stop or StopSignal()
        self.calls = 0
        self._store = store
        self._costs = costs
        self._on_progress = on_progress
        self._known = self._total = self._failures = 0
        self._last_failure = ""
        self._stop_if_exhausted()

    async def ask(self, client: Client, key: K, prompt: Prompt) -> Reply:
        """A reply, from the store if it is there.

        A client whose request is refused adapts the form of its requests if it can.

        Args:
            client: of the model; its address is among the costs.
            key: what identifies the question in the store.
            prompt: what is asked.

        Raises:
            ModelError: there is no reply; it is asked for again next time.
            Stopped: no more requests are to be sent.
        """
        known = self._store.known(key)
        if known is not None:
            return known
        reply = await _reply(client, prompt, self.stop)
        self._store.keep(key, reply)
        self.calls += 1
        self._costs.add(client.model, reply.usage)
        self._stop_if_exhausted()
        if self._on_progress is not None:
            finished, costs = self._known + self.calls, self._costs
            self._on_progress(AskingProgress(finished, self._total, costs.tokens, costs.usd))
        return reply

    async def ask_all(self, asked: Mapping[Client, Sequence[Enquiry[K]]], concurrency: int) -> AskingResult:
        """Asks every client what has no reply, in the given order, and closes the clients.

        A question without a reply is counted, and asked again next time. Cancelling stops it, as the stop
        signal does: replies in flight have a few seconds to arrive.

        Args:
            asked: what each client is asked.
            concurrency: requests in flight for each client.
        """
        left = {client: unanswered(self._store, every) for client, every in asked.items()}
        self._total = sum(map(len, asked.values()))
        self._known = self._total - sum(map(len, left.values()))
        work = self._ask_each({client: iter(rest) for client, rest in left.items()}, concurrency)
        await until_stopped(work, self.stop, list(asked))
        return self.result()

    def result(self) -> AskingResult:
        """How the session ended."""
        finished, costs = self._known + self.calls, self._costs
        return AskingResult(
            finished, self._total, self.calls, self._failures, self._last_failure,
            costs.tokens, costs.usd, self.stop,
        )  # fmt: skip

    async def _ask_each(self, left: Mapping[Client, Iterator[Enquiry[K]]], concurrency: int) -> None:
        connected = sum(client.has_endpoint for client in left)
        possible = within_open_files(concurrency * connected) // connected if connected else concurrency
        try:
            async with asyncio.TaskGroup() as group:
                for client, rest in left.items():
                    at_once = max(1, possible) if client.has_endpoint else concurrency
                    group.create_task(self._ask_first(group, client, rest, at_once))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    async def _ask_first(
        self, group: asyncio.TaskGroup, client: Client, rest: Iterator[Enquiry[K]], at_once: int
    ) -> None:
        """Asks one question alone, so that a client whose form is refused adapts it, and then the others."""
        await self._work(client, islice(rest, 1))
        for _ in range(at_once):
            group.create_task(self._work(client, rest))

    async def _work(self, client: Client, rest: Iterator[Enquiry[K]]) -> None:
        with suppress(Stopped):
            for one in rest:
                try:
                    await self.ask(client, one.key, one.prompt())
                except ModelError as error:
                    self._failures += 1
                    self._last_failure = str(error)

    def _stop_if_exhausted(self) -> None:
        if exhausted := self._costs.exhausted():
            self.stop.request_stop(StopCause.BUDGET, exhausted)


async def _reply(client: Client, prompt: Prompt, stop: StopSignal) -> Reply:
    """The reply of a model; raises as `AskingSession.ask` does."""
    while not stop.stop_requested:
        try:
            return await client.open(prompt.context).reply(prompt.request)
        except RequestRefused as error:
            if not adapt_to(client, str(error)):
                raise
        except RunStopped as error:
            cause = StopCause.BAD_INPUT if error.bad_input else StopCause.PROVIDER
            stop.request_stop(cause, str(error))
            raise Stopped from error
    raise Stopped
