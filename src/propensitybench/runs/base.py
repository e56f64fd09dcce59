"""A run, whatever file it was read from: its settings, how its tasks ended, and its scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.chat import Usage
from propensitybench.engine import Price, price_table
from propensitybench.episode import EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile
from propensitybench.metrics import score_run
from propensitybench.metrics.own import OwnMetric
from propensitybench.metrics.scores import common_errors
from propensitybench.metrics.sequential import StoppingState
from propensitybench.metrics.table import is_finished
from propensitybench.presentation.scores import RunScores
from propensitybench.runs.own_metrics import (
    MetricFunction,
    measure_episodes,
    metrics_named,
    registered_metrics,
)
from propensitybench.runs.transcript import Transcript
from propensitybench.store import Manifest
from propensitybench.store.export import record_row
from propensitybench.tabular import Framed
from propensitybench.taxonomy import Taxonomy, lists_with

# Of the reason for an error, in a line about a run.
MAX_ERROR_SHOWN: Final = 200


class ReplySummary(NamedTuple):
    """A summary of a run's replies.

    Attributes:
        models: number of replies of each model that answered.
        usage: tokens of all replies.
        stops: stop reason of the first reply that was withheld in a task, by the task's key.
        scenarios: number of scenarios in the run.
        drawn: number of tasks to be played, by domain.
    """

    models: Counter[str]
    usage: Usage
    stops: Mapping[str, str]
    scenarios: int
    drawn: Counter[str]


class Run(Framed):
    """A run that can be scored, compared and read; as a data frame, a row for each task that has begun.

    Attributes:
        file: its name in tables and messages; for a run file, the path.
        manifest: its settings.
        records: one for each task that has begun, in the order of the run; a task that has not ended has the
            outcome ``unfinished``.
        contents: content id of each scenario that was played, by the scenario's name.
        stopping_rule: progress towards the stopping rule; None without one.
        shard: which shard of the run it is, for example ``3/64``; empty for a whole run.
        has_transcripts: whether `transcript` works.

    Raises:
        NotARunFile: a record has a capability that is not in the lists of the run.
    """

    shard: str = ""
    has_transcripts: bool = False

    def __init__(
        self,
        file: str,
        manifest: Manifest,
        records: Sequence[EpisodeRecord],
        contents: Mapping[str, str],
        stopping_rule: StoppingState | None = None,
    ) -> None:
        self.file = file
        self.manifest = manifest
        self.records = records
        self.contents = contents
        self.stopping_rule = stopping_rule
        capabilities = {record.metadata.capability for record in records} - {None}
        if unknown := capabilities - self.lists.capabilities.keys():
            raise NotARunFile(f"{file}: is damaged (unknown capability {sorted(map(str, unknown))[0]!r})")

    @property
    def model(self) -> str:
        """Address of the model."""
        return self.manifest.model

    @property
    def lists(self) -> Taxonomy:
        """The names that the run may use: the built-in ones, and those that its data declare."""
        return lists_with(self.manifest.lists)

    @property
    def tasks(self) -> list[str]:
        """Keys of the tasks that have begun, in the order of the run."""
        return [record.metadata.task for record in self.records]

    @property
    def planned(self) -> int:
        """Number of tasks in the run, or in its shard."""
        return self.manifest.tasks

    @property
    def levels(self) -> int:
        """Number of pressure messages in each task."""
        return self.manifest.protocol.last_level

    @property
    def price(self) -> Price | None:
        """Price of the model's tokens; None if the price table does not list the model."""
        return price_table().find(self.model)

    @property
    def usage(self) -> Usage:
        """Tokens of all replies, in tasks that have begun."""
        return sum((record.stats.usage for record in self.records), Usage())

    @property
    def cost(self) -> float | None:
        """What the replies cost, in US dollars; None if the price is unknown."""
        return None if self.price is None else self.price.of(self.usage)

    @cached_property
    def journal(self) -> ReplySummary:
        """A summary of the run's replies."""
        raise NotImplementedError

    @cached_property
    def own_metrics(self) -> Sequence[OwnMetric]:
        """The metrics that installed packages register; docs/extending.md says how.

        Raises:
            BadInput: one of them cannot be computed.
        """
        return self._measured(registered_metrics())

    def score(self, metrics: MetricFunction | Sequence[MetricFunction] = ()) -> RunScores:
        """The scores of the run; docs/metrics.md explains each number.

        Args:
            metrics: of your own: a function or several, which take the table of scored episodes (a frame as
                `to_polars` gives) and return a number, True or False, or None for each row.

        Raises:
            BadInput: a metric raises, or returns something else.
        """
        more = self._measured(metrics_named(metrics, registered_metrics()))
        return RunScores(**msgspec.structs.asdict(score_run(self, more)))

    def _measured(self, functions: Mapping[str, MetricFunction]) -> Sequence[OwnMetric]:
        if not functions:
            return ()
        scored = copy(self)
        scored.records = [record for record in self.records if is_finished(record)]
        return measure_episodes(functions, scored.to_polars())

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key, e.g. ``close_books.time.benign.1``.

        Raises:
            UnknownName: there is no such task.
            BadInput: the run was read from a file without replies.
        """
        raise BadInput(f"{self.file}: holds no replies for task {task!r}; read the log with `inspect view`")

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row for each task that has begun, with the columns of ``propensitybench export``."""
        return [
            record_row(self.model, record, self.contents.get(record.metadata.scenario, ""))
            for record in self.records
        ]

    def without(self, scenarios: set[str]) -> "Run":
        """The same run without the tasks of some scenarios."""
        run = copy(self)
        run.records = [record for record in self.records if record.metadata.scenario not in scenarios]
        return run

    def __repr__(self) -> str:
        outcomes = Counter(record.stats.outcome for record in self.records)
        ended, errored = len(self.records) - outcomes[Outcome.UNFINISHED], outcomes[Outcome.ERRORED]
        why = next(iter(common_errors(self.records)), "")
        errors = f", {errored} errored ({why[:MAX_ERROR_SHOWN]})" if errored else ""
        return f"<Run {self.file}: {self.model}, {ended} of {self.planned} tasks ended{errors}>"
