"""Plays hostile answers through the real client in short runs, and reports what is wrong with the outcome."""

import logging
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from helpers.openai_server import in_thread, simulated
from hostile.endpoint_leaks import leaks, texts_of
from hostile.endpoint_recipes import Recipe, script_of
from hostile.endpoint_server import Asked, Hostile, RawServer, Script, running

from propensitybench.clients.endpoint import Endpoint
from propensitybench.clients.openai_chat import OpenAIChatClient
from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import ExecutionOptions, RunSpec, create_run, run_tasks
from propensitybench.episode import Outcome, Protocol
from propensitybench.errors import PropensityBenchError
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, mismatches
from propensitybench.store.export import export_run

_EXCEPTION: Final = re.compile(r"unexpected \w*(Error|Exception)\b|\b(Type|Value|Attribute|Key|Index)Error\b")
KEY: Final = "sk-sentinel/4d1f0c+T3Blbk"
LIMIT_S: Final = 5.0
LEVELS: Final = 1
TRANSPORT: Final = RequestLimits(timeout=0.7, connect_timeout=0.7, max_retries=0, concurrency=2)


class _Logged(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("propensitybench."):  # our own notes are told to the user
            self.texts.append(self.format(record))


class Player:
    """Plays one recipe after another.

    Args:
        server: answers as the recipe says.
        folder: for the run files.
    """

    def __init__(self, server: RawServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._empty = folder / "empty.run"
        options = ModelOptions(base_url=server.base_url)
        selection = Selection(limit=1)
        create_run(
            RunSpec("m", None, selection, protocol=Protocol(levels=LEVELS), options=options), self._empty
        )

    def issues(self, recipe: Recipe) -> list[str]:
        """What is wrong with a run whose endpoint answers like that; nothing if all is well."""
        path = self._folder / "a.run"
        shutil.copy(self._empty, path)
        logged = _Logged()
        logging.getLogger().addHandler(logged)
        try:
            found = self._played(recipe, path)
        finally:
            logging.getLogger().removeHandler(logged)
        found += [f"logged: {text}" for text in logged.texts]
        files = list(path.parent.glob("a.*"))
        texts = [text for file in files for text in texts_of(file)]
        if any(leaks(text, KEY) for text in (*texts, *found)):
            found.append("the key is in a file or a message")
        for file in files:
            file.unlink()
        found += self._server.complaints
        self._server.complaints.clear()
        return found

    def _played(self, recipe: Recipe, path: Path) -> list[str]:
        def hostile(asked: Asked) -> Script | None:
            is_first = len(asked.body["messages"]) == 2
            return script_of(recipe, asked.key) if is_first or recipe.when == "every" else None

        found = self._run(path, hostile)
        found += _issues_of(path, recipe, resumed=False)
        if recipe.when == "first" and not found:
            found += self._run(path, None)
            found += _issues_of(path, recipe, resumed=True)
        return found

    def _run(self, path: Path, hostile: Hostile | None) -> list[str]:
        self._server.hostile = hostile or (lambda _: None)
        self._server.calls = 0
        transport = msgspec.structs.replace(TRANSPORT, timeout=TRANSPORT.timeout if hostile else 60.0)
        client = OpenAIChatClient(
            Endpoint("m", "m", self._server.base_url, (KEY,)), ModelOptions(), transport
        )
        began, cpu = time.monotonic(), time.process_time()
        try:
            with RunFile.open(path, write=True) as run:
                run_tasks(run, client, ExecutionOptions(transport))
        except PropensityBenchError as error:
            return [f"the run ended: {error}"]
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return [f"raised {type(error).__name__}: {error}"]
        took, cpu = time.monotonic() - began, time.process_time() - cpu
        # Each request may take its whole timeout, on a machine that does other things too.
        is_hang = cpu > LIMIT_S or took > LIMIT_S + self._server.calls * transport.timeout
        return [f"took {took:.1f} s, {cpu:.1f} s of CPU time"] if is_hang else []


def _issues_of(path: Path, recipe: Recipe, *, resumed: bool) -> list[str]:
    """What is wrong with a run file."""
    with RunFile.open(path) as run:
        found = [str(difference) for difference in mismatches(run)]
        for task in run.tasks():
            replies = run.replies(task.number)
            if any(reply.usage.input < 0 for reply in replies):
                found.append("a negative count of tokens")
        for record in run.records():
            if _EXCEPTION.search(record.error):
                found.append(f"an exception became an error: {record.error}")
            found += _wrong_outcome(record.stats.outcome, record.stats.turns, recipe, resumed=resumed)
        export = path.with_suffix(".resumed.jsonl" if resumed else ".jsonl")
        export_run(run, export, "jsonl", transcripts=True)
    return found


def _wrong_outcome(outcome: Outcome, turns: int, recipe: Recipe, *, resumed: bool) -> list[str]:
    """What is wrong with an outcome. The ordinary agent of the server gives in at the last level."""
    if recipe.when == "first" and outcome is Outcome.RESISTED:
        return ["a task counts as resisted, though the ordinary agent gives in"]
    if resumed and outcome is Outcome.ERRORED:
        return ["a task is errored after a session without a hostile answer"]
    if outcome is Outcome.RESISTED and turns < LEVELS + 1:
        return [f"a task counts as resisted after {turns} turns"]
    return []


@contextmanager
def playing(folder: Path) -> Iterator[Player]:
    """A player with its server."""
    with in_thread(running(lambda _: None, simulated(f"at-level-{LEVELS}"))) as server:
        yield Player(server, folder)
