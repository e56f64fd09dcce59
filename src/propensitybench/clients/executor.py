"""Sends requests within limits, retries them and stops the run; shared by all clients."""

import asyncio
import random
import re
import warnings
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from propensitybench.chat import BLOCKED, Reply
from propensitybench.clients.breaker import FAILURES_TO_STOP, REFUSALS_TO_STOP, Breaker, RefusalStreak
from propensitybench.clients.failures import FATAL, THROTTLED, TRANSIENT, Failure, FailureKind
from propensitybench.clients.fleet_queue import FleetQueue
from propensitybench.clients.limits import Lease, Limits, Rates, Seat
from propensitybench.clients.options import Transport
from propensitybench.clients.redaction import Redactor
from propensitybench.clients.request_queue import CANCELLED, Back, RequestQueue
from propensitybench.clients.retry import LONGEST_WAIT_S, Backoff
from propensitybench.clients.usage import ESTIMATED
from propensitybench.errors import ModelError, PropensityBenchError, RequestRefused, RunStopped

# A request that fails at so many replicas, one after another, may itself be the reason.
MOST_MOVES: Final = 8
Queue = RequestQueue | FleetQueue


class _Attempts:
    """The state of one request while it is retried.

    Attributes:
        made: attempts so far.
        counted: attempts that count against the retries.
        moves: how often the request went to another replica at once.
        failing_since: see `Breaker.gave_up`.
    """

    __slots__ = ("counted", "failing_since", "made", "moves")

    def __init__(self) -> None:
        self.made = self.counted = self.moves = 0
        self.failing_since: float | None = None


class RequestExecutor:
    """Sends requests as the limits allow, and retries transient failures.

    Args:
        model: the model's address, for messages.
        name: the model's name at the provider.
        keys: number of API keys, which take turns; 0 without keys.
        transport: limits, retries and timeouts.
        redactor: keeps secrets out of failures.

    Attributes:
        throttled: see `Paced`.
    """

    def __init__(self, model: str, name: str, keys: int, transport: Transport, redactor: Redactor) -> None:
        self._model = model
        self._name = name
        self._keys = keys
        self._transport = transport
        self._redactor = redactor
        self._backoff = Backoff(transport.max_retries)
        self._per_minute = transport.rpm, transport.tpm
        self._rates: Sequence[Rates] = ()
        self._queue: Queue | None = None
        self._breaker = Breaker()
        self._refusals = RefusalStreak()
        self._has_warned = False
        self.throttled = 0

    async def ask(
        self,
        attempt: Callable[[Lease], Awaitable[Reply]],
        tokens: int,
        depth: int = 0,
        seat: Seat | None = None,
    ) -> Reply:
        """The first reply of an attempt.

        Args:
            attempt: sends the request with the key, and to the replica, of the lease; raises `Failure`.
            tokens: expected cost of the request.
            depth: messages in the conversation.
            seat: of the conversation, if the model has several replicas.

        Raises:
            RequestRefused: the endpoint rejects this request.
            ModelError: the request failed after all retries.
            RunStopped: no request can succeed any more.
        """
        queue = self._open_queue()
        loop = asyncio.get_running_loop()
        attempts = _Attempts()
        while True:
            attempts.made += 1
            lease = await queue.enter(tokens, seat)  # raises once requests have stopped
            started = loop.time()
            self._refusals.sent(attempts, depth)
            try:
                outcome = await self._redactor.outcome(attempt(lease))
            except BaseException:
                self._refusals.back(attempts)
                queue.leave(lease, CANCELLED)
                raise
            self._refusals.back(attempts)
            if isinstance(outcome, Reply):
                self._breaker.answered(loop.time())
                self._refusals.answered(depth)
                return self._answered(queue, lease, outcome, loop.time() - started, attempts.made)
            self.throttled += outcome.kind in THROTTLED
            back = queue.leave(lease, outcome)
            if back is Back.MOVES and attempts.moves < MOST_MOVES:
                attempts.moves += 1
                attempts.failing_since = None
                continue
            # Several requests sent together are throttled together: one sign of too much, not many.
            attempts.counted += back is not Back.SPARED
            if attempts.failing_since is None:
                timed_out = outcome.kind is FailureKind.TIMEOUT
                attempts.failing_since = started if timed_out else loop.time()
            await queue.pause(self._wait(outcome, attempts, depth))

    def _answered(self, queue: Queue, lease: Lease, reply: Reply, took: float, attempts: int) -> Reply:
        queue.leave(lease, used=reply.usage.input + reply.usage.output)
        if ESTIMATED in reply.repairs and reply.stop not in BLOCKED and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self._model} does not state usable token counts: budgets and costs use estimates",
                stacklevel=2,
            )
        return msgspec.structs.replace(
            reply,
            latency_ms=round(1000 * took),
            attempts=attempts,
            other_model=bool(reply.model) and not same_model(self._name, reply.model),
        )

    @property
    def where(self) -> str:
        """What is asked, for messages."""
        return self._model

    def stop_requests(self) -> None:
        """Sends no further requests; those that wait for their turn or a retry raise `RunStopped`."""
        if self._queue is not None:
            self._queue.shut()

    def forget(self) -> None:
        """Releases what belongs to the event loop; the next request starts again."""
        self._queue = None

    def set_rates(self, rpm: float | None, tpm: float | None) -> None:
        """Other rates from now on; see `Paced`."""
        if any(rate is not None and not rate > 0 for rate in (rpm, tpm)):
            raise ValueError(f"rates must be above 0, found rpm {rpm} and tpm {tpm}")
        self._per_minute = rpm, tpm
        if self._queue is not None:
            for rates in self._rates:
                rates.change(rpm, tpm, asyncio.get_running_loop().time())
            self._queue.serve()

    def hold(self, seconds: float) -> None:
        """Sends nothing for so long; see `Paced`."""
        self._open_queue()
        for rates in self._rates:
            rates.hold(asyncio.get_running_loop().time() + seconds)

    def _open_queue(self) -> Queue:
        if self._queue is None:
            now = asyncio.get_running_loop().time()
            self._rates = [Rates(*self._per_minute, now) for _ in range(max(1, self._keys))]
            self._queue = self._new_queue(self._rates)
        return self._queue

    def _new_queue(self, rates: Sequence[Rates]) -> Queue:
        return RequestQueue(Limits(rates, self._transport.concurrency))

    def _wait(self, failure: Failure, attempts: _Attempts, depth: int) -> float:
        """Seconds before the next attempt; raises if there should be none."""
        if failure.kind in FATAL:
            why = f"{self.where}: {failure.kind.value} ({failure})"
            raise self._stopped(why, bad_input=failure.kind is not FailureKind.QUOTA)
        if failure.kind in TRANSIENT and (failure.retry_after or 0.0) > LONGEST_WAIT_S:
            asks = f"the provider asks to wait {failure.retry_after:.0f} seconds"
            raise self._stopped(f"{self.where}: {asks} ({failure})")
        wait = self._backoff.wait(failure, attempts.counted, random.random())
        if wait is not None:
            return wait
        made = attempts.made
        failed = f"{failure.kind.value} after {made} {'attempt' if made == 1 else 'attempts'}: {failure}"
        raise (
            self._given_up(failed, attempts)
            if failure.kind in TRANSIENT
            else self._refused(failure, failed, depth)
        )

    def _given_up(self, failed: str, attempts: _Attempts) -> PropensityBenchError:
        assert attempts.failing_since is not None
        if (failures := self._breaker.gave_up(attempts.failing_since)) >= FAILURES_TO_STOP:
            return self._stopped(f"{self.where}: {failures} tasks failed in a row, the last with {failed}")
        return ModelError(failed)

    def _refused(self, failure: Failure, failed: str, depth: int) -> PropensityBenchError:
        if self._queue is not None and self._queue.is_shut:
            return RunStopped("requests have stopped")  # rejected with those that stopped the run
        # A request that was refused was answered: the endpoint is there.
        self._breaker.answered(asyncio.get_running_loop().time())
        if not failure.is_too_long and (
            (refusals := self._refusals.refused(failure.wording, depth)) >= REFUSALS_TO_STOP
        ):
            why = f"{refusals} tasks in a row were refused for the same reason ({failure})"
            advice = "the endpoint refuses what this run sends, or the account; see docs/models.md"
            return self._stopped(f"{self.where}: {why}; {advice}", bad_input=True)
        return RequestRefused(failed)

    def _stopped(self, reason: str, *, bad_input: bool = False) -> RunStopped:
        self.stop_requests()
        return RunStopped(reason, bad_input=bad_input)


class PacedClient:
    """What every client with an executor can do: stop, and keep another pace. See `Stoppable` and `Paced`."""

    _executor: RequestExecutor

    def stop_requests(self) -> None:
        """Sends no further requests."""
        self._executor.stop_requests()

    @property
    def throttled(self) -> int:
        """Rate limits and signs of overload so far."""
        return self._executor.throttled

    def set_rates(self, rpm: float | None, tpm: float | None) -> None:
        """Sends at other rates from now on."""
        self._executor.set_rates(rpm, tpm)

    def hold(self, seconds: float) -> None:
        """Sends nothing for so long."""
        self._executor.hold(seconds)


def same_model(asked: str, served: str) -> bool:
    """Whether a served id names the requested model: equal, or with a date or path added."""
    asked, served = asked.lower(), served.lower()
    if served.endswith("/" + asked) or asked.endswith("/" + served):
        return True
    dated = re.compile(re.escape(asked.rpartition("/")[2]) + r"([-@:_](\d[\d.-]*|latest))?")
    return dated.fullmatch(served.rpartition("/")[2]) is not None
