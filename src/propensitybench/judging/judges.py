"""Puts questions about a run's episodes to judges, and journals each reply in the run file."""

from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import ConversationContext, Request
from propensitybench.clients import Client
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
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput, UnknownName
from propensitybench.judging import keyless
from propensitybench.judging.items import item_of
from propensitybench.judging.labels import PERSON, episodes_about
from propensitybench.judging.prompts import ask, prompts
from propensitybench.judging.questions import Question, check_name
from propensitybench.judging.session import AskingEstimate, estimate
from propensitybench.runs import StoredRun
from propensitybench.runs.stored import transcript_in
from propensitybench.simulated import PREFIX as SIMULATED
from propensitybench.store import AnnotationKey, NumberedTask, RunFile

_TOKENS_ANSWERED: Final = 60


class Judging(msgspec.Struct, frozen=True):
    """What is asked of whom; raises `BadInput` for a judge or a consequence that cannot be used.

    Attributes:
        questions: about each episode that they are about.
        judges: models, by address.
        options: of every judge.
        consequences: what judges are told of what follows; each is asked besides the usual form.
        limit: of episodes for each question, evenly over domains; None is all.
    """

    questions: tuple[Question, ...]
    judges: tuple[str, ...]
    options: ModelOptions = ModelOptions()
    consequences: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        """Checks what is given."""
        for judge in self.judges:
            if judge.startswith((SIMULATED, PERSON)):
                raise BadInput(f"--judge {judge}: cannot read; give a model, or {keyless.MODEL} to try it")
            if judge.startswith(keyless.PREFIX) and judge != keyless.MODEL and not self.options.base_url:
                raise UnknownName("judge", judge, [keyless.MODEL])
        for name in self.consequences:
            if name not in prompts().consequences:
                raise UnknownName("consequence", name, prompts().consequences, "--consequence")
        for option, given in (
            ("--question", [question.name for question in self.questions]),
            ("--judge", self.judges),
            ("--consequence", self.consequences),
        ):
            if twice := [one for one in given if given.count(one) > 1]:
                raise BadInput(f"{option} {twice[0]}: is given twice")


class _Rater(msgspec.Struct, frozen=True):
    """What of a judge's settings can change its answers."""

    options: dict[str, Any]
    prompts: str


class _JudgeQuestion(NamedTuple):
    """A question about an episode, in one form; every judge is asked it."""

    question: Question
    task: NumberedTask
    variant: str


def plan_judging(path: Path, judging: Judging, execution: ExecutionOptions) -> AskingEstimate:
    """What `judge_run` would still have to ask; sends nothing and writes nothing."""
    run = StoredRun(path)
    with RunFile.open(path) as file:
        left = {
            judge: unanswered(file, enquiries) for judge, enquiries in _enquiries(run, file, judging).items()
        }
        episodes = {one.name: len(_chosen(run, one, judging.limit)) for one in judging.questions}
        return estimate(episodes, left, _prices(judging, execution), _TOKENS_ANSWERED)


async def judge_run(
    path: Path,
    judging: Judging,
    execution: ExecutionOptions,
    on_progress: AskingListener | None = None,
    stop: StopSignal | None = None,
) -> AskingResult:
    """Asks the judges what they have not been asked; the same call resumes it.

    Each reply is committed to the run file when it arrives, whether it can be read or not, and is never
    asked for again. Cancelling stops it, as ``stop`` does.

    Args:
        path: the run file; its episodes, outcomes and scores stay as they are.
        judging: what is asked of whom.
        execution: concurrency for each judge, budget of all their replies in the file, price of every judge.
        on_progress: called after each reply.
        stop: stops it when requested, from any thread.

    Raises:
        BadInput: a judge cannot be used, was asked with other options or prompts before, or a budget in
            dollars has no price.
    """
    clients = {judge: _client(judge, judging.options, execution) for judge in judging.judges}
    run, prices = StoredRun(path), _prices(judging, execution)
    with RunFile.open(path, write=True) as file:
        costs = Costs({judge: file.usage_of(judge) for judge in prices}, prices, execution.budget)
        _register(file, judging)
        session = AskingSession(file, costs, on_progress, stop)
        asked = {clients[judge]: every for judge, every in _enquiries(run, file, judging).items()}
        return await session.ask_all(asked, execution.transport.concurrency)


def _enquiries(run: StoredRun, file: RunFile, judging: Judging) -> dict[str, list[Enquiry[AnnotationKey]]]:
    """Everything that each judge is asked, in an order of its own."""
    tasks = {task.task.key: task for task in file.tasks()}
    every = [
        _JudgeQuestion(question, tasks[record.metadata.task], variant)
        for question in judging.questions
        for record in _chosen(run, question, judging.limit)
        for variant in ("", *judging.consequences)
    ]
    return {
        judge: [_enquiry(file, every[index], judge) for index in shuffled(range(len(every)), judge)]
        for judge in judging.judges
    }


def _enquiry(file: RunFile, asked: _JudgeQuestion, judge: str) -> Enquiry[AnnotationKey]:
    key = AnnotationKey(asked.task.number, asked.question.digest, asked.variant, judge)
    return Enquiry(key, partial(_prompt, file, asked, judge))


def _prompt(file: RunFile, asked: _JudgeQuestion, judge: str) -> Prompt:
    item = item_of(transcript_in(file, asked.task), asked.question, file.manifest.model)
    identity = digest(asked.question.digest, item.task, asked.variant, judge)
    messages = ask(asked.question, item, asked.variant, judge)
    return Prompt(Request(messages, ()), ConversationContext(identity, seed_from(identity)))


def _chosen(run: StoredRun, question: Question, limit: int | None) -> list[EpisodeRecord]:
    """The episodes to ask about, in a random order that takes the domains in turn."""
    episodes = episodes_about(run, question)
    turns: dict[str, int] = {}
    ranked: list[tuple[int, str, EpisodeRecord]] = []
    for index in shuffled(range(len(episodes)), question.digest, run.manifest.seed):
        domain = episodes[index].metadata.domain
        turns[domain] = turns.get(domain, 0) + 1
        ranked.append((turns[domain], domain, episodes[index]))
    ranked.sort(key=lambda one: one[:2])
    return [record for _, _, record in ranked[:limit]]


def _client(judge: str, options: ModelOptions, execution: ExecutionOptions) -> Client:
    if judge.startswith(keyless.PREFIX) and options.base_url is None:
        return keyless.KeylessJudge(judge)
    try:
        return client_at(execution.endpoints, judge, options, execution.transport)
    except UnknownName as error:
        known = (keyless.MODEL, *(f"{name}/..." for name in error.known if f"{name}/" != SIMULATED))
        raise UnknownName("judge", judge, known, advice="see docs/models.md") from error
    except BadInput as error:
        raise BadInput(str(error).replace("--model", "--judge", 1)) from error


def _prices(judging: Judging, execution: ExecutionOptions) -> dict[str, Price | None]:
    free, table = Price(0.0, 0.0), price_table()
    return {
        judge: free if judge.startswith(keyless.PREFIX) else execution.price or table.find(judge)
        for judge in judging.judges
    }


def _register(file: RunFile, judging: Judging) -> None:
    """Stores questions and judges; raises `BadInput` for a judge that was asked in another way."""
    given = msgspec.json.encode(_Rater(msgspec.to_builtins(judging.options), prompts().digest)).decode()
    for question in judging.questions:
        check_name(file, question)
    known = file.raters()
    for judge in judging.judges:
        if known.get(judge, given) != given:
            raise BadInput(
                f"--judge {judge}: was asked with other options or another version's prompts in {file.path}: "
                f"{known[judge]}; give the same options, or judge a copy of the run file"
            )
    file.annotate(
        questions={one.digest: one.body for one in judging.questions},
        raters=dict.fromkeys(judging.judges, given),
    )
