"""Asking until there is a reply: limits, retries and the breaker, the same for every client."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from propensitybench.chat import Reply
from propensitybench.clients.failures import FATAL, TRANSIENT, Failure, FailureKind
from propensitybench.clients.limits import Lease, Limits
from propensitybench.clients.options import Transport
from propensitybench.clients.request_queue import RequestQueue
from propensitybench.clients.retry import LONGEST_WAIT_S, Backoff
from propensitybench.errors import ModelError, RunStopped

# So many tasks given up in a row, with no answer between them, mean that the endpoint is gone.
FAULTS_TO_STOP: Final = 20


class RequestExecutor:
    """Sends requests as the limits allow, and again where that makes sense.

    Args:
        model: the address that the user knows, for messages.
        name: the model's own name at the provider.
        keys: number of API keys, which take turns; 0 if none is needed.
        transport: limits, retries and time-outs.
    """

    def __init__(self, model: str, name: str, keys: int, transport: Transport) -> None:
        self._model = model
        self._name = name
        self._keys = keys
        self._transport = transport
        self._backoff = Backoff(transport.max_retries)
        self._gate: RequestQueue | None = None
        self._faults_in_a_row = 0

    async def ask(self, attempt: Callable[[int], Awaitable[Reply]], tokens: int) -> Reply:
        """The first reply that an attempt gives.

        Args:
            attempt: sends the request with the key of that number; raises `Failure`.
            tokens: that the request may cost.

        Raises:
            ModelError: there is no reply to be had for this request.
            RunStopped: there will be none for any request.
        """
        gate = self._open_gate()
        loop = asyncio.get_running_loop()
        attempts = 0
        while True:
            attempts += 1
            lease = await gate.enter(tokens)  # raises once asking has stopped
            started = loop.time()
            try:
                reply = await attempt(lease.key)
            except Failure as failure:
                gate.leave(lease, failure)
                wait = self._wait(failure, attempts)
            except BaseException:
                gate.leave(lease, Failure(FailureKind.NETWORK, "given up"))
                raise
            else:
                return self._answered(gate, lease, reply, loop.time() - started, attempts)
            await gate.pause(wait)

    def _answered(self, gate: RequestQueue, lease: Lease, reply: Reply, took: float, attempts: int) -> Reply:
        gate.leave(lease, used=reply.usage.input + reply.usage.output)
        self._faults_in_a_row = 0
        return msgspec.structs.replace(
            reply,
            latency_ms=round(1000 * took),
            attempts=attempts,
            other_model=bool(reply.model) and not same_model(self._name, reply.model),
        )

    def stop_requests(self) -> None:
        """Sends nothing more: what waits for its turn or for another try raises `RunStopped`."""
        if self._gate is not None:
            self._gate.shut()

    def forget(self) -> None:
        """Lets go of what belongs to an event loop; the next question begins anew."""
        self._gate = None

    def _open_gate(self) -> RequestQueue:
        if self._gate is None:
            way = self._transport
            now = asyncio.get_running_loop().time()
            self._gate = RequestQueue(Limits(max(1, self._keys), way.concurrency, way.rpm, way.tpm, now))
        return self._gate

    def _wait(self, failure: Failure, attempts: int) -> float:
        """Seconds before the next try; raises if there should be none."""
        text = str(failure)
        if failure.kind in FATAL:
            why = f"{self._model}: {failure.kind.value} ({text})"
            self.stop_requests()
            raise RunStopped(why, bad_input=failure.kind is not FailureKind.QUOTA)
        if failure.kind in TRANSIENT and (failure.retry_after or 0.0) > LONGEST_WAIT_S:
            self.stop_requests()
            wish = f"the provider asks to wait {failure.retry_after:.0f} seconds"
            raise RunStopped(f"{self._model}: {wish} ({text})")
        wait = self._backoff.wait(failure, attempts, random.random())
        if wait is None:
            # A request that was refused was answered: the endpoint is there.
            self._faults_in_a_row = self._faults_in_a_row + 1 if failure.kind in TRANSIENT else 0
            failed = f"{failure.kind.value} after {attempts} {'try' if attempts == 1 else 'attempts'}: {text}"
            if self._faults_in_a_row >= FAULTS_TO_STOP:
                self.stop_requests()
                many = f"{self._faults_in_a_row} tasks failed in a row"
                raise RunStopped(f"{self._model}: {many}, the last with {failed}")
            raise ModelError(failed)
        return wait


def same_model(asked: str, served: str) -> bool:
    """Whether a served id stands for the model asked for: equal, or with a date or path added."""
    asked, served = asked.lower(), served.lower()
    if served.endswith("/" + asked) or asked.endswith("/" + served):
        return True
    dated = re.compile(re.escape(asked.rpartition("/")[2]) + r"([-@:_](\d[\d.-]*|latest))?")
    return dated.fullmatch(served.rpartition("/")[2]) is not None
