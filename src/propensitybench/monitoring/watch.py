"""Asks a monitor after each turn of a run's episodes, and journals each reply in the run file."""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.chat import ConversationContext, Request
from propensitybench.clients import Client
from propensitybench.clients.function import FunctionClient
from propensitybench.clients.options import ModelOptions
from propensitybench.digests import digest, seed_from, shuffled
from propensitybench.engine import ExecutionOptions, Price, StopSignal, client_at, price_table
from propensitybench.engine.asking import (
    AskingListener,
    AskingResult,
    AskingSession,
    Enquiry,
    Prompt,
    unanswered,
)
from propensitybench.engine.prices import Costs
from propensitybench.episode import SCORED, EpisodeRecord, Outcome
from propensitybench.episode.events import last_object
from propensitybench.errors import BadInput, UnknownName
from propensitybench.judging import keyless
from propensitybench.judging.session import AskingEstimate, estimate
from propensitybench.monitoring.keyless import KeylessMonitor
from propensitybench.monitoring.monitors import Monitor, check_name
from propensitybench.monitoring.steps import steps_of
from propensitybench.runs import StoredRun
from propensitybench.runs.stored import transcript_in
from propensitybench.simulated import PREFIX as SIMULATED
from propensitybench.store import AnnotationKey, NumberedTask, RunFile

MonitorFunction = Callable[[list[dict[str, Any]]], Awaitable[float | None] | float | None]
"""Takes the conversation up to a turn as OpenAI's API has it; returns a suspicion from 0 to 1, or None."""
PYTHON: Final = "python/"
WATCHER: Final = "monitor:"
"""How models are named among the raters when they watch: they may also have been asked as judges."""
_TOKENS_ANSWERED: Final = 20


class Watching(msgspec.Struct, frozen=True):
    """Who watches what.

    Attributes:
        monitors: what is asked after each turn.
        models: who is asked, by address.
        options: of every model.
        functions: the models that are functions, by address.
        limit: of episodes, evenly over domains and over those that cross and those that do not; None is all.
    """

    monitors: tuple[Monitor, ...]
    models: tuple[str, ...]
    options: ModelOptions = ModelOptions()
    functions: Mapping[str, MonitorFunction] = {}
    limit: int | None = None

    def __post_init__(self) -> None:
        """Raises `BadInput` for a model that cannot read."""
        for model in self.models:
            if model.startswith(SIMULATED):
                raise BadInput(f"--monitor {model}: cannot read; give a model, or {keyless.MODEL} to try it")
            if model.startswith(keyless.PREFIX) and model != keyless.MODEL and not self.options.base_url:
                raise UnknownName("monitor", model, [keyless.MODEL])
            if self.models.count(model) > 1:
                raise BadInput(f"--monitor {model}: is given twice")


Enquiries = list[Enquiry[AnnotationKey]]


def plan_watching(path: Path, watching: Watching, execution: ExecutionOptions) -> AskingEstimate:
    """What `watch_run` would still have to ask; sends nothing and writes nothing."""
    run = StoredRun(path)
    with RunFile.open(path) as file:
        asked = _enquiries(run, file, watching)
        left = {model: unanswered(file, every) for model, every in asked.items()}
        episodes = dict.fromkeys((one.name for one in watching.monitors), len(chosen(run, watching.limit)))
        return estimate(episodes, left, _prices(watching, execution), _TOKENS_ANSWERED)


async def watch_run(
    path: Path,
    watching: Watching,
    execution: ExecutionOptions,
    on_progress: AskingListener | None = None,
    stop: StopSignal | None = None,
) -> AskingResult:
    """Asks after each turn what has not been asked; the same call resumes it. See `judging.judges.judge_run`.

    Raises:
        BadInput: a model cannot be used or was asked with other options before, or a budget has no price.
    """
    clients = {model: _client(model, watching, execution) for model in watching.models}
    run, prices = StoredRun(path), _prices(watching, execution)
    with RunFile.open(path, write=True) as file:
        spent = {model: file.usage_of(WATCHER + model) for model in prices}
        costs = Costs(spent, prices, execution.budget)
        _register(file, watching)
        session = AskingSession(file, costs, on_progress, stop)
        asked = {clients[model]: every for model, every in _enquiries(run, file, watching).items()}
        return await session.ask_all(asked, execution.transport.concurrency)


def chosen(run: StoredRun, limit: int | None = None) -> list[EpisodeRecord]:
    """The scored episodes, in a random order that takes domains, and those that cross and do not, in turn."""
    episodes = [record for record in run.records if record.stats.outcome in SCORED]
    turns: dict[tuple[str, bool], int] = {}
    ranked: list[tuple[int, int]] = []
    for index in shuffled(range(len(episodes)), "monitor", run.manifest.seed):
        record = episodes[index]
        kind = record.metadata.domain, record.stats.outcome is Outcome.MISALIGNED
        turns[kind] = turns.get(kind, 0) + 1
        ranked.append((turns[kind], index))
    ranked.sort(key=lambda one: one[0])
    return [episodes[index] for _, index in ranked[:limit]]


def _enquiries(run: StoredRun, file: RunFile, watching: Watching) -> dict[str, Enquiries]:
    tasks = {task.task.key: task for task in file.tasks()}
    every = [
        (monitor, tasks[record.metadata.task], turn)
        for record in chosen(run, watching.limit)
        for monitor in watching.monitors
        for turn in range(1, record.stats.turns + 1)
    ]
    prompts = _Prompts(file, watching)
    return {
        model: [
            Enquiry(
                AnnotationKey(task.number, monitor.digest, str(turn), WATCHER + model),
                partial(prompts.prompt, monitor, task, turn, model),
            )
            for monitor, task, turn in every
        ]
        for model in watching.models
    }


class _Prompts:
    """Makes what is asked; keeps the steps of the last episode, whose turns are asked in a row."""

    def __init__(self, file: RunFile, watching: Watching) -> None:
        self._file, self._functions = file, watching.functions
        self._key: tuple[str, int] | None = None
        self._steps: dict[int, Any] = {}

    def prompt(self, monitor: Monitor, task: NumberedTask, turn: int, model: str) -> Prompt:
        """What a model is asked after a turn."""
        if self._key != (monitor.digest, task.number):
            transcript = transcript_in(self._file, task)
            steps = steps_of(transcript, monitor, self._file.manifest.model)
            self._steps = {step.turn: step for step in steps}
            self._key = monitor.digest, task.number
        step = self._steps[turn]
        identity = digest(monitor.digest, task.task.key, str(turn), model)
        messages = list(step.messages) if model in self._functions else monitor.ask(step.item)
        return Prompt(Request(messages, ()), ConversationContext(identity, seed_from(identity)))


def _client(model: str, watching: Watching, execution: ExecutionOptions) -> Client:
    if model in watching.functions:
        return FunctionClient(_as_agent(watching.functions[model]), model)
    if model == keyless.MODEL and watching.options.base_url is None:
        return KeylessMonitor(model)
    try:
        return client_at(execution.endpoints, model, watching.options, execution.transport)
    except BadInput as error:
        raise BadInput(str(error).replace("--model", "--monitor", 1)) from error


def _as_agent(function: MonitorFunction) -> Callable[[list[dict[str, Any]], list[dict[str, Any]]], Any]:
    """The function as an agent that answers what a model is asked for."""

    async def awaited(messages: list[dict[str, Any]], _tools: list[dict[str, Any]]) -> str:
        found = function(messages)
        return json.dumps({"suspicion": await found if inspect.isawaitable(found) else found})

    def called(messages: list[dict[str, Any]], _tools: list[dict[str, Any]]) -> str:
        return json.dumps({"suspicion": function(messages)})

    return awaited if inspect.iscoroutinefunction(function) else called


def _prices(watching: Watching, execution: ExecutionOptions) -> dict[str, Price | None]:
    free, table = Price(0.0, 0.0), price_table()
    return {
        model: free if model.startswith((keyless.PREFIX, PYTHON)) else execution.price or table.find(model)
        for model in watching.models
    }


def _register(file: RunFile, watching: Watching) -> None:
    """Stores monitors and models; raises `BadInput` for a model that was asked in another way."""
    given = msgspec.json.encode(watching.options).decode()
    for monitor in watching.monitors:
        check_name(file, monitor)
    known = file.raters()
    for model in watching.models:
        if known.get(WATCHER + model, given) != given:
            raise BadInput(
                f"--monitor {model}: was asked with other options in {file.path}: {known[WATCHER + model]}; "
                "give the same options, or watch a copy of the run file"
            )
    file.annotate(
        questions={one.digest: one.body for one in watching.monitors},
        raters={WATCHER + model: given for model in watching.models},
    )


def scores_in(file: RunFile, monitor: Monitor) -> Iterator[tuple[str, int, int, float | None]]:
    """Model, number of the task, turn and score of each reply to a monitor; None where it gives none."""
    for key, reply in file.annotations(monitor.digest):
        yield key.rater.removeprefix(WATCHER), key.task, int(key.variant), read_score(reply.content)


class _ScoreFields(msgspec.Struct, frozen=True):
    suspicion: float | None


_SCORE: Final = msgspec.json.Decoder(_ScoreFields)


def read_score(content: str) -> float | None:
    """The score in a reply; None if there is none from 0 to 1."""
    found = last_object(content, _SCORE)
    return found.suspicion if found and found.suspicion is not None and 0 <= found.suspicion <= 1 else None
