"""The tasks that a candidate and a base have in common, if they are runs of the same benchmark."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from propensitybench.episode import SAFE, SCORED, EpisodeRecord, EpisodeStats, Outcome
from propensitybench.errors import BadInput
from propensitybench.gates.question import GateQuestion
from propensitybench.metrics.arrays import Flags, Numbers
from propensitybench.metrics.pairs import PairedOutcomes
from propensitybench.metrics.sample import ClusteredSample
from propensitybench.runs import Run, StoredRun
from propensitybench.runs.comparison import HARMLESS, changed_scenarios, first_of, other_seed
from propensitybench.scenarios import Task, task_of
from propensitybench.store import Manifest, RunFile, differences, is_scheduled, scheduled
from propensitybench.taxonomy import Naming

NOT_BEGUN: Final = "not begun"


class ShareBounds(NamedTuple):
    """What is known of an episode, or of the mean over a unit's episodes.

    Attributes:
        low, high: the lowest and the highest share that ended misaligned by the level.
        competent: share of the scored episodes with a correct call of the aligned tool; NaN without one.
    """

    low: float
    high: float
    competent: float


class CommonTasks(NamedTuple):
    """The candidate's tasks under a naming that the base has too, in the order of the candidate's run.

    Attributes:
        naming: of the misaligned tool.
        tasks: the tasks, also those that the candidate was not to play yet.
        numbers: the place of each among all tasks of the candidate, from 0.
        pairs: the outcomes of both.
        competent: shares with a correct call of the aligned tool, of base and candidate, shape (2, tasks);
            NaN where one of them has no score.
        reasons: why the candidate has no score of a task; empty if it has one.
    """

    naming: Naming
    tasks: list[Task]
    numbers: NDArray[np.int64]
    pairs: PairedOutcomes
    competent: Numbers
    reasons: list[str]

    @property
    def missing(self) -> Counter[str]:
        """Number of the candidate's tasks without a score, by the reason."""
        return Counter(
            reason for reason, own in zip(self.reasons, self.pairs.played, strict=True) if reason and own
        )

    @property
    def competence(self) -> PairedOutcomes:
        """Shares with a correct call of the aligned tool, of the tasks played that are scored for both."""
        pairs = self.pairs._replace(base=self.competent[:1], candidate=self.competent[1:])
        return pairs.filter(pairs.played & ~np.isnan(self.competent[0]))

    def before(self, number: int) -> "CommonTasks":
        """The same if the candidate was to play only the first so many of its tasks."""
        return self._replace(pairs=self.pairs._replace(played=self.numbers < number))


def bounds_of(stats: EpisodeStats, level: int) -> ShareBounds:
    """What is known of an episode by the end of a level."""
    scored = stats.outcome in SCORED
    competent = float(stats.competent) if scored else nan
    if stats.outcome is Outcome.MISALIGNED:
        ended = float(stats.level <= level)
        return ShareBounds(ended, ended, competent)
    # An episode that has not ended may still end misaligned at the level that it has reached.
    over = min(stats.level, stats.levels_run) if stats.outcome is Outcome.UNFINISHED else stats.levels_run
    safe = stats.outcome in SAFE or over > level
    return ShareBounds(0.0, 0.0 if safe else 1.0, competent)


def check_comparable(base: Run, candidate: Run) -> list[str]:
    """Notes on differences that a reader has to know of.

    Raises:
        BadInput: the runs are one, or differ in protocol, arm, system message, overlays, rules, scenarios or
            pressure messages. A gate between them would not say what the model has to do with it.
    """
    if os.path.realpath(base.file) == os.path.realpath(candidate.file):
        raise BadInput(
            f"{base.file}: is given as base and as candidate, and no run is worse than itself; give the run "
            "of another model as the candidate"
        )
    if _played_as(base.manifest) == _played_as(candidate.manifest):
        raise BadInput(
            f"{candidate.file}: is the same run as the base, {base.file}, or was made with the same "
            "settings in the same second; give another run as the candidate"
        )
    one, other = base.manifest, candidate.manifest
    same = {field: getattr(one, field) for field in HARMLESS}
    found = differences(one, Manifest(**{**msgspec.structs.asdict(other), **same}))
    if changed := changed_scenarios([base, candidate]):
        found.append(f"texts of {len(changed)} scenarios ({first_of(changed)})")
    elif one.seed == other.seed and one.data_digest != other.data_digest and _other_messages(base, candidate):
        found.append("pressure messages")
    if found:
        raise BadInput(
            f"{base.file} and {candidate.file}: cannot be compared, because they differ in {'; '.join(found)}"
            "; play the candidate as the base was played"
        )
    notes = other_seed(base, candidate)
    for name in sorted({*one.options, *other.options} - {"base_url"}):
        was, now = one.options.get(name), other.options.get(name)
        if was != now:
            notes.append(f"the runs differ in {name}: {was} in the base, {now} in the candidate")
    return notes


def _played_as(manifest: Manifest) -> tuple[object, ...]:
    """Identifies a run, also once it has grown: two with equal settings differ in when they were created."""
    settings = msgspec.json.encode((manifest.options, manifest.protocol, manifest.overlays), order="sorted")
    return manifest.created, manifest.model, manifest.first_digest, manifest.seed, settings


def _other_messages(base: Run, candidate: Run) -> bool:
    """Whether two run files have different pressure messages for a task that both have."""
    if not isinstance(base, StoredRun) or not isinstance(candidate, StoredRun):
        return False
    units = [{(r.metadata.scenario, r.metadata.dimension) for r in run.records} for run in (base, candidate)]
    with RunFile.open(base.path) as one, RunFile.open(candidate.path) as other:
        return any(one.pressure(*unit) != other.pressure(*unit) for unit in sorted(units[0] & units[1]))


def tasks_to_compare(run: Run) -> list[Task]:
    """Every task that a run was to play so far, in its order, whether it has begun or not.

    Of a candidate that is played until decided: every task that it may have to play.

    Raises:
        BadInput: it was read from logs that lack some of its tasks.
    """
    if isinstance(run, StoredRun):
        with RunFile.open(run.path) as file:
            until = file.manifest.tasks if file.manifest.gate is not None else scheduled(file)
            return [one.task for one in file.own_tasks() if is_scheduled(file, one.number, until)]
    if run.planned > len(run.records):
        raise BadInput(
            f"{run.file}: lacks {run.planned - len(run.records)} of its {run.planned} tasks, and a log "
            "does not say which; finish the evaluation, or give the run file"
        )
    return [task_of(record.metadata) for record in run.records]


def begun_tasks(run: RunFile, namings: Sequence[Naming]) -> list[Task]:
    """The tasks under some namings that have begun, in the order of the run."""
    begun = {record.metadata.task for record in run.records()}
    begun |= {task.task.key for task in run.in_progress()}
    return [task.task for task in run.tasks() if task.task.naming in namings and task.task.key in begun]


def unit_of(record: EpisodeRecord) -> tuple[str, str]:
    """The scenario and the dimension of a record."""
    return record.metadata.scenario, record.metadata.dimension


def common_by_naming(
    base: Run, played: Sequence[Task], candidate: Sequence[EpisodeRecord], question: GateQuestion
) -> dict[Naming, CommonTasks]:
    """The tasks that both have under each naming that is asked about; see `common_tasks`."""
    level = question.last_level(base.levels)
    return {name: common_tasks(base.records, played, candidate, name, level) for name in question.namings}


def common_tasks(
    base: Sequence[EpisodeRecord],
    played: Sequence[Task],
    candidate: Iterable[EpisodeRecord],
    naming: Naming,
    level: int,
) -> CommonTasks:
    """The tasks that both have.

    Args:
        base: the base's records. A unit's episodes are averaged, so that numbers of epochs may differ.
        played: the tasks that the candidate was to play, in the order of its run.
        candidate: its records.
        naming: of the misaligned tool.
        level: a misaligned call counts up to this level.
    """
    episodes: dict[tuple[str, str], list[ShareBounds]] = {}
    for one in base:
        if one.metadata.naming == naming:
            episodes.setdefault(unit_of(one), []).append(bounds_of(one.stats, level))
    units = {unit: _mean(bounds) for unit, bounds in episodes.items()}
    domains = {one.metadata.scenario: one.metadata.domain for one in base}
    records = {one.metadata.task: one for one in candidate if one.metadata.naming == naming}
    tasks, numbers, knowns, reasons = [], [], [], []
    for number, task in enumerate(played):
        if task.naming != naming or (task.scenario, task.dimension) not in units:
            continue
        record = records.get(task.key)
        known = ShareBounds(0.0, 1.0, nan) if record is None else bounds_of(record.stats, level)
        reason = NOT_BEGUN if record is None else record.stats.outcome.value
        reasons.append(reason if known.low < known.high else "")
        tasks.append(task)
        numbers.append(number)
        knowns.append((units[task.scenario, task.dimension], known))
    columns = np.array(knowns, dtype=np.float64).reshape(-1, 2, 3).transpose(1, 2, 0)
    competent = np.where(np.isnan(columns[:, 2]).any(axis=0), nan, columns[:, 2])
    sample = ClusteredSample(
        np.array([domains[task.scenario] for task in tasks], dtype=np.str_),
        np.array([task.scenario for task in tasks], dtype=np.str_),
    )
    pairs = PairedOutcomes(sample, columns[0, :2], columns[1, :2], np.ones(len(tasks), dtype=bool))
    return CommonTasks(naming, tasks, np.array(numbers, dtype=np.int64), pairs, competent, reasons)


def _mean(episodes: Sequence[ShareBounds]) -> ShareBounds:
    low, high, competent = zip(*episodes, strict=True)
    able = [share for share in competent if not isnan(share)]
    count = len(episodes)
    return ShareBounds(sum(low) / count, sum(high) / count, sum(able) / len(able) if able else nan)


def ended(tasks: Sequence[Task], candidate: Iterable[EpisodeRecord]) -> Flags:
    """Which of the candidate's tasks have ended, whatever the outcome."""
    over = {one.metadata.task for one in candidate if one.stats.outcome is not Outcome.UNFINISHED}
    return np.array([task.key in over for task in tasks], dtype=bool)
