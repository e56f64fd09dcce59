"""Puts one run file through the commands, in this process, and reports whatever must not happen.

An audit hook sees every file that is opened for writing, every process and every connection: nothing may be
written outside the trial's own folder, started, or reached.
"""

import os
import resource
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.cli import main
from propensitybench.engine import stopping_state
from propensitybench.episode import EpisodeRecord, replay
from propensitybench.errors import BadInput
from propensitybench.runs import StoredRun
from propensitybench.runs.base import Run
from propensitybench.scenarios import scenario_id
from propensitybench.store import RunFile, mismatches

CPU_S: Final = 5
# For what waits without using the processor, such as a named pipe.
WALL_S: Final = 60
WHO: Final = ("--organization", "A", "--relationship", "other", "--model-id", "a/b")
COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("score", "{file}"),
    ("score", "{file}", "--json"),
    ("verify", "{file}"),
    ("show", "{file}"),
    ("show", "{file}", "{task}"),
    ("export", "{file}", "--transcripts", "--out", "{out}/table.jsonl"),
    ("export", "{file}", "--format", "parquet", "--out", "{out}/table.parquet"),
    ("record", "{file}", "--as", "every-eval-ever", *WHO, "--out", "{out}/records"),
    ("record", "{file}", "--as", "model-card"),
    ("report", "{file}", "--no-figures", "--out", "{out}/report"),
    ("judge", "{file}"),
    ("judge", "{copy}", "--judge", "keyless/words"),
    ("probe", "{file}", "--show"),
    ("probe", "{copy}", "--timeout", "2", "--max-retries", "0"),
    ("merge", "{file}", "--run", "{out}/merged.run"),
    ("resume", "{copy}", "--no-preflight", "--max-retries", "0", "--timeout", "2"),
)
SLOW: Final = ("export", "{file}", "--format", "eval", "--out", "{out}/logs")
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STARTS: Final = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "pty.spawn")
_CHANGES: Final = (
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "shutil.rmtree",
)


class Finding(msgspec.Struct):
    """Something that must not happen: what, in which command, and the details."""

    what: str
    command: str
    details: str


class Trial:
    """The commands on one file.

    Args:
        folder: where the file lies; everything may be written there.
        task: the key of a task, for ``show``.
        note: is told which command comes next, for a parent that sees this process die.
    """

    def __init__(self, folder: Path, task: str, note: Callable[[str], None]) -> None:
        self.folder, self.task, self.note = folder, task, note
        self.findings: list[Finding] = []
        self._command = ""

    def run(self, commands: tuple[tuple[str, ...], ...]) -> list[Finding]:
        """Calls the commands; everything that must not happen."""
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        os.chdir(self.folder)
        os.environ.update({"TMPDIR": str(out), "HOME": str(out), "COLUMNS": "100"})
        sys.addaudithook(self._watch)
        for command in commands:
            places = {"file": "a.run", "copy": "b.run", "out": "out", "task": self.task}
            self._call([part.format(**places) for part in command])
        self._command = "verify against replay"
        self.note(self._command)
        _limit_time()
        try:
            if (difference := certified_but_different(self.folder / "a.run")) is not None:
                self._found("verify passes a file that is read differently", difference)
        except Exception:  # noqa: BLE001 - that is what is looked for
            self._found("traceback", traceback.format_exc())
        return self.findings

    def _found(self, what: str, details: str) -> None:
        self.findings.append(Finding(what, self._command, details[-3000:]))

    def _call(self, arguments: list[str]) -> None:
        self._command = " ".join(arguments)
        self.note(self._command)
        _limit_time()
        streams = [self.folder / "out" / name for name in ("stdout", "stderr")]
        sys.argv = ["propensitybench", *arguments]
        sys.stdout, sys.stderr = (stream.open("w", encoding="utf-8") for stream in streams)
        code: object = 0
        try:
            main()
        except SystemExit as error:
            code = error.code
        except BaseException:  # noqa: BLE001 - that is what is looked for
            self._found("traceback", traceback.format_exc())
            return
        finally:
            sys.stdout.close()
            sys.stderr.close()
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        texts = [stream.read_text(encoding="utf-8", errors="replace") for stream in streams]
        if code not in (0, 1, 2):
            self._found(f"exit code {code}", texts[1])
        if code == 2 and not texts[1].strip().splitlines()[-1].startswith("propensitybench: "):
            self._found("bad input without a sentence", texts[1])
        if "Traceback" in texts[1]:
            self._found("traceback on standard error", texts[1])
        if "\x1b" in texts[0] + texts[1]:
            self._found("escape sequence in the output", ascii((texts[0] + texts[1])[:500]))

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS:
            self._found("starts a process", f"{event} {arguments!r}")
        elif event in ("socket.connect", "socket.getaddrinfo") and "127.0.0.1" not in repr(arguments):
            self._found("reaches for the network", f"{event} {arguments!r}")
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            self._check_place(event, arguments[0])
        elif event in _CHANGES:
            self._check_place(event, arguments[1] if event in ("os.link", "os.rename") else arguments[0])

    def _check_place(self, event: str, given: Any) -> None:
        if isinstance(given, int) or given is None:
            return
        place = os.path.realpath(os.fsdecode(given))
        if place != os.devnull and not place.startswith(str(self.folder.resolve()) + os.sep):
            self._found("writes outside", f"{event} {place}")


def _limit_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_S + 1, resource.RLIM_INFINITY)
    )
    signal.alarm(WALL_S)


def certified_but_different(path: Path) -> str | None:
    """What `verify` passes although a command reads something else than the journal says; None if nothing."""
    try:
        with RunFile.open(path) as run:
            if any(mismatches(run)):
                return None
            stopping = stopping_state(run)
            records = recomputed(run)
            names = {record.metadata.scenario for record in records}
            contents = {name: scenario_id(run.scenario(name)) for name in names}
            ended = [record for record in records if record.stats.outcome != "unfinished"]
            finished, counts, total = run.finished(), run.outcome_counts(), run.count("outcome")
            shard = run.shard
        expected = Run(str(path), run.manifest, records, contents, stopping)
        if shard is not None:  # its scores are those of a run of as many tasks
            expected.shard = str(shard)
            expected.manifest = msgspec.structs.replace(run.manifest, tasks=_rows(path, "share"))
    except BadInput:
        return None
    stored = StoredRun(path)
    for what, left, right in (
        ("score", stored.score(), expected.score()),
        ("records", list(stored.records), records),
        ("contents", stored.contents, contents),
        ("planned", stored.planned, _rows(path, "task" if shard is None else "share")),
        ("outcomes", sum(counts.values()), len(ended)),
        ("rows", total, _rows(path, "outcome")),
        ("finished", finished, sum(record.stats.outcome != "errored" for record in ended)),
    ):
        if left != right and msgspec.json.encode(left) != msgspec.json.encode(right):  # a score may hold NaN
            return f"{what}: {left!r}\n!= {right!r}"
    return None


def recomputed(run: RunFile) -> list[EpisodeRecord]:
    """The outcomes that the journal and the errors give, without looking at what an outcome says."""
    records = []
    for task in run.tasks():
        episode, request = replay(run.job(task))
        if request is None:
            records.append(episode.record())
        elif run.stored_record(task.number) is not None:  # unfinished or errored: both are not scored
            records.append(episode.record(run.errors(task.number)[-1]))
        elif episode.turns:
            records.append(episode.unfinished())
    return records


def _rows(path: Path, table: str) -> int:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        db.close()
