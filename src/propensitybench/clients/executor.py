"""Sends requests within limits, retries them and stops the run."""

import asyncio
import random
from typing import Final, Protocol

from propensitybench.chat import Reply
from propensitybench.clients.breaker import FAILURES_TO_STOP, REFUSALS_TO_STOP, Breaker
from propensitybench.clients.failures import FATAL, THROTTLED, TRANSIENT, Failure, FailureKind
from propensitybench.clients.limits import SendingLimits
from propensitybench.clients.options import RequestLimits
from propensitybench.clients.redaction import Redactor
from propensitybench.clients.request_queue import RequestQueue
from propensitybench.errors import ModelError, PropensityBenchError, RequestRefused, RunStopped

# If a provider asks to wait longer, the run stops and can be resumed.
MAX_WAIT_S: Final = 900.0
# Seconds before the second attempt and between later ones, at most, unless the provider asks for more.
FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 60.0
# Another address may answer these. A rate limit belongs to the key.
_ELSEWHERE: Final = TRANSIENT - {FailureKind.RATE_LIMIT}


class Exchange(Protocol):
    """A request, which can be sent again and again until there is a reply."""

    @property
    def where(self) -> str:
        """What is asked, for messages."""
        ...

    @property
    def depth(self) -> int:
        """Messages in the conversation."""
        ...

    async def attempt(self, key: int, number: int) -> Reply:
        """Sends the request with the key of that number, as attempt number 1, 2, ...; raises `Failure`."""
        ...

    def moves(self) -> bool:
        """The next attempt goes to another address; False if all have failed in turn."""
        ...


class _Trouble:
    """What is known of a request that has failed: counted attempts, and since when it fails."""

    __slots__ = ("attempts", "since")

    def __init__(self, since: float) -> None:
        self.attempts = 0
        self.since = since


class RequestExecutor:
    """Sends requests as the limits allow, and retries transient failures.

    Args:
        keys: number of API keys, which take turns; 0 without keys.
        transport: limits, retries and timeouts.
        redactor: keeps secrets out of failures.
    """

    def __init__(self, keys: int, transport: RequestLimits, redactor: Redactor) -> None:
        self._keys = keys
        self._transport = transport
        self._redactor = redactor
        self._queue: RequestQueue | None = None
        self._breaker = Breaker()

    async def ask(self, exchange: Exchange, tokens: int) -> Reply:
        """The first reply of an attempt.

        Args:
            exchange: sends the request.
            tokens: expected cost of the request.

        Raises:
            RequestRefused: the endpoint rejects this request.
            ModelError: the request failed after all retries.
            RunStopped: no request can succeed any more.
        """
        loop = asyncio.get_running_loop()
        if self._queue is None:
            self._queue = RequestQueue(SendingLimits(self._keys, self._transport, loop.time()))
        queue, breaker, made = self._queue, self._breaker, 0
        trouble: _Trouble | None = None
        while True:
            permit = await queue.enter(tokens)  # raises once requests have stopped
            made += 1
            number = breaker.sent()
            try:
                reply = await exchange.attempt(permit.key, made)
                self._redactor.check_reply(reply)
            except Exception as raised:  # noqa: BLE001 - whatever an endpoint provokes, its text may hold a key
                failure = self._redactor.failure(raised)
            except BaseException:
                breaker.back(number)
                queue.failed(permit, FailureKind.NETWORK)
                raise
            else:
                breaker.back(number)
                breaker.answered(loop.time(), exchange.depth)
                queue.answered(permit, reply.usage.input + reply.usage.output)
                return reply
            breaker.back(number)
            if failure.kind in _ELSEWHERE and exchange.moves():
                queue.failed(permit, FailureKind.NETWORK)
                continue
            timed_out = failure.kind is FailureKind.TIMEOUT
            trouble = trouble or _Trouble(permit.since if timed_out else loop.time())
            # Several requests sent together are throttled together: one sign of too much, not many.
            trouble.attempts += queue.failed(permit, failure.kind, failure.retry_after or 0.0)
            await queue.pause(self._wait(exchange, failure, trouble, made))

    def stop_requests(self) -> None:
        """Sends no further requests; those that wait for their turn or a retry raise `RunStopped`."""
        if self._queue is not None:
            self._queue.shut()

    def forget(self) -> None:
        """Releases what belongs to the event loop; the next request starts again."""
        self._queue = None

    def _wait(self, exchange: Exchange, failure: Failure, trouble: _Trouble, made: int) -> float:
        """Seconds before the next attempt; raises if there should be none."""
        if failure.kind in FATAL:
            why = f"{exchange.where}: {failure.kind.value} ({failure})"
            raise self._stopped(why, bad_input=failure.kind is not FailureKind.QUOTA)
        if failure.kind in TRANSIENT and (failure.retry_after or 0.0) > MAX_WAIT_S:
            asks = f"the provider asks to wait {failure.retry_after:.0f} seconds"
            raise self._stopped(f"{exchange.where}: {asks} ({failure})")
        if failure.kind in TRANSIENT and trouble.attempts <= self._transport.max_retries:
            return pause_before(trouble.attempts, failure.retry_after, random.random())
        attempts = f"{made} {'attempt' if made == 1 else 'attempts'}"
        if failure.kind in THROTTLED and made > trouble.attempts:
            attempts += f", {made - trouble.attempts} of them refused together with others and not counted"
        failed = f"{failure.kind.value} after {attempts}: {failure}"
        if failure.kind not in TRANSIENT:
            raise self._refused(exchange, failure, failed)
        if (failures := self._breaker.gave_up(trouble.since)) >= FAILURES_TO_STOP:
            raise self._stopped(f"{exchange.where}: {failures} tasks failed in a row, the last with {failed}")
        raise ModelError(failed)

    def _refused(self, exchange: Exchange, failure: Failure, failed: str) -> PropensityBenchError:
        if self._queue is not None and self._queue.is_shut:
            return RunStopped("requests have stopped")  # rejected with those that stopped the run
        now = asyncio.get_running_loop().time()
        refusals = self._breaker.refused(now, failure.wording, exchange.depth)
        if failure.is_too_long or refusals < REFUSALS_TO_STOP:
            return RequestRefused(failed)
        why = f"{refusals} tasks in a row were refused for the same reason ({failure})"
        advice = "the endpoint refuses what this run sends, or the account; see docs/models.md"
        return self._stopped(f"{exchange.where}: {why}; {advice}", bad_input=True)

    def _stopped(self, reason: str, *, bad_input: bool = False) -> RunStopped:
        self.stop_requests()
        return RunStopped(reason, bad_input=bad_input)


def pause_before(attempts: int, retry_after: float | None, jitter: float) -> float:
    """Seconds to wait before the next attempt: twice as long each time, with jitter.

    Args:
        attempts: made so far, without those that do not count.
        retry_after: what the provider asks for, at least.
        jitter: a random number in [0, 1) that spreads requests that failed together.
    """
    longest = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(max(attempts - 1, 0), 30))
    return max(longest * (0.5 + jitter / 2), retry_after or 0.0)
