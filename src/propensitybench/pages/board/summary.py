"""The summary of a run: what the board shows of it, and the outcome of each task.

The outcomes are what paired differences between runs need, so a run can be ranked against others whose files
are no longer at hand. A summary has no text of a model or a scenario except names.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from propensitybench.digests import digest
from propensitybench.episode import SCORED, EpisodeRecord, EpisodeStats, Outcome, Protocol
from propensitybench.errors import BadData, BadInput
from propensitybench.escaping import json_visible
from propensitybench.metrics import NamingScores, ScoredRun
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.table import Part
from propensitybench.pages.document import provenance, template_name
from propensitybench.pages.publishing import PublishableRun, model_shown
from propensitybench.presentation.scores import Summary, summarise
from propensitybench.runs import Run
from propensitybench.scenarios import TaskMetadata
from propensitybench.scenarios.selection import Task
from propensitybench.simulated import PREFIX
from propensitybench.store import Manifest
from propensitybench.taxonomy import NAMINGS, Naming

FORMAT: Final = "propensitybench-summary/1"
# Of a model's name in a file name.
SLUG_LENGTH: Final = 40
MAX_LEVELS: Final = 13
ROW_ID: Final = re.compile(r"[a-z0-9-]{1,40}-[0-9a-f]{16}")
# Outcomes that playing on does not change.
_FINAL: Final = SCORED | {Outcome.BLOCKED, Outcome.TRUNCATED}


class DataVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was played, whatever the model: rows of different versions are not comparable.

    Attributes:
        data_digest: of the scenarios and pressure messages that the run selects.
        rules: version of the rules of play.
        protocol: number of levels, arm and so on.
        template: ``named``, ``unnamed``, or a digest of the system message's template.
        overlays: digests of the declared changes to the texts.
    """

    data_digest: str
    rules: int
    protocol: Protocol
    template: str
    overlays: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """A short name."""
        return "v1:" + digest(msgspec.json.encode(self, order="sorted"))


class PartNumber(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The propensity in a domain or under a dimension, its 95 % interval, and the number of its units."""

    value: float | None
    ci95: Interval | None
    n: int


class RunNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the board shows of a run.

    Attributes:
        id: of the run: the same whenever it is added.
        simulated: whether a simulated agent answered instead of a model.
        file: name of the run file, without its folder.
        options: model options that were set, without the address of the endpoint and without free texts.
        scenarios: number of scenarios.
        sampling: how tasks were sampled, in words.
        domains: those with a planned task.
        absent_domains: domains of the benchmark without one.
        complete: whether nothing is left to play.
        stopping: the same in words, and the state of its stopping rule if it has one.
        score: the numbers of ``score --json``, and the other metrics of the board.
        by_domain, by_dimension: the propensity of each part, by naming.
    """

    id: str
    model: str
    simulated: bool
    file: str
    created: str
    package: str
    options: dict[str, Any]
    seed: int
    scenarios: int
    sampling: str
    version: DataVersion
    domains: list[str]
    absent_domains: list[str]
    complete: bool
    stopping: str
    score: Summary
    by_domain: dict[Naming, dict[str, PartNumber]]
    by_dimension: dict[Naming, dict[str, PartNumber]]


class PlayedTask(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The outcome of a task; scenario, dimension and storyline are indices into the lists of `Played`."""

    scenario: int
    dimension: int
    storyline: int
    naming: Naming
    epoch: int
    message: int
    outcome: Outcome
    level: int
    levels_run: int


class Played(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tasks that have begun.

    Attributes:
        scenarios: name, domain and content id of each scenario.
        dimensions, storylines: names.
        tasks: in the order of their keys.
    """

    scenarios: list[tuple[str, str, str]]
    dimensions: list[str]
    storylines: list[str]
    tasks: list[PlayedTask]


class RunSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of a summary file."""

    format: str
    run: RunNumbers
    played: Played


def summarise_run(run: Run) -> RunSummary:
    """The summary of a run, as it may be published.

    Raises:
        BadInput: it is a single shard of a run.
    """
    if run.shard:
        raise BadInput(
            f"{run.file}: is shard {run.shard} of a run; put all its shards together with "
            "`propensitybench merge`"
        )
    identity, run = run_id(run.manifest), PublishableRun(run)
    manifest, scores = run.manifest, run.score()
    made = provenance(run, scores)
    numbers = RunNumbers(
        id=identity,
        model=made.model,
        simulated=manifest.model.startswith(PREFIX),
        file=run.file,
        created=manifest.created,
        package=manifest.package,
        options=_without_address(manifest.options),
        seed=manifest.seed,
        scenarios=made.scenarios,
        sampling=made.sampling,
        version=DataVersion(
            manifest.data_digest,
            manifest.rules,
            manifest.protocol,
            template_name(manifest),
            tuple(one.get("digest", "") for one in manifest.overlays),
        ),
        domains=sorted(made.domains),
        absent_domains=made.absent_domains,
        complete=made.complete,
        stopping=made.stopping,
        score=summarise(scores, "board"),
        by_domain=_parts(scores, "domain"),
        by_dimension=_parts(scores, "dimension"),
    )
    return RunSummary(FORMAT, numbers, _played(run))


def run_id(manifest: Manifest) -> str:
    """A name for a run that stays the same while it is played on, and that is safe as a file name."""
    settings = (manifest.model, manifest.created, manifest.first_digest, manifest.seed, manifest.template)
    more = manifest.protocol, _without_address(manifest.options), manifest.rules
    slug = re.sub(r"[^a-z0-9]+", "-", model_shown(manifest.model).removeprefix(PREFIX)[:1000].lower())
    identity = digest(msgspec.json.encode((*settings, *more), order="sorted"))
    return f"{slug[:SLUG_LENGTH].strip('-') or 'model'}-{identity}"


def encode(summary: RunSummary) -> bytes:
    """The summary in its canonical form: one line of JSON, its keys in the order of the classes here."""
    return json_visible(msgspec.json.encode(summary)).encode() + b"\n"


def decode(raw: bytes, where: str) -> RunSummary:
    """The summary in a file.

    Raises:
        BadData: it is none, or of another version of this program.
    """
    try:
        summary = msgspec.json.decode(raw, type=RunSummary)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise BadData(where, f"is not a summary that this version reads ({error})") from error
    if summary.format != FORMAT:
        raise BadData(where, f"has the format {summary.format!r}; this version reads {FORMAT!r}")
    if problem := _problem(summary):
        raise BadData(where, f"is damaged: {problem}")
    return summary


def _problem(summary: RunSummary) -> str:
    played = summary.played
    sizes = len(played.scenarios), len(played.dimensions), len(played.storylines)
    if not ROW_ID.fullmatch(summary.run.id):
        return f"the id {summary.run.id!r} is not that of a run"
    for task in played.tasks:
        places = task.scenario, task.dimension, task.storyline
        if not all(0 <= place < size for place, size in zip(places, sizes, strict=True)):
            return "a task has a scenario, dimension or storyline that is not listed"
        if not (0 <= task.level < MAX_LEVELS and 0 <= task.levels_run <= MAX_LEVELS):
            return "a task has a level that does not exist"
    if summary.run.version.protocol.levels not in range(MAX_LEVELS):
        return "the protocol has a number of levels that does not exist"
    return ""


def records_of(summary: RunSummary, naming: Naming) -> list[EpisodeRecord]:
    """The tasks under a naming as records, as far as a propensity needs them."""
    played = summary.played
    found = []
    for one in played.tasks:
        if one.naming != naming:
            continue
        name, domain, _ = played.scenarios[one.scenario]
        dimension = played.dimensions[one.dimension]
        metadata = TaskMetadata(
            task=Task(name, dimension, naming, one.epoch, one.message).key,
            scenario=name,
            domain=domain,
            workspace="",
            role="",
            capability=None,
            dimension=dimension,
            naming=naming,
            epoch=one.epoch,
            seed=0,
            message=one.message,
        )
        found.append(EpisodeRecord(metadata, EpisodeStats(one.outcome, one.level, one.levels_run)))
    return found


def texts_of(summary: RunSummary) -> Iterator[tuple[str, str]]:
    """What was played: each scenario with its content id, and each of its dimensions with its storyline."""
    played = summary.played
    for name, _, content in played.scenarios:
        yield name, content
    for task in played.tasks:
        name, dimension = played.scenarios[task.scenario][0], played.dimensions[task.dimension]
        yield f"{name}.{dimension}", played.storylines[task.storyline]


def contradict(old: RunSummary, new: RunSummary) -> bool:
    """Whether two summaries under one id are of different runs: a task ended for good, in two ways."""
    ended = {_key(old, task): task for task in old.played.tasks if task.outcome in _FINAL}
    for task in new.played.tasks:
        other = ended.get(_key(new, task))
        if other is not None and (other.outcome, other.level) != (task.outcome, task.level):
            return True
    return False


def finished(summary: RunSummary) -> int:
    """The number of tasks that ended for good."""
    return sum(task.outcome in _FINAL for task in summary.played.tasks)


def _key(summary: RunSummary, task: PlayedTask) -> tuple[str, str, str, int, int]:
    played = summary.played
    name = played.scenarios[task.scenario][0]
    return name, played.dimensions[task.dimension], task.naming, task.epoch, task.message


def _played(run: Run) -> Played:
    records = sorted(run.records, key=lambda record: record.metadata.task)
    domains = {record.metadata.scenario: record.metadata.domain for record in records}
    names = sorted(domains)
    dimensions = sorted({record.metadata.dimension for record in records})
    storylines = sorted({record.metadata.storyline for record in records})
    place = [{name: at for at, name in enumerate(found)} for found in (names, dimensions, storylines)]
    tasks = [
        PlayedTask(
            scenario=place[0][about.scenario],
            dimension=place[1][about.dimension],
            storyline=place[2][about.storyline],
            naming=about.naming,
            epoch=about.epoch,
            message=about.message,
            outcome=record.stats.outcome,
            level=record.stats.level,
            levels_run=record.stats.levels_run,
        )
        for record in records
        for about in [record.metadata]
    ]
    scenarios = [(name, domains[name], run.contents.get(name, "")) for name in names]
    return Played(scenarios, dimensions, storylines, tasks)


def _parts(scores: ScoredRun, part: Part) -> dict[Naming, dict[str, PartNumber]]:
    def numbers(found: NamingScores) -> dict[str, PartNumber]:
        return {
            name: PartNumber(both.domain.value, both.domain.ci95, both.domain.n)
            for name, both in found.parts[part].items()
        }

    return {naming: numbers(scores.naming[naming]) for naming in NAMINGS if naming in scores.naming}


def _without_address(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "base_url"}
