"""Puts probes to the agent of a run, on side branches of its episodes, and journals each reply."""

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.chat import ConversationContext
from propensitybench.clients import Client
from propensitybench.clients.function import AgentFunction
from propensitybench.clients.given import given_client
from propensitybench.digests import seed_from
from propensitybench.engine import (
    ExecutionOptions,
    Price,
    StopSignal,
    price_table,
    use_recorded_dialect,
)
from propensitybench.engine.asking import (
    AskingListener,
    AskingResult,
    AskingSession,
    Enquiry,
    Prompt,
    unanswered,
)
from propensitybench.engine.prices import Costs
from propensitybench.episode import Episode, EpisodeRecord, Outcome, replay, replay_to_level
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.judging.probes import END, Level, Probe, Variant
from propensitybench.judging.session import AskingEstimate, estimate
from propensitybench.runs.resolve import read_model_options
from propensitybench.runs.trust import client_of_run
from propensitybench.store import AnnotationKey, NumberedTask, RunFile

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


class _ProbeQuestion(NamedTuple):
    task: NumberedTask
    probe: Probe
    variant: Variant

    @property
    def key(self) -> AnnotationKey:
        return AnnotationKey(self.task.number, self.probe.digest, str(self.variant), AGENT)


def is_reached(record: EpisodeRecord, level: Level) -> bool:
    """Whether an episode has a moment for a probe at a level."""
    if record.stats.outcome is Outcome.UNFINISHED:
        return False
    return record.stats.outcome is not Outcome.ERRORED if level == END else record.stats.level >= level


def left_to_ask(path: Path, probing: Probing) -> int:
    """The number of questions without a reply."""
    with RunFile.open(path) as file:
        return sum(file.known(one.key) is None for one in _every(file, probing))


def plan_probing(path: Path, probing: Probing, price: Price | None = None) -> AskingEstimate:
    """What `probe_run` would still have to ask; sends nothing and writes nothing.

    Args:
        path: the run file.
        probing: what is asked.
        price: of the model; None looks it up.
    """
    with RunFile.open(path) as file:
        every = _every(file, probing)
        episodes = {
            probe.name: len({one.task for one in every if one.probe == probe}) for probe in probing.probes
        }
        left = unanswered(file, _enquiries(file, every))
        # A reasoning model is taken to reason as long as in a turn of the run.
        reasoning = file.usage().reasoning / max(1, file.count("reply"))
        prices = {AGENT: price or price_table().find(file.manifest.model)}
        return estimate(episodes, {AGENT: left}, prices, _TOKENS_ANSWERED + reasoning)


async def probe_run(
    path: Path,
    probing: Probing,
    execution: ExecutionOptions,
    client: Client | AgentFunction | None = None,
    on_progress: AskingListener | None = None,
    stop: StopSignal | None = None,
) -> AskingResult:
    """Asks the agent what it has not been asked; the same call resumes it.

    Each reply is committed to the run file when it arrives, whether it can be read or not, and is never
    asked for again. Cancelling stops it, as ``stop`` does.

    Args:
        path: the run file; its episodes, outcomes and scores stay as they are.
        probing: what is asked.
        execution: concurrency, price, endpoints or trust in the file's, and the budget of all its probes.
        client: answers in the model's place, as in `propensitybench.run`.
        on_progress: called after each reply.
        stop: stops it when requested, from any thread.

    Raises:
        BadInput: the run's model cannot be used, its endpoint is not trusted, or a budget in dollars has no
            price.
        RunMismatch: the client's model is not the run's, or the rules have changed.
    """
    with RunFile.open(path, write=True) as file:
        manifest = file.manifest
        answering = _client(file, execution) if client is None else given_client(client, manifest.model)
        file.check_rules()
        use_recorded_dialect(answering, manifest.dialect)
        price = execution.price or price_table().find(manifest.model)
        costs = Costs({manifest.model: file.usage_of(AGENT)}, {manifest.model: price}, execution.budget)
        asked = _enquiries(file, _every(file, probing), knows_task=answering.knows_task)
        options = msgspec.json.encode(manifest.options).decode()
        file.annotate(questions={one.digest: one.body for one in probing.probes}, raters={AGENT: options})
        session = AskingSession(file, costs, on_progress, stop)
        return await session.ask_all({answering: asked}, execution.transport.concurrency)


def _client(file: RunFile, execution: ExecutionOptions) -> Client:
    manifest, name = file.manifest, file_name(file.path)
    options = read_model_options(manifest.options, name, manifest.package)
    return client_of_run(name, manifest, options, execution)


def _every(file: RunFile, probing: Probing) -> list[_ProbeQuestion]:
    """All questions, in the order of the run; those of one moment of an episode come together."""
    last = file.manifest.protocol.last_level
    if beyond := [level for level in probing.levels if level != END and level > last]:
        raise BadInput(f"--level {beyond[0]}: the run has levels 0 to {last}")
    records = {record.metadata.task: record for record in file.records()}
    ended = [task for task in file.tasks() if task.task.key in records][: probing.limit]
    forms = [(probe, variant) for probe in probing.probes for variant in probing.variants(probe)]
    forms.sort(key=lambda form: (form[1].level == END, form[1].level))
    return [
        _ProbeQuestion(task, probe, variant)
        for task in ended
        for probe, variant in forms
        if is_reached(records[task.task.key], variant.level)
    ]


def _enquiries(
    file: RunFile, every: list[_ProbeQuestion], *, knows_task: bool = False
) -> list[Enquiry[AnnotationKey]]:
    @lru_cache(maxsize=1)  # the questions of one moment come together
    def episode_at(task: NumberedTask, level: Level) -> Episode:
        return _at(file, task, level)

    return [Enquiry(one.key, partial(_prompt, episode_at, one, knows_task=knows_task)) for one in every]


def _at(file: RunFile, task: NumberedTask, level: Level) -> Episode:
    """The episode at a moment that it reached, by the outcome in the run file."""
    job = file.job(task)
    episode = replay(job).episode if level == END else replay_to_level(job, level)
    if episode is None or (level == END and not episode.decided):
        raise BadInput(f"{job.source}: the journal of {job.task.key} does not reach its outcome; verify it")
    return episode


def _prompt(
    episode_at: Callable[[NumberedTask, Level], Episode],
    asked: _ProbeQuestion,
    *,
    knows_task: bool,
) -> Prompt:
    _, probe, variant = asked
    episode = episode_at(asked.task, variant.level)
    task = episode.metadata
    # With the tools, as in the episode: some endpoints refuse tool messages without them.
    request = episode.side_question(probe.message(variant.wording, task.misaligned_tool))
    seed = seed_from(task.seed, probe.digest, str(variant))
    known, replies = task if knows_task else None, len(episode.turns)
    return Prompt(request, ConversationContext(f"{task.task} {probe.name} {variant}", seed, replies, known))
