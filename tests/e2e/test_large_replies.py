"""Replies and conversations without end: no full memory, and no run that stops for one of them."""

import asyncio
import gzip
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from helpers.http_client import asked, reply_to
from helpers.openai_server import (
    HUGE,
    JSON_TYPE,
    Answer,
    Json,
    Server,
    always,
    says,
    serving,
    simulated,
)
from helpers.program import argv, call

from propensitybench.clients.options import RequestLimits
from propensitybench.episode import Outcome
from propensitybench.errors import ModelError
from propensitybench.store import RunFile

MB = 2**20


def bomb(megabytes: int) -> Answer:
    """A body of so many MB of spaces, a thousandth of that on the wire."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    head = packer.compress(b" " * MB) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush equal input gives equal output.
    block = packer.compress(b" " * MB) + packer.flush(zlib.Z_FULL_FLUSH)
    return Answer(head + block * (megabytes - 1), headers={**JSON_TYPE, "Content-Encoding": "gzip"})


# A process is charged with the memory of the one that starts it, so a small one does.
MEASURE = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def peak_memory(*arguments: str | Path) -> tuple[int, str]:
    """The most memory that a call of the program took, in MB, and what it wrote to standard error."""
    command = [sys.executable, "-c", MEASURE, *argv(*arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) // (MB if sys.platform == "darwin" else 1024), done.stderr


def run(server: Server, path: Path, concurrency: int, *more: str) -> list[str]:
    """The command line of a run."""
    return [
        "run", "--model", "m", "--base-url", server.base_url, "--run", str(path), "--no-preflight",
        "--max-retries", "0", "--concurrency", str(concurrency), *more,
    ]  # fmt: skip


def test_a_huge_reply_is_not_read_to_its_end_and_is_retried() -> None:
    (got,), attempts = asyncio.run(asked(always(HUGE), RequestLimits(timeout=30, max_retries=1)))
    assert isinstance(got, ModelError)
    assert "more than 4 MB" in str(got)
    assert attempts == 2


PACKED: Mapping[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


@pytest.mark.parametrize("encoding", PACKED)
def test_a_long_reply_is_read_even_if_it_comes_compressed(encoding: str) -> None:
    answer = says("word " * 800_000)
    packed = {
        "identity": answer.body,
        "gzip": gzip.compress(answer.body),
        "deflate": zlib.compress(answer.body),
    }
    reply = reply_to(Answer(packed[encoding], headers={**JSON_TYPE, "Content-Encoding": encoding}))
    assert reply.content == "word " * 800_000


def test_a_small_body_that_unpacks_to_gigabytes_does_not_fill_the_memory(tmp_path: Path) -> None:
    answer = bomb(800)
    assert len(answer.body) < 1.6 * MB
    with serving(always(answer)) as server:
        taken, printed = peak_memory(*run(server, tmp_path / "a.run", 16, "--limit", "8"))
    assert "16 tasks errored" in printed
    assert "a reply of more than 4 MB" in printed
    assert taken < 500


def test_a_conversation_without_end_errors_its_task_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    never, text = simulated("never"), says("x" * 3_000_000)

    def endless_for_some(request: Json, number: int) -> Answer:
        task = request["messages"][1]["content"]
        return text if zlib.crc32(task.encode()) % 2 else never(request, number)

    with serving(endless_for_some) as server:
        first = call(*run(server, path, 4, "--limit", "2", "--levels", "2"))
        calls = server.calls
        again = call("resume", path, "--no-preflight")
        assert server.calls == calls
    why = (
        "its conversation has more than 8,388,608 characters, so it cannot be finished; in a new run give a "
        "lower --max-tokens"
    )
    for done in (first, again):
        assert done.code == 1
        assert f"tasks errored, the last one: {why}\n" in done.err
    with RunFile.open(path) as played:
        replies = {len(played.replies(number)): record for number, record in played.numbered_records()}
    assert {record.stats.outcome for record in replies.values()} == {Outcome.ERRORED, Outcome.RESISTED}
    assert (replies[3].stats.outcome, replies[3].error) == (Outcome.ERRORED, why)
