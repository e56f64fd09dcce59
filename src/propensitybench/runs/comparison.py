"""Which runs can be compared, and the comparison."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import Analysis, analyse
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.compare import BEGUN_IN_BOTH
from propensitybench.metrics.display import pairs, pairs_frame, remarks
from propensitybench.metrics.table import is_finished
from propensitybench.runs.base import Run
from propensitybench.store import Manifest, differences

if TYPE_CHECKING:
    import polars as pl

MIN_RUNS: Final = 2
# Two runs that differ only in these were played by the same rules and texts.
HARMLESS: Final = ("model", "options", "selection", "tasks", "stopping_rule", "gate", "data_digest", "seed")
_SHOWN: Final = 5


class ComparableRuns(NamedTuple):
    """Runs that can be compared.

    Attributes:
        runs: in the order given, without the tasks whose texts differ between them.
        notes: other differences that a reader has to know of.
    """

    runs: list[Run]
    notes: list[str]


class RunComparison(NamedTuple):
    """Runs compared on the tasks that they share.

    Attributes:
        analysis: every number of the comparison.
        notes: differences between the runs that a reader has to know of.
    """

    analysis: Analysis
    notes: tuple[str, ...]

    def to_polars(self) -> "pl.DataFrame":
        """One row for each pair of runs and naming."""
        return pairs_frame(self.analysis)

    def _repr_html_(self) -> str:
        return pairs(self.analysis).html() + "".join(f"<p>{escape(line)}</p>" for line in self._remarks())

    def __repr__(self) -> str:
        return "\n".join([pairs(self.analysis).text(), *self._remarks()])

    def _remarks(self) -> list[str]:
        notes = [f"note: {note}" for note in self.notes]
        return notes + [line for run in self.analysis.runs for line in remarks(run.scores)]


def compare(*runs: Run, index: Mapping[str, IndexEntry] | None = None) -> RunComparison:
    """Compares runs on the tasks that they share: paired differences, p-values, ranks.

    Args:
        runs: two or more.
        index: a capability index by model name, to correlate the propensity with.

    Raises:
        BadInput: there are fewer than two runs, or they differ in the number of levels.
    """
    if len(runs) < MIN_RUNS:
        raise BadInput(f"compare: needs two runs or more, got {len(runs)}")
    found = comparable(runs)
    return RunComparison(analyse(found.runs, index), tuple(found.notes))


def comparable(runs: Sequence[Run]) -> ComparableRuns:
    """The runs without the tasks whose texts differ between them, and notes on other differences.

    Raises:
        BadInput: they differ in the number of levels.
    """
    notes = [note for one, other in combinations(runs, 2) for note in _notes(one, other)]
    changed = changed_scenarios(runs)
    if changed:
        notes.append(
            f"scenarios left out, because their texts differ between the runs: {len(changed)} "
            f"({first_of(changed)})"
        )
    kept = [run.without(changed) if changed else run for run in runs]
    notes += [
        f"{one.file} and {other.file} are not compared: they have no finished task in common"
        for one, other in combinations(kept, 2)
        if not _finished(one) & _finished(other)
    ]
    return ComparableRuns(kept, notes)


def _notes(one: Run, other: Run) -> list[str]:
    if one.levels != other.levels:
        raise BadInput(
            f"{one.file} and {other.file}: have {one.levels} and {other.levels} pressure messages for each "
            "task, so their scores measure different things; compare runs with the same number"
        )
    same = {field: getattr(one.manifest, field) for field in HARMLESS}
    found = differences(one.manifest, Manifest(**{**msgspec.structs.asdict(other.manifest), **same}))
    return other_seed(one, other) + [f"{one.file} and {other.file} differ in: {what}" for what in found]


def other_seed(one: Run, other: Run) -> list[str]:
    """What follows from different seeds, as one note; empty if they are equal."""
    first, second = one.manifest.seed, other.manifest.seed
    if first == second:
        return []
    begun = [{record.metadata.task for record in run.records} for run in (one, other)]
    return [
        f"{one.file} and {other.file} have different seeds ({first} and {second}), so their tasks were drawn "
        f"and played with other random numbers and storylines: {len(begun[0] & begun[1]):,} of their "
        f"{one.planned:,} and {other.planned:,} tasks have {BEGUN_IN_BOTH}; the comparison is less precise"
    ]


def first_of(names: set[str]) -> str:
    """The first few of some names."""
    return ", ".join(sorted(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def changed_scenarios(runs: Sequence[Run]) -> set[str]:
    """Names that stand for different scenarios in different runs."""
    seen: dict[str, str] = {}
    return {
        name
        for run in runs
        for name, identity in run.contents.items()
        if seen.setdefault(name, identity) != identity
    }


def _finished(run: Run) -> set[tuple[str, str, str]]:
    return {
        (record.metadata.scenario, record.metadata.dimension, record.metadata.naming)
        for record in run.records
        if is_finished(record)
    }
