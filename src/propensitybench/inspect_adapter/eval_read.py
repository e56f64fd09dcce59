"""Reads runs from Inspect AI logs of our task, whether we exported them or Inspect wrote them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

# inspect-evals-lint: ignore[private_api_imports] -- how Inspect itself recognises a cancelled sample
from inspect_ai._util.error import is_cancellation_message
from inspect_ai.log import (
    EvalSample,
    EvalSampleSummary,
    EvalSpec,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)
from pydantic_core import from_json

from propensitybench.chat import Usage
from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.inspect_adapter.eval_export import NOT_SAID, OURS, TASK, Export
from propensitybench.inspect_adapter.eval_limits import CheckedLog
from propensitybench.inspect_adapter.samples import SCORER, record_from_score, task_metadata_of
from propensitybench.inspect_adapter.solver import RECORD
from propensitybench.metrics.sequential import StoppingState
from propensitybench.runs import ReplySummary, Run
from propensitybench.runs.read import ReadRuns, RunSource, log_suffix
from propensitybench.scenarios import Selection
from propensitybench.store import Manifest
from propensitybench.store.manifest import RUN_FORMAT, check_manifest
from propensitybench.taxonomy import NAMINGS

UNKNOWN: Final = "(domain not known)"
# Keys of a log's metadata that our task and our export both write.
_KEYS: Final = (
    "package",
    "rules",
    "data",
    "data_digest",
    "selections",
    "seed",
    "protocol",
    "template",
)
# The large parts of a sample, none of which is needed.
_LARGE: Final = {"messages", "events", "events_data", "attachments"}


class OtherTask(BadInput):
    """A log of another Inspect task."""


class LoggedRun(Run):
    """A run read from Inspect logs; ``manifest.tasks`` is the number of tasks planned in these logs."""

    def __init__(
        self,
        file: str,
        manifest: Manifest,
        records: Sequence[EpisodeRecord],
        contents: Mapping[str, str],
        journal: ReplySummary,
        stopping_rule: StoppingState | None,
    ) -> None:
        super().__init__(file, manifest, records, contents, stopping_rule)
        self._journal = journal

    @property
    def journal(self) -> ReplySummary:
        """Summary of the run's replies, from the logs."""
        return self._journal


class _Log(NamedTuple):
    """One log. Logs with the same ``run`` are parts of one run, unless they share samples."""

    given: Path
    path: Path
    spec: EvalSpec
    run: str
    ids: frozenset[str]
    manifest: Manifest
    export: Export
    records: list[EpisodeRecord]
    contents: dict[str, str]


def read_log_runs(logs: Sequence[RunSource]) -> ReadRuns:
    """The runs in some Inspect logs.

    Logs are one run if they agree in task, model, settings, seed and protocol, share no sample, and have the
    same text for each scenario. Of several attempts at one task (``inspect eval-retry``) the last counts.

    A log of another task is refused if the user named it, and skipped if it was found in a folder.

    Raises:
        BadInput: a log is damaged, or is a named log of another task.
    """
    last: dict[str, _Log] = {}
    skipped: list[str] = []
    for file in logs:
        try:
            log = _read(file.given, file.path)
        except OtherTask as error:
            if not file.in_folder:
                raise
            skipped.append(f"{error}; skipped")
            continue
        other = last.get(log.spec.task_id)
        if other is None or _age(other) <= _age(log):
            last[log.spec.task_id] = log
    groups: list[list[_Log]] = []
    for log in last.values():
        group = next((group for group in groups if _belongs(log, group)), None)
        if group is None:
            groups.append([log])
        else:
            group.append(log)
    givens = Counter(given for group in groups for given in {log.given for log in group})
    return ReadRuns([_merged(group, alone=givens[group[0].given] == 1) for group in groups], skipped)


def _age(log: _Log) -> tuple[str, int]:
    return log.spec.created, len(log.records)


def _belongs(log: _Log, group: Sequence[_Log]) -> bool:
    return all(
        log.run == other.run
        and log.ids.isdisjoint(other.ids)
        and all(other.contents.get(name, identity) == identity for name, identity in log.contents.items())
        for other in group
    )


def _merged(group: Sequence[_Log], *, alone: bool) -> LoggedRun:
    planned: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    answered_by: Counter[str] = Counter()
    for log in group:
        planned.update(log.export.planned)
        drawn.update(log.export.drawn)
        answered_by.update(log.export.answered_by)
    first = group[0]
    whole = planned.total() == first.export.tasks
    asked = first.manifest.selections
    selections = asked if whole else tuple(_narrowed(one, planned, group) for one in asked)
    together = alone and len({log.given for log in group}) == 1
    more = "" if together or len(group) == 1 else f" and {len(group) - 1} more"
    records = [record for log in group for record in log.records]
    usage = sum((record.stats.usage for record in records), Usage())
    unnamed = Counter({NOT_SAID: sum(record.stats.turns for record in records)})
    scenarios = len({identity.partition(".")[0] for log in group for identity in log.ids})
    return LoggedRun(
        file_name(first.given if together else first.path) + more,
        msgspec.structs.replace(first.manifest, tasks=planned.total(), selections=selections),
        records,
        {name: identity for log in group for name, identity in log.contents.items()},
        ReplySummary(answered_by or unnamed, usage, {}, scenarios, drawn),
        first.export.stopping if whole else None,
    )


def _narrowed(selection: Selection, planned: Counter[str], group: Sequence[_Log]) -> Selection:
    """The selection that covers only the tasks in these logs."""
    namings = {identity.rpartition(".")[2] for log in group for identity in log.ids}
    return msgspec.structs.replace(
        selection,
        domains=tuple(sorted(planned.keys() - {UNKNOWN})),
        namings=tuple(name for name in NAMINGS if name in namings),
    )


def _read(given: Path, path: Path) -> _Log:
    suffix = log_suffix(path)
    if path.suffix != suffix:
        raise BadInput(f"{path}: is an Inspect log, but Inspect reads it only if its name ends in {suffix}")
    try:
        with CheckedLog(path) as checked:
            spec = checked.read_spec()
            if spec.task.rpartition("/")[2] != TASK.rpartition("/")[2]:
                raise OtherTask(f"{path}: is an Inspect log of {spec.task}, not of {TASK}")
            summaries = read_eval_log_sample_summaries(str(path))
            samples = _Samples(path, checked)
            records = [record for summary in summaries for record in _records(samples, summary)]
        contents = {one.metadata["scenario"]: one.metadata["scenario_id"] for one in summaries}
        manifest = _manifest(spec)
        stored = (spec.metadata or {}).get(OURS)
        export = msgspec.convert(stored, Export) if stored else _planned(spec, manifest, records)
    except BadInput:
        raise
    except Exception as error:  # Inspect and its libraries raise nearly anything for a damaged log
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadInput(f"{path}: cannot be read as an Inspect log of {TASK} ({reason})") from error
    if not records and any(summary.scores for summary in summaries):
        raise BadInput(
            f"{path}: no sample has a score named {SCORER!r}; type: inspect score --scorer {TASK} {path}"
        )
    run, ids = export.run or _run(spec, manifest), frozenset(map(str, spec.dataset.sample_ids or ()))
    return _Log(given, path, spec, run, ids, manifest, export, records, contents)


class _Samples(NamedTuple):
    """Reads single samples of a log."""

    path: Path
    checked: CheckedLog

    def read(self, summary: EvalSampleSummary) -> EvalSample:
        """The sample of a summary, without its large parts."""
        if self.path.suffix != ".eval":
            return read_eval_log_sample(str(self.path), summary.id, summary.epoch, exclude_fields=_LARGE)
        # Inspect leaves these parts out with a parser whose memory grows with the square of the nesting.
        sample = from_json(self.checked.read_sample(summary.id, summary.epoch))
        return EvalSample.model_validate({key: sample[key] for key in sample.keys() - _LARGE})


def _records(samples: _Samples, summary: EvalSampleSummary) -> Iterator[EpisodeRecord]:
    """The record of a sample; none if it was cancelled before its episode had begun."""
    if is_cancellation_message(summary.error):
        stored = samples.read(summary).store.get(RECORD)
        record = None if stored is None else msgspec.convert(stored, EpisodeRecord)
        if record is not None and record.stats.outcome is not Outcome.ERRORED:
            yield record  # the episode was over before the evaluation was cancelled
        elif record is not None and record.stats.turns:
            yield _ended_as(record, Outcome.UNFINISHED, "")
        return
    score = (summary.scores or {}).get(SCORER)
    if score is not None:
        parts = (score.metadata or {}).get("metadata"), (score.metadata or {}).get("stats")
        if not all(isinstance(part, dict) for part in parts):  # a summary leaves out long values
            score = (samples.read(summary).scores or {})[SCORER]
        yield record_from_score(score)
    elif summary.error is not None:
        yield _errored(samples, summary, summary.error)


def _errored(samples: _Samples, summary: EvalSampleSummary, error: str) -> EpisodeRecord:
    """The record of a sample that ended with an error and was not scored."""
    stored = samples.read(summary).store.get(RECORD)
    if stored is None:  # the episode did not start
        task = task_metadata_of(str(summary.id), summary.epoch, summary.metadata)
        return EpisodeRecord(task, EpisodeStats(Outcome.ERRORED, 0, 0), error)
    return _ended_as(msgspec.convert(stored, EpisodeRecord), Outcome.ERRORED, error)


def _ended_as(record: EpisodeRecord, outcome: Outcome, error: str) -> EpisodeRecord:
    stats = msgspec.structs.replace(record.stats, outcome=outcome)
    return msgspec.structs.replace(record, stats=stats, error=error)


def _run(spec: EvalSpec, manifest: Manifest) -> str:
    """What the logs of one run have in common, as text."""
    same = ("model", "options", "rules", "seed", "protocol", "template")
    parts = (spec.task, spec.task_version, *(getattr(manifest, name) for name in same))
    return msgspec.json.encode(parts).decode()


def _manifest(spec: EvalSpec) -> Manifest:
    """The manifest of a log's run; raises whatever a log that is not ours leads to."""
    about = spec.metadata or {}
    options = spec.model_generate_config.model_dump(exclude_none=True)
    if spec.model_base_url:
        options["base_url"] = spec.model_base_url
    stored = {name: about[name] for name in _KEYS}
    epochs, asked = spec.config.epochs or 1, stored["selections"]
    manifest = msgspec.convert(
        {
            **stored,
            "selections": asked if len(asked) > 1 else [{**one, "epochs": epochs} for one in asked],
            "lists": about.get("lists", {}),
            "format": RUN_FORMAT,
            "created": spec.created,
            "model": spec.model,
            "options": options,
            "tasks": len(spec.dataset.sample_ids or ()) * epochs,
        },
        Manifest,
    )
    check_manifest(manifest)  # a number of levels in the millions would fill the memory
    return manifest


def _planned(spec: EvalSpec, manifest: Manifest, records: Sequence[EpisodeRecord]) -> Export:
    """The `Export` of a log that Inspect wrote."""
    domains = {record.metadata.scenario: record.metadata.domain for record in records}
    chosen = {name for one in manifest.selections for name in one.domains}
    unknown = min(chosen) if len(chosen) == 1 else UNKNOWN
    names = (str(identity).partition(".")[0] for identity in spec.dataset.sample_ids or ())
    planned = Counter(domains.get(name, unknown) for name in names)
    epochs = manifest.epochs
    tasks = {domain: count * epochs for domain, count in planned.items()}
    return Export("", manifest.tasks, tasks, tasks)
