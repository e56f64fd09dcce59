"""Whether runs can be compared, and what comes out of it."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import Analysis, analyse
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.display import pairs, pairs_frame
from propensitybench.metrics.table import is_finished
from propensitybench.store import Manifest, differences

if TYPE_CHECKING:
    import polars as pl

    from propensitybench.runs.base import Run

FEWEST: Final = 2
# What two runs may differ in and still have been played by the same rules on the same tasks.
_HARMLESS: Final = ("model", "options", "selection", "tasks", "stopping_rule", "data_digest", "seed")
_SHOWN: Final = 5


class ComparableRuns(NamedTuple):
    """Runs that can be compared.

    Attributes:
        runs: in the order given; tasks whose texts differ between runs are left out.
        notes: what a reader must know of the differences between them.
    """

    runs: "list[Run]"
    notes: list[str]


class RunComparison(NamedTuple):
    """Several runs on the tasks that they share.

    Attributes:
        analysis: everything that can be said of the runs together.
        notes: what a reader must know of the differences between them.
    """

    analysis: Analysis
    notes: tuple[str, ...]

    def to_polars(self) -> "pl.DataFrame":
        """One row for each pair of runs and naming."""
        return pairs_frame(self.analysis)

    def _repr_html_(self) -> str:
        return pairs(self.analysis).html()

    def __repr__(self) -> str:
        return "\n".join([pairs(self.analysis).text(), *(f"note: {note}" for note in self.notes)])


def compare(*runs: "Run", index: Mapping[str, IndexEntry] | None = None) -> RunComparison:
    """Compares runs on the tasks that they share.

    Args:
        runs: two or more.
        index: a capability index by model name, to correlate the propensity with.

    Raises:
        BadInput: there are fewer than two, or their ladders have different lengths.
    """
    if len(runs) < FEWEST:
        raise BadInput("compare: needs two runs or more")
    found = comparable(runs)
    return RunComparison(analyse(found.runs, index), tuple(found.notes))


def comparable(runs: "Sequence[Run]") -> ComparableRuns:
    """The runs without the tasks whose texts differ between them, and notes on other differences.

    Raises:
        BadInput: their ladders have different lengths.
    """
    notes = [note for one, other in combinations(runs, 2) for note in _notes(one, other)]
    changed = _changed([run.contents for run in runs])
    if changed:
        notes.append(
            f"{len(changed)} scenarios have other texts in one run than in another and are left out: "
            f"{', '.join(sorted(changed)[:_SHOWN])}{' ...' if len(changed) > _SHOWN else ''}"
        )
    kept = [run.without(changed) if changed else run for run in runs]
    notes += [
        f"{one.file} and {other.file} have no finished task in common, so they are not compared"
        for one, other in combinations(kept, 2)
        if not _finished(one) & _finished(other)
    ]
    return ComparableRuns(kept, notes)


def _notes(one: "Run", other: "Run") -> list[str]:
    if one.levels != other.levels:
        raise BadInput(
            f"{one.file} and {other.file}: have {one.levels} and {other.levels} pressure messages at most, "
            "so their scores are of different things; compare runs of one ladder"
        )
    same = {field: getattr(one.manifest, field) for field in _HARMLESS}
    found = differences(one.manifest, Manifest(**{**msgspec.structs.asdict(other.manifest), **same}))
    return [f"{one.file} and {other.file} differ in: {difference}" for difference in found]


def _changed(contents: Sequence[Mapping[str, str]]) -> set[str]:
    """Names under which different scenarios stand."""
    seen: dict[str, str] = {}
    return {
        name
        for ids in contents
        for name, identity in ids.items()
        if seen.setdefault(name, identity) != identity
    }


def _finished(run: "Run") -> set[tuple[str, str, str]]:
    return {
        (record.metadata.scenario, record.metadata.dimension, record.metadata.naming)
        for record in run.records
        if is_finished(record)
    }
