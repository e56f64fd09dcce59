"""Memory and time of planning, creating, merging and scoring a run of a million episodes.

Every task is played once by a simulated agent; its journal then stands for that of all epochs, so the files
have the size of a real run, and only their content repeats. Each step is a process of its own.

    .venv/bin/python perf/million.py
    .venv/bin/python perf/million.py --epochs 4 --shards 2
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.engine import RunSpec, create_run
from propensitybench.scenarios import Selection
from propensitybench.store import JournalEntry, OutcomeEntry, RunFile, Shard, encode_reply

AGENT: Final = "simulated/gemini-2.5-pro-like"
# Tasks whose journals are in memory and in one commit.
AT_ONCE: Final = 2_000
PROGRAM: Final = "from propensitybench.cli import main; main()"


class Journal(NamedTuple):
    """What a task's episode puts into the run file."""

    replies: list[str]
    outcome: OutcomeEntry


def measured(what: str, *command: str | Path) -> None:
    """Runs a command of the program and prints what it took."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{what} failed")
    memory = used.ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    print(f"{what:<10}{memory:8.2f} GB{time.monotonic() - began:8.0f} s", flush=True)


def played(path: Path) -> dict[str, Journal]:
    """The journal of each task of a run, by the key of the task without its epoch."""
    journals = {}
    with RunFile.open(path) as run:
        for task in run.tasks():
            stored = run.stored_record(task.number)
            assert stored is not None
            replies = [encode_reply(reply) for reply in run.replies(task.number)]
            journals[task.task.key.rpartition(".")[0]] = Journal(replies, OutcomeEntry(task.number, *stored))
    return journals


def fill(path: Path, journals: Mapping[str, Journal]) -> None:
    """Puts a journal and an outcome into each task of a shard."""
    replies: list[JournalEntry] = []
    outcomes: list[OutcomeEntry] = []
    with RunFile.open(path, write=True) as run:
        for task in list(run.unfinished()):
            journal = journals[task.task.key.rpartition(".")[0]]
            _, record, fingerprint = journal.outcome
            metadata = msgspec.structs.replace(record.metadata, task=task.task.key, epoch=task.task.epoch)
            record = msgspec.structs.replace(record, metadata=metadata)
            replies += [JournalEntry(task.number, turn, body) for turn, body in enumerate(journal.replies)]
            outcomes.append(OutcomeEntry(task.number, record, fingerprint))
            if len(outcomes) == AT_ONCE:
                run.append(replies, outcomes)
                replies, outcomes = [], []
        run.append(replies, outcomes)


def main() -> None:
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=86, help="of the whole built-in set: 11,748 tasks each")
    parser.add_argument("--shards", type=int, default=4)
    given = parser.parse_args()
    epochs = ("--epochs", str(given.epochs))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = ("run", "--model", AGENT, "--json")
        measured("play once", *run, "--run", folder / "once.run")
        journals = played(folder / "once.run")
        measured("plan", *run, "--run", folder / "none.run", *epochs, "--plan")
        (folder / "shards").mkdir()
        for number in range(1, given.shards + 1):
            shard = Shard(number, given.shards)
            path = folder / "shards" / f"{number}.run"
            create_run(RunSpec(AGENT, selection=Selection(epochs=given.epochs), shard=shard), path)
            fill(path, journals)
        size = sum(path.stat().st_size for path in (folder / "shards").iterdir())
        print(f"{given.shards} shards with {len(journals) * given.epochs:,} episodes: {size / 2**30:.1f} GB")
        measured("merge", "merge", folder / "shards", "--run", folder / "merged.run", "--json")
        measured("score", "score", folder / "merged.run", "--json")
        measured("of shards", "score", folder / "shards", "--json")


if __name__ == "__main__":
    main()
