"""Stopping a run, from any thread."""

import asyncio
from pathlib import Path
from threading import Barrier, Thread, get_ident

import pytest
from helpers.clients import ByTask, at
from helpers.runs import finish, journal, make

from propensitybench.chat import Reply, Request
from propensitybench.clients import Conversation
from propensitybench.engine import Result, StopCause, StopSignal, run_tasks_async
from propensitybench.engine.stop import stopped_by_cancelling
from propensitybench.errors import ModelError
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import SimulatedClient
from propensitybench.store import RunFile, mismatches


class StoppedByThread(ByTask):
    """A client of which a thread stops the run while requests are in flight."""

    def __init__(self, stop: StopSignal) -> None:
        self._inner = SimulatedClient("o3-like")
        self.model = self._inner.model
        self.stop = stop
        self.errors: list[BaseException] = []
        self.called_in: list[int] = []
        self._released = asyncio.Event()
        self._calls = 0

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        return _Waiting(self, self._inner.open_task(task, replies))

    def stop_requests(self) -> None:
        """Releases what is in flight; a real client wakes the requests that wait for their turn."""
        self.called_in.append(get_ident())
        self._released.set()

    async def close(self) -> None:
        await self._inner.close()

    async def wait(self) -> None:
        self._calls += 1
        if self._calls == 20:
            Thread(target=self._request_stop).start()
        if self._calls >= 20:
            await self._released.wait()

    def _request_stop(self) -> None:
        try:
            self.stop.request_stop(reason="stopped by a thread")
        except BaseException as error:  # noqa: BLE001 - a thread's error is seen nowhere else
            self.errors.append(error)


class _Waiting:
    def __init__(self, client: StoppedByThread, inner: Conversation) -> None:
        self._client, self._inner = client, inner

    async def reply(self, request: Request) -> Reply:
        reply = await self._inner.reply(request)
        await self._client.wait()
        return reply


def test_a_thread_can_stop_a_run(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")

    async def play() -> tuple[Result, StoppedByThread]:
        client = StoppedByThread(StopSignal())
        with RunFile.open(path, write=True) as run:
            return await run_tasks_async(run, client, at(4), stop=client.stop), client

    # In debug mode, a loop raises an error in a thread that uses it unsafely.
    result, client = asyncio.run(play(), debug=True)
    assert client.errors == []
    assert (result.cause, result.reason) == (StopCause.INTERRUPTED, "stopped by a thread")
    assert client.called_in == [get_ident()], "a client is told in the event loop's own thread"
    assert len(journal(path)) > 0
    assert result.finished < result.total
    assert finish(path).finished == result.total
    with RunFile.open(path) as run:
        assert list(mismatches(run)) == []


def test_of_many_requests_to_stop_the_first_counts_and_each_callback_is_called_once() -> None:
    stop, start = StopSignal(), Barrier(8)
    called: list[int] = []
    for number in range(50):
        stop.on_stop_requested(lambda number=number: called.append(number))  # type: ignore[misc]

    def request(number: int) -> None:
        start.wait()
        stop.request_stop(StopCause.PROVIDER, str(number))
        stop.on_stop_requested(lambda: called.append(100 + number))

    threads = [Thread(target=request, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stop.stop_requested
    assert stop.cause is StopCause.PROVIDER
    assert stop.reason in map(str, range(8))
    assert sorted(called) == [*range(50), *range(100, 108)]


def test_a_stop_that_was_requested_before_the_run_plays_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    stop = StopSignal()
    stop.request_stop(StopCause.BUDGET, "too dear")

    class Never(ByTask):
        model = "simulated/o3-like"

        def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
            raise ModelError(f"{task.task} was opened after {replies} replies")

        async def close(self) -> None:
            """Nothing to close."""

    with RunFile.open(path, write=True) as run:
        result = asyncio.run(run_tasks_async(run, Never(), at(4), stop=stop))
    assert (result.finished, result.cause, result.reason) == (0, StopCause.BUDGET, "too dear")
    assert journal(path) == set()


@pytest.mark.parametrize("cause", [StopCause.INTERRUPTED, StopCause.PROVIDER])
def test_a_callback_that_comes_late_is_called_at_once(cause: StopCause) -> None:
    stop = StopSignal()
    stop.request_stop(cause)
    called: list[StopCause | None] = []
    stop.on_stop_requested(lambda: called.append(stop.cause))
    assert called == [cause]


def test_cancelling_after_a_request_to_stop_waits_for_nothing() -> None:
    async def main() -> None:
        stop = StopSignal()
        task = asyncio.create_task(stopped_by_cancelling(asyncio.Event().wait(), stop))
        await asyncio.sleep(0)
        stop.request_stop()
        task.cancel()
        await asyncio.wait_for(task, 10)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
