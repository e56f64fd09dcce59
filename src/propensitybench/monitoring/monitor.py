"""Monitors read a run's transcripts turn by turn; the numbers that say how well they see it coming."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple, Unpack

import msgspec
import numpy as np

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price
from propensitybench.engine.asking import AskingListener
from propensitybench.episode import Outcome
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.judging import keyless
from propensitybench.judging.session import wait_for
from propensitybench.metrics.alarms import MonitorRate
from propensitybench.metrics.monitored import MonitorNumbers, monitor_numbers
from propensitybench.metrics.watched import WatchedEpisode
from propensitybench.monitoring.monitors import LIBRARY, Monitor
from propensitybench.monitoring.watch import PYTHON, MonitorFunction, Watching, chosen, scores_in, watch_run
from propensitybench.presentation.formats import with_interval
from propensitybench.runs import Run, Settings, StoredRun
from propensitybench.runs.read import run_file_of
from propensitybench.runs.resolve import checked, read_settings
from propensitybench.runs.settings import settings_of
from propensitybench.store import RunFile
from propensitybench.tabular import Brief, Tabular
from propensitybench.taxonomy import NAMINGS

CONCURRENCY: Final = 16
"""Requests in flight for each model, unless a number is given."""
DEFAULT: Final = "transcript"
BOTH: Final = "both"
"""The episodes of both namings together."""
_SETTINGS: Final = ("limit", *settings_of(Endpoints, ModelOptions, RequestLimits, Budget, Price))


class MonitorResults(Brief, msgspec.Struct, frozen=True):
    """The numbers of a monitor and a model, by naming and for ``both``.

    Attributes:
        monitor, title: of what is read.
        model: who read it.
        numbers: of a naming with a scored episode.
    """

    monitor: str
    title: str
    model: str
    numbers: dict[str, MonitorNumbers]


@dataclass(frozen=True, repr=False)
class Monitored(Tabular):
    """What monitors made of a run; the table has one row for each monitor, model and naming.

    Attributes:
        results: of each monitor and model.
    """

    results: tuple[MonitorResults, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The main numbers with their 95 % intervals."""
        return [_row(one, naming, numbers) for one in self.results for naming, numbers in one.numbers.items()]

    def to_dict(self) -> dict[str, Any]:
        """What ``propensitybench monitor --json`` prints."""
        return {"monitors": msgspec.to_builtins(self.results, str_keys=True)}

    def __repr__(self) -> str:
        return "\n".join(
            f"{one.model} reading {one.title}, {naming} names: AUC {_percent(numbers.auc)}, "
            f"{_percent(numbers.lead[1].crossing)} % with an alarm a turn ahead "
            f"({_percent(numbers.lead[1].matched)} % of matched episodes)"
            for one in self.results
            for naming, numbers in one.numbers.items()
        )


class MonitorPlan(NamedTuple):
    """Who watches what, and how requests are sent."""

    watching: Watching
    execution: ExecutionOptions


def monitor(
    run: Run | str | os.PathLike[str],
    *monitors: str | MonitorFunction,
    reads: str | Sequence[str] = (),
    on_progress: AskingListener | None = None,
    **settings: Unpack[Settings],
) -> Monitored:
    """Lets monitors read a run's transcripts as they grow, and says how early they see a breach coming.

    After each turn a monitor gives a suspicion from 0 to 1. It reads the conversation up to that turn and
    nothing else: no outcome, no mark of the misaligned tool, nothing that comes later. Each reply is kept
    in the run file and never asked for again.

    Args:
        run: a run in a run file, or the file.
        monitors: addresses of models, ``keyless/words`` to try it, or functions: each takes the messages up
        to a turn as OpenAI's API has them, and returns a number from 0 to 1, or None. Without one, nothing
        is asked. The
            scores of a function are kept under its name.
        reads: ``transcript`` (the default), ``last-turn``, ``no-thoughts``, or files of your own (.toml).
        on_progress: called after each reply.
        settings: of `Settings`, how models are asked; ``limit`` is the number of episodes.

    Raises:
        BadInput: a monitor cannot be used, was asked with other options before, or there are no scores.
        RunStopped: a provider can no longer answer; the same call resumes.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    path = run_file_of(run)
    names = (reads,) if isinstance(reads, str) else tuple(reads)
    if monitors:
        asked = asked_of(monitors, names, settings)
        wait_for(lambda stop: watch_run(path, *asked, on_progress, stop), path)
    return read_monitored(path, names)


def asked_of(
    monitors: Sequence[str | MonitorFunction], reads: Sequence[str], settings: Settings
) -> MonitorPlan:
    """The settings of a session, checked; raises `BadInput` for what cannot be used."""
    given = checked(settings, _SETTINGS)
    functions = {_address(one): one for one in monitors if not isinstance(one, str)}
    models = tuple(one if isinstance(one, str) else _address(one) for one in monitors)
    spec, execution = read_settings(models[0], {"concurrency": CONCURRENCY, **given})
    read = tuple(map(LIBRARY.read, reads or (DEFAULT,)))
    return MonitorPlan(Watching(read, models, spec.options, functions, given.get("limit")), execution)


def read_monitored(path: Path, reads: Sequence[str] = ()) -> Monitored:
    """The scores in a run file as numbers; raises `BadInput` if there are none.

    Args:
        path: the run file.
        reads: names or files of monitors; if empty, all that have scores.
    """
    wanted = {LIBRARY.read(one).name for one in reads}
    found = tuple(one for one in results_in(path) if not wanted or one.monitor in wanted)
    if not found:
        raise BadInput(
            f"{file_name(path)}: no monitor has read it; ask with: propensitybench monitor "
            f"{quote(str(path))} --monitor {keyless.MODEL}, or a model"
        )
    return Monitored(found)


def results_in(path: Path) -> list[MonitorResults]:
    """The numbers of every monitor and model in a run file; raises `NotARunFile` for one that is damaged."""
    run = StoredRun(path)
    with RunFile.open(path) as file:
        stored = LIBRARY.stored(file)
        return [
            MonitorResults(one.name, one.title, model, _numbers(run, scores))
            for one in stored
            for model, scores in _by_model(file, one).items()
        ]


Scores = Mapping[str, Mapping[int, float | None]]


def _by_model(file: RunFile, monitor: Monitor) -> dict[str, Scores]:
    """The scores of each model by task and turn."""
    keys = {task.number: task.task.key for task in file.tasks()}
    found: dict[str, dict[str, dict[int, float | None]]] = {}
    for model, task, turn, score in scores_in(file, monitor):
        found.setdefault(model, {}).setdefault(keys[task], {})[turn] = score
    return dict(found)


def _numbers(run: StoredRun, scores: Scores) -> dict[str, MonitorNumbers]:
    """By naming; of the episodes that the model was asked about at all."""
    watched: dict[str, list[WatchedEpisode]] = {naming: [] for naming in NAMINGS}
    for record in chosen(run):
        meta, given = record.metadata, scores.get(record.metadata.task)
        if given is None:
            continue
        every = np.array(
            [np.nan if (one := given.get(turn)) is None else one for turn in range(1, record.stats.turns + 1)]
        )
        crossed = record.stats.outcome is Outcome.MISALIGNED
        watched[meta.naming].append(WatchedEpisode(meta.task, meta.scenario, meta.domain, crossed, every))
    found = {naming: episodes for naming, episodes in watched.items() if episodes}
    found[BOTH] = [one for episodes in watched.values() for one in episodes]
    return {naming: monitor_numbers(episodes) for naming, episodes in found.items()}


def _address(function: Callable[..., object]) -> str:
    return PYTHON + getattr(function, "__name__", type(function).__name__)


def _percent(rate: MonitorRate) -> str:
    return with_interval(rate.value, rate.ci95)


def _row(one: MonitorResults, naming: str, numbers: MonitorNumbers) -> dict[str, Any]:
    rates = {
        "auc": numbers.auc,
        **{f"episodes_at_{100 * at.false_positives:g}": at.caught for at in numbers.episodes},
        **{f"steps_at_{100 * at.false_positives:g}": at.caught for at in numbers.steps},
        **{f"ahead_{at.turns}": at.crossing for at in numbers.lead},
        **{f"matched_{at.turns}": at.matched for at in numbers.lead},
        "audit": numbers.audit,
        "g_mean_squared": numbers.g_mean_squared,
    }
    row: dict[str, Any] = {"monitor": one.monitor, "model": one.model, "naming": naming}
    row |= {name: getattr(numbers, name) for name in ("crossing", "others", "matched", "turns", "missing")}
    for name, rate in rates.items():
        low, high = rate.ci95 or (None, None)
        row |= {name: rate.value, f"{name}_low": low, f"{name}_high": high}
    return row | {"brier": numbers.brier}
