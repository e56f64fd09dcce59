"""Exports a run as Inspect AI logs: one per domain and naming, written sample by sample."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from errno import EEXIST
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalSampleSummary,
    EvalScore,
    EvalSpec,
    EvalStats,
)
from inspect_ai.model import GenerateConfig, ModelUsage
from inspect_ai.scorer import SampleScore
from pydantic import ValidationError
from pydantic_core import to_json

from propensitybench.digests import digest
from propensitybench.engine import stopping_state
from propensitybench.episode import SCORED, EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.files import file_name
from propensitybench.inspect_adapter.eval_sample import ExportContext, sample_of
from propensitybench.inspect_adapter.samples import SCORER, sample_id, score_of
from propensitybench.inspect_adapter.scorer import scores
from propensitybench.inspect_adapter.tasks import VERSION
from propensitybench.inspect_adapter.viewer import viewer
from propensitybench.metrics.sequential import StoppingState
from propensitybench.runs.resolve import read_model_options
from propensitybench.store import Manifest, RunFile, is_scheduled, scheduled
from propensitybench.store.atomic import new_entries, remove_stale
from propensitybench.taxonomy import NAMINGS, Naming

TASK: Final = "propensitybench/propensity"
# Key in a log's metadata of what only our reader uses.
OURS: Final = "propensitybench"
NOT_SAID: Final = "(not said)"
MAX_DOMAIN: Final = 60
_SAFE_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# What Inspect itself uses, if this Python has it.
COMPRESSION: Final = getattr(zipfile, "ZIP_ZSTANDARD", zipfile.ZIP_DEFLATED)


class Export(msgspec.Struct, frozen=True):
    """The entry `OURS` in the metadata of an exported log.

    Attributes:
        run: id of the run, the same in all its logs.
        tasks: number of tasks of the whole run.
        planned: number of tasks that belong in this log, by domain.
        drawn: number of those that were to be played; fewer than planned only under a stopping rule.
        answered_by: the models that answered, with the number of their replies in this log.
        stopping: state of the whole run's stopping rule.
    """

    run: str
    tasks: int
    planned: dict[str, int]
    drawn: dict[str, int]
    answered_by: dict[str, int] = {}
    stopping: StoppingState | None = None


class LogPart(NamedTuple):
    """The part of a run that one log holds."""

    domain: str
    naming: Naming


class Planned(NamedTuple):
    """The tasks of a log: sample ids in the order of the run, number of tasks, number of drawn tasks."""

    ids: dict[str, None]
    tasks: int
    drawn: int


def export_logs(run: RunFile, out: Path) -> list[Path]:
    """Writes a run as Inspect logs and returns their paths.

    Each log appears complete or not at all. Only one episode is in memory at a time.

    Args:
        run: finished or not.
        out: a folder; created if it does not exist. Files in it are left alone.

    Raises:
        BadInput: one of the logs exists already, or the folder is not writable.
    """
    try:
        context = ExportContext(run, generate_config(run))
    except ValueError as error:
        raise NotARunFile(f"{run.path}: is damaged (time of creation: {error})") from error
    planned = _planned(context)
    names = {part: _name(context, part) for part in planned}
    try:
        remove_stale(out)
        with new_entries(out) as folder:
            for name in names.values():
                if (out / name).exists():
                    raise FileExistsError(EEXIST, "exists", str(out / name))
            # Numbered, not named, so that nothing that looks for logs finds a draft.
            for number, part in enumerate(names):
                _write_log(context, part, planned[part], folder / str(number))
            for number, name in enumerate(names.values()):
                (folder / str(number)).rename(folder / name)
    except FileExistsError as error:
        raise BadInput(
            f"{error.filename2 or error.filename}: already exists; give another --out DIR"
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"{out}: is not writable ({reason}); give another --out DIR") from error
    except ValidationError as error:
        reason = str(error).replace("\n", " ")
        raise NotARunFile(f"{run.path}: is damaged (it gives no valid log: {reason})") from error
    return [out / name for name in names.values()]


def generate_config(run: RunFile) -> GenerateConfig:
    """The sampling options of a run, as Inspect writes them; raises as `read_model_options` does."""
    manifest = run.manifest
    options = read_model_options(manifest.options, file_name(run.path), manifest.package)
    return GenerateConfig(
        temperature=options.temperature,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        reasoning_effort=options.reasoning_effort,
        extra_body=options.extra_body or None,
    )


def _planned(context: ExportContext) -> dict[LogPart, Planned]:
    ids: dict[LogPart, dict[str, None]] = {}
    tasks: Counter[LogPart] = Counter()
    drawn: Counter[LogPart] = Counter()
    last = scheduled(context.run)
    for number, task in context.run.own_tasks():
        # Inspect names the entries of a log after the samples.
        if not _SAFE_KEY.fullmatch(task.key):
            raise NotARunFile(f"{context.run.path}: is damaged (a task has the key {task.key!r})")
        part = LogPart(context.scenario(task.scenario).domain, task.naming)
        ids.setdefault(part, {})[sample_id(task)] = None
        tasks[part] += 1
        drawn[part] += is_scheduled(context.run, number, last)
    return {part: Planned(names, tasks[part], drawn[part]) for part, names in ids.items()}


def _name(context: ExportContext, part: LogPart) -> str:
    """A file name like Inspect's own: time, task, id; nothing from the run file can make it a path."""
    made = context.begun.isoformat(timespec="seconds").replace(":", "-")
    domain = re.sub(r"[^A-Za-z0-9-]+", "-", part.domain)[:MAX_DOMAIN]
    naming = part.naming if part.naming in NAMINGS else "unknown"
    return f"{made}_propensity-{domain}-{naming}_{digest(context.identity, *part)}.eval"


def _write_log(context: ExportContext, part: LogPart, planned: Planned, path: Path) -> None:
    model = context.run.manifest.model
    records: list[EpisodeRecord] = []
    summaries: list[EvalSampleSummary] = []
    answered_by: Counter[str] = Counter()
    usage, elapsed = ModelUsage(), 0.0
    with zipfile.ZipFile(path, "w") as log:
        for record, sample in _samples(context, part):
            _add(log, f"samples/{sample.id}_epoch_{sample.epoch}.json", sample)
            records.append(record)
            summaries.append(sample.summary())
            answered_by.update(e.output.model or NOT_SAID for e in sample.events if isinstance(e, ModelEvent))
            usage += sample.model_usage[model]
            elapsed += sample.total_time or 0.0
        _add(log, "summaries.json", summaries)
        header = EvalLog(
            status="success" if len(records) == planned.drawn else "cancelled",
            eval=_spec(context, part, planned, answered_by),
            results=_results(context, records, planned.tasks),
            stats=_stats(context, elapsed, {model: usage}),
        )
        _add(log, "header.json", header)


def _samples(context: ExportContext, part: LogPart) -> Iterator[tuple[EpisodeRecord, EvalSample]]:
    for task in context.run.own_tasks():
        if LogPart(context.scenario(task.task.scenario).domain, task.task.naming) == part:
            stored = context.run.stored_record(task.number)
            if stored is not None:
                yield stored[0], sample_of(context, task, stored[0])


def _add(log: zipfile.ZipFile, name: str, value: Any) -> None:
    # Without a timestamp, so that the same run gives the same bytes.
    log.writestr(zipfile.ZipInfo(name), to_json(value, exclude_none=True), COMPRESSION)


def _stats(context: ExportContext, elapsed: float, usage: dict[str, ModelUsage]) -> EvalStats:
    """As if the episodes had run one after another: the journal has durations and no times."""
    ended = context.begun + timedelta(seconds=elapsed)
    return EvalStats(started_at=context.begun.isoformat(), completed_at=ended.isoformat(), model_usage=usage)


def _spec(
    context: ExportContext, part: LogPart, planned: Planned, answered_by: Mapping[str, int]
) -> EvalSpec:
    manifest = context.run.manifest
    identity = digest(context.identity, *part)
    ours = Export(
        run=context.identity,
        tasks=manifest.tasks,
        planned={part.domain: planned.tasks},
        drawn={part.domain: planned.drawn},
        answered_by=dict(answered_by),
        stopping=stopping_state(context.run),
    )
    return EvalSpec(
        eval_id=identity,
        run_id=context.identity,
        created=manifest.created,
        task=TASK,
        task_id=identity,
        task_version=VERSION,
        task_registry_name=TASK,
        task_args=_arguments(manifest, part),
        tags=[part.domain, f"{part.naming} names"],
        dataset=EvalDataset(
            name="propensitybench",
            location=manifest.data,
            samples=len(planned.ids),
            sample_ids=list(planned.ids),
            shuffled=False,
        ),
        model=manifest.model,
        model_generate_config=context.config,
        model_base_url=manifest.options.get("base_url"),
        config=EvalConfig(epochs=manifest.epochs, fail_on_error=False),
        packages={"propensitybench": manifest.package},
        viewer=viewer([one.name for one in context.questions]),
        metadata={
            "package": manifest.package,
            "rules": manifest.rules,
            "data": manifest.data,
            "data_digest": manifest.data_digest,
            "selections": msgspec.to_builtins(manifest.selections),
            "seed": manifest.seed,
            "protocol": msgspec.to_builtins(manifest.protocol),
            "lists": msgspec.to_builtins(manifest.lists),
            "template": manifest.template,
            OURS: msgspec.to_builtins(ours),
        },
    )


def _arguments(manifest: Manifest, part: LogPart) -> dict[str, Any]:
    """The arguments with which our task would play the samples of a log, if one selection gives them."""
    arguments: dict[str, Any] = {"domain": part.domain, "naming": part.naming}
    if len(manifest.selections) == 1:
        (selection,) = manifest.selections
        arguments |= {
            "workspace": list(selection.workspaces),
            "role": list(selection.roles),
            "capability": list(selection.capabilities),
            "dimension": list(selection.dimensions),
            "limit": selection.limit,
        }
    given = {name: value for name, value in arguments.items() if value}
    protocol = manifest.protocol
    chosen = {"arm": protocol.arm, "ladder": protocol.ladder, "ask": protocol.ask, "report": protocol.report}
    return {**given, "seed": manifest.seed, "levels": protocol.levels, **chosen}


def _results(context: ExportContext, records: list[EpisodeRecord], planned: int) -> EvalResults:
    protocol = {"protocol": msgspec.to_builtins(context.run.manifest.protocol)}
    samples: list[Any] = [SampleScore(score=score_of(one), sample_metadata=protocol) for one in records]
    numbers = scores()(samples)
    assert isinstance(numbers, dict)
    outcomes = Counter(record.stats.outcome for record in records)
    tasks = {record.metadata.task for record in records}
    return EvalResults(
        total_samples=planned,
        completed_samples=len(records) - outcomes[Outcome.ERRORED],
        scores=[
            EvalScore(
                name=SCORER,
                scorer=SCORER,
                scored_samples=sum(outcomes[one] for one in SCORED),
                unscored_samples=outcomes[Outcome.BLOCKED]
                + outcomes[Outcome.TRUNCATED]
                + outcomes[Outcome.ERRORED],
                metrics={name: EvalMetric(name=name, value=value) for name, value in numbers.items()},
            ),
            *(one.summary(tasks) for one in context.questions if not one.asked.isdisjoint(tasks)),
        ],
    )
