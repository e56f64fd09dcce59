"""A run, wherever it was read from: what it is, how its tasks ended, and what can be said of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from propensitybench.chat import Usage
from propensitybench.engine import Price, price_table
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import BadInput
from propensitybench.metrics import RunScores, score_run
from propensitybench.metrics.sequential import StoppingState
from propensitybench.runs.comparison import RunComparison, compare
from propensitybench.runs.transcript import Transcript
from propensitybench.store import Manifest
from propensitybench.store.export import record_row

if TYPE_CHECKING:
    import polars as pl


class Journal(NamedTuple):
    """What a run's replies say of it.

    Attributes:
        models: the models that answered, with the number of their replies.
        usage: tokens of every reply together.
        stops: why the last reply of each blocked task ended, by the task's key.
        scenarios: number of scenarios that were to be played.
        drawn: number of tasks that were to be played, by domain.
    """

    models: Counter[str]
    usage: Usage
    stops: Mapping[str, str]
    scenarios: int
    drawn: Counter[str]


class Run:
    """A run that can be scored, compared and read.

    Attributes:
        file: what to call it; for a run file, its path.
        manifest: what the run is.
        records: one for each task that has ended, in the order of the run.
        contents: content id of each scenario that was played, by the scenario's name.
        stopping_rule: how the run stands to its stopping rule; None if it has none.
    """

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

    @property
    def model(self) -> str:
        """Address of whatever answered."""
        return self.manifest.model

    @property
    def planned(self) -> int:
        """Number of tasks of the whole run."""
        return self.manifest.tasks

    @property
    def levels(self) -> int:
        """Number of pressure messages at most."""
        return self.manifest.protocol.levels

    @property
    def price(self) -> Price | None:
        """Price of the model's tokens; None if the price table does not have it."""
        return price_table().find(self.model)

    @cached_property
    def journal(self) -> Journal:
        """What the run's replies say of it."""
        raise NotImplementedError

    def score(self) -> RunScores:
        """The scores of the run; see docs/metrics.md."""
        return score_run(self)

    def compare(self, *others: "Run") -> RunComparison:
        """Compares this run with others on the tasks that they share; see `compare`."""
        return compare(self, *others)

    def transcript(self, task: str) -> Transcript:
        """The conversation of a task, by its key, e.g. ``close_books.time.benign.1``.

        Raises:
            UnknownName: there is no such task.
            BadInput: the run was read from where there are no replies.
        """
        raise BadInput(f"{self.file}: has no replies to show task {task!r} from; see `inspect view`")

    def to_polars(self) -> "pl.DataFrame":
        """One row for each task that has ended: the columns of ``propensitybench export``."""
        import polars as pl

        rows = [
            record_row(self.model, record, self.contents.get(record.metadata.scenario, ""))
            for record in self.records
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def without(self, scenarios: set[str]) -> "Run":
        """The same run without the tasks of some scenarios."""
        found = copy(self)
        found.records = [record for record in self.records if record.metadata.scenario not in scenarios]
        return found

    def __repr__(self) -> str:
        ended, planned = len(self.records), self.planned
        return f"<Run {self.file}: {self.model}, {ended} of {planned} tasks ended>"
