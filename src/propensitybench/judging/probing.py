"""Puts probes to the agent of a run, on side branches of its episodes, and journals each reply."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import CHARACTERS_PER_TOKEN, ConversationContext, Request, Usage
from propensitybench.clients import Client, Conversation
from propensitybench.digests import seed_from
from propensitybench.engine import (
    ExecutionOptions,
    Price,
    StopSignal,
    price_table,
    use_recorded_dialect,
)
from propensitybench.engine.asking import send
from propensitybench.engine.open_files import within_open_files
from propensitybench.engine.prices import Costs
from propensitybench.engine.stop import until_stopped
from propensitybench.episode import (
    Episode,
    EpisodeJob,
    EpisodeRecord,
    Outcome,
    replay,
    replay_to_level,
)
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.files import file_name
from propensitybench.judging.plan import AskingEstimate
from propensitybench.judging.probes import END, Level, Probe, Variant, stored_probes
from propensitybench.judging.session import AskingResult, AskingSession, Listener
from propensitybench.runs.resolve import read_model_options
from propensitybench.runs.trust import client_of_run
from propensitybench.store import NumberedTask, RunFile

AGENT: Final = "agent"
"""The rater of every answer to a probe."""
_TOKENS_ANSWERED: Final = 5


class Probing(msgspec.Struct, frozen=True):
    """What is asked; raises `BadInput` for a probe or a level that is given twice.

    Attributes:
        probes: the probes.
        levels: when; if empty, each probe at its own levels.
        limit: number of episodes, in the order of the run, which is balanced; None is all.
    """

    probes: tuple[Probe, ...]
    levels: tuple[Level, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        """Checks what is given."""
        for option, given in (
            ("--probe", [probe.name for probe in self.probes]),
            ("--level", list(map(str, self.levels))),
        ):
            if twice := [one for one in given if given.count(one) > 1]:
                raise BadInput(f"{option} {twice[0]}: is given twice")

    def variants(self, probe: Probe) -> list[Variant]:
        """How a probe is asked in an episode that reaches all levels."""
        levels = self.levels or probe.levels
        return [Variant(level, number + 1) for level in levels for number in range(len(probe.wordings))]


class ProbeMoment(NamedTuple):
    """What is still to be asked at one moment of an episode."""

    task: NumberedTask
    level: Level
    asked: tuple[tuple[Probe, Variant], ...]


def is_reached(record: EpisodeRecord, level: Level) -> bool:
    """Whether an episode has a moment for a probe at a level."""
    if record.stats.outcome is Outcome.UNFINISHED:
        return False
    return record.stats.outcome is not Outcome.ERRORED if level == END else record.stats.level >= level


def left_to_ask(path: Path, probing: Probing) -> int:
    """The number of questions without a reply."""
    with RunFile.open(path) as file:
        left = _LeftToProbe(file, probing)
        return left.total - left.finished


def plan_probing(path: Path, probing: Probing, price: Price | None = None) -> AskingEstimate:
    """What `probe_run` would still have to ask; sends nothing and writes nothing.

    Args:
        path: the run file.
        probing: what is asked.
        price: of the model; None looks it up.
    """
    with RunFile.open(path) as file:
        left = _LeftToProbe(file, probing)
        rate = price or price_table().find(file.manifest.model)
        # A reasoning model is taken to reason as long as in a turn of the run.
        reasoning = file.usage().reasoning / max(1, file.count("reply"))
        calls = tokens = 0
        for moment in left.moments():
            job = file.job(moment.task)
            episode = _at(job, moment.level)
            known = _tokens_before(job, episode)
            for probe, variant in moment.asked:
                request = _request(episode, probe, variant)
                calls += 1
                tokens += known or _characters(request) // CHARACTERS_PER_TOKEN
        answered = round(calls * (_TOKENS_ANSWERED + reasoning))
        usd = None if rate is None else rate.of(Usage(tokens, answered))
        return AskingEstimate(left.episodes, calls, tokens, answered, usd)


async def probe_run(
    path: Path,
    probing: Probing,
    execution: ExecutionOptions,
    client: Client | None = None,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
) -> AskingResult:
    """Asks the agent what it has not been asked; the same call resumes it.

    Each reply is committed to the run file when it arrives, whether it can be read or not, and is never
    asked for again. Cancelling stops it, as ``stop`` does.

    Args:
        path: the run file; its episodes, outcomes and scores stay as they are.
        probing: what is asked.
        execution: concurrency, price, endpoints or trust in the file's, and the budget of all its probes.
        client: answers in the model's place; ``client.model`` must be the run's.
        on_progress: called after each reply.
        stop: stops it when requested, from any thread.

    Raises:
        BadInput: the run's model cannot be used, its endpoint is not trusted, or a budget in dollars has no
            price.
        RunMismatch: the client's model is not the run's, or the rules have changed.
    """
    with RunFile.open(path) as file:
        left = _LeftToProbe(file, probing)
        if left.finished == left.total:
            return _session(file, left, execution).ended()
        manifest = file.manifest
        client = client or _client(file, execution)
        _check(file, client, execution)
    use_recorded_dialect(client, manifest.dialect)
    with RunFile.open(path, write=True) as file:
        options = msgspec.json.encode(manifest.options).decode()
        file.annotate(questions={one.digest: one.body for one in probing.probes}, raters={AGENT: options})
        left = _LeftToProbe(file, probing)
        session = _session(file, left, execution, on_progress, stop)
        concurrency = execution.transport.concurrency
        if client.has_endpoint:
            concurrency = within_open_files(concurrency)
        moments = left.moments()
        work = (_work(file, session, client, moments) for _ in range(concurrency))
        await until_stopped(session.run_all(work), session.stop, [client])
        return session.ended()


def _client(file: RunFile, execution: ExecutionOptions) -> Client:
    manifest, name = file.manifest, file_name(file.path)
    options = read_model_options(manifest.options, name, manifest.package)
    return client_of_run(name, manifest.model, options, execution)


def _check(file: RunFile, client: Client, execution: ExecutionOptions) -> None:
    """Checks that the run's probes can be put to a client."""
    manifest = file.manifest
    if execution.budget.usd is not None and _price(file, execution) is None:
        raise BadInput(f"a budget in US dollars needs the price of {client.model}: give --price INPUT,OUTPUT")
    if client.model != manifest.model:
        raise RunMismatch(f"{file.path}: is a run of {manifest.model}, not of {client.model}")
    file.check_rules()


def _price(file: RunFile, execution: ExecutionOptions) -> Price | None:
    return execution.price or price_table().find(file.manifest.model)


class _LeftToProbe:
    """What the agent has not been asked."""

    def __init__(self, file: RunFile, probing: Probing) -> None:
        last = file.manifest.protocol.last_level
        if beyond := [level for level in probing.levels if level != END and level > last]:
            raise BadInput(f"--level {beyond[0]}: the run has levels 0 to {last}")
        records = {record.metadata.task: record for record in file.records()}
        ended = [task for task in file.tasks() if task.task.key in records][: probing.limit]
        self._records = records
        self._probing = probing
        self._tasks = ended
        self._asked = {
            (one.task, one.question, one.variant)
            for probe in probing.probes
            for one in file.annotations(probe.digest)
        }
        every = [self._of(task, probe, variant) for task, probe, variant in self._every()]
        self.total, self.finished = len(every), sum(key in self._asked for key in every)
        self.episodes = {
            probe.name: len({number for number, digest, _ in every if digest == probe.digest})
            for probe in probing.probes
        }

    def moments(self) -> Iterator[ProbeMoment]:
        """What is left, in the order of the run; the questions of a moment come together."""
        by_moment: dict[tuple[NumberedTask, Level], list[tuple[Probe, Variant]]] = {}
        for task, probe, variant in self._every():
            if self._of(task, probe, variant) not in self._asked:
                by_moment.setdefault((task, variant.level), []).append((probe, variant))
        for (task, level), asked in by_moment.items():
            yield ProbeMoment(task, level, tuple(asked))

    def _every(self) -> Iterator[tuple[NumberedTask, Probe, Variant]]:
        for task in self._tasks:
            for probe in self._probing.probes:
                for variant in self._probing.variants(probe):
                    if is_reached(self._records[task.task.key], variant.level):
                        yield task, probe, variant

    @staticmethod
    def _of(task: NumberedTask, probe: Probe, variant: Variant) -> tuple[int, str, str]:
        return task.number, probe.digest, str(variant)


async def _work(
    file: RunFile, session: AskingSession, client: Client, moments: Iterator[ProbeMoment]
) -> None:
    for moment in moments:
        if session.stop.stop_requested:
            return
        episode = _at(file.job(moment.task), moment.level)
        for probe, variant in moment.asked:
            conversation = _open(client, episode, probe, variant)
            request = _request(episode, probe, variant)
            about = moment.task.number, probe.digest, str(variant), AGENT
            await session.ask(about, send(conversation, request, session.stop))


def _session(
    file: RunFile,
    left: _LeftToProbe,
    execution: ExecutionOptions,
    on_progress: Listener | None = None,
    stop: StopSignal | None = None,
) -> AskingSession:
    costs = Costs({AGENT: _spent(file)}, {AGENT: _price(file, execution)}, execution.budget)
    return AskingSession(file, (left.finished, left.total), costs, on_progress, stop)


def _at(job: EpisodeJob, level: Level) -> Episode:
    """The episode at a moment that it reached, by the outcome in the run file."""
    episode = replay(job).episode if level == END else replay_to_level(job, level)
    if episode is None or (level == END and not episode.decided):
        raise BadInput(f"{job.source}: the journal of {job.task.key} does not reach its outcome; verify it")
    return episode


def _request(episode: Episode, probe: Probe, variant: Variant) -> Request:
    # With the tools, as in the episode: some endpoints refuse tool messages without them.
    return episode.side_question(probe.message(variant.wording, episode.metadata.misaligned_tool))


def _open(client: Client, episode: Episode, probe: Probe, variant: Variant) -> Conversation:
    task, turns = episode.metadata, len(episode.turns)
    seed = seed_from(task.seed, probe.digest, str(variant))
    known = task if client.knows_task else None
    return client.open(ConversationContext(f"{task.task} {probe.name} {variant}", seed, turns, known))


def _spent(file: RunFile) -> Usage:
    """The tokens of all replies to probes."""
    used = (one.reply.usage for probe in stored_probes(file) for one in file.annotations(probe.digest))
    return sum(used, Usage())


def _tokens_before(job: EpisodeJob, episode: Episode) -> int:
    """The tokens of a conversation as the provider counted them; 0 if it did not."""
    turns = len(episode.turns)
    if episode.decided:
        last = job.replies[turns - 1].usage
        return last.input + last.output if last.input else 0
    return job.replies[turns].usage.input if turns < len(job.replies) else 0


def _characters(request: Request) -> int:
    calls = (call for message in request.messages for call in message.tool_calls)
    return (
        sum(len(message.content) for message in request.messages)
        + sum(len(call.name) + len(call.arguments) for call in calls)
        + len(msgspec.json.encode(request.tools))
    )
