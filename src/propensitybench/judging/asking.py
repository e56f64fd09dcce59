"""Puts questions about a run's episodes to judges, and journals each reply in the run file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from propensitybench.chat import ConversationContext, Usage
from propensitybench.clients import Client
from propensitybench.clients.options import ModelOptions
from propensitybench.digests import digest, seed_from, shuffled
from propensitybench.engine import ExecutionOptions, StopSignal, client_at
from propensitybench.engine.asking import ask as send
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import until_stopped
from propensitybench.errors import BadInput
from propensitybench.judging.items import item_of
from propensitybench.judging.keyless import PREFIX, KeylessJudge
from propensitybench.judging.plan import AskingEstimate, Job, Judging, estimate, jobs_of, price_of
from propensitybench.judging.prompts import ask, prompts
from propensitybench.judging.questions import check_name
from propensitybench.judging.session import AskingResult, AskingSession, Listener
from propensitybench.runs import StoredRun
from propensitybench.runs.stored import transcript_in
from propensitybench.store import RunFile

Asked = set[tuple[int, str, str, str]]
"""What has a reply: number of the task, digest of the question, variant, rater."""


class _Rater(msgspec.Struct, frozen=True):
    """What of a judge's settings can change its answers."""

    options: dict[str, Any]
    prompts: str


def plan_judging(path: Path, judging: Judging, execution: ExecutionOptions) -> AskingEstimate:
    """What `judge_run` would still have to ask; sends nothing and writes nothing."""
    run = StoredRun(path)
    with RunFile.open(path) as file:
        left = _Left(run, file, judging)
        rest = [(job, judge) for judge in judging.judges for job in left.of(judge)]
    return estimate(run, judging, rest, execution.price)


async def judge_run(
    path: Path,
    judging: Judging,
    execution: ExecutionOptions,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
) -> AskingResult:
    """Asks the judges what they have not been asked; the same call resumes it.

    Each reply is committed to the run file when it arrives, whether it can be read or not, and is never
    asked for again. Cancelling stops it, as ``stop`` does.

    Args:
        path: the run file; its episodes, outcomes and scores stay as they are.
        judging: what is asked of whom.
        execution: concurrency for each judge, budget of all, price of every judge.
        on_progress: called after each reply.
        stop: stops it when requested, from any thread.

    Raises:
        BadInput: a judge cannot be used, was asked with other options or prompts before, or a budget in
            dollars has no price.
    """
    prices = {judge: price_of(judge, execution.price) for judge in judging.judges}
    if execution.budget.usd is not None and None in prices.values():
        unknown = next(judge for judge, price in prices.items() if price is None)
        raise BadInput(f"a budget in US dollars needs the price of {unknown}: give --price INPUT,OUTPUT")
    clients = [_client(judge, judging.options, execution) for judge in judging.judges]
    run = StoredRun(path)
    with RunFile.open(path, write=True) as file:
        _register(file, judging)
        left = _Left(run, file, judging)
        costs = Costs({judge: left.usage(judge) for judge in prices}, prices, execution.budget)
        session = AskingSession(file, (left.finished, left.total), costs, on_progress, stop)
        concurrency = within_open_files(execution.transport.concurrency)
        todo = [(client, left.of(client.model)) for client in clients]
        work = (_work(file, session, left, *each) for each in todo for _ in range(concurrency))
        await until_stopped(session.run_all(work), session.stop, clients)
        return session.ended()


class _Left:
    """What the judges have not been asked."""

    def __init__(self, run: StoredRun, file: RunFile, judging: Judging) -> None:
        self.tasks = {task.task.key: task for task in file.tasks()}
        self._jobs = jobs_of(run, judging)
        self._asked: Asked = set()
        self._usage: dict[str, Usage] = {}
        for question in judging.questions:
            for one in file.annotations(question.digest):
                self._asked.add(one[:4])
                self._usage[one.rater] = self.usage(one.rater) + one.reply.usage
        wanted = {(*key, judge) for key in map(self._key, self._jobs) for judge in judging.judges}
        self.finished, self.total = len(wanted & self._asked), len(wanted)

    def of(self, judge: str) -> Iterator[Job]:
        """What a judge has not been asked, in an order of its own."""
        for index in shuffled(range(len(self._jobs)), judge):
            if (*self._key(self._jobs[index]), judge) not in self._asked:
                yield self._jobs[index]

    def usage(self, judge: str) -> Usage:
        """Tokens of a judge's replies to these questions."""
        return self._usage.get(judge, Usage())

    def about(self, job: Job, judge: str) -> tuple[int, str, str, str]:
        """The annotation but for its reply."""
        return (*self._key(job), judge)

    def _key(self, job: Job) -> tuple[int, str, str]:
        return self.tasks[job.record.metadata.task].number, job.question.digest, job.variant


async def _work(
    file: RunFile, session: AskingSession, left: _Left, client: Client, todo: Iterator[Job]
) -> None:
    for job in todo:
        transcript = transcript_in(file, left.tasks[job.record.metadata.task])
        item = item_of(transcript, job.question, file.manifest.model)
        messages = ask(job.question, item, job.variant, client.model)
        key = digest(job.question.digest, item.task, job.variant, client.model)
        context = ConversationContext(key, seed_from(key))
        await session.ask(left.about(job, client.model), send(client, context, messages, session.stop))


def _client(judge: str, options: ModelOptions, execution: ExecutionOptions) -> Client:
    if judge.startswith(PREFIX) and options.base_url is None:
        return KeylessJudge(judge)
    return client_at(execution.endpoints, judge, options, execution.transport)


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
