"""Which runs can be compared, and the comparison."""

import os
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.files import MIB, read_file
from propensitybench.metrics.analysis import Analysis, analyse, run_names, tables_of
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.regression import Regression, regression
from propensitybench.metrics.stated import StatedAgainstActual, stated_against_actual
from propensitybench.metrics.table import is_finished
from propensitybench.presentation.comparison import pair_rows, pairs
from propensitybench.presentation.words import remarks
from propensitybench.runs.base import Run
from propensitybench.runs.read import Runs, read_stated, runs_of, several
from propensitybench.store import Manifest, differences
from propensitybench.tabular import Tabular
from propensitybench.taxonomy import Naming

MIN_RUNS: Final = 2
MAX_INDEX: Final = 16 * MIB
# Two runs that differ only in these were played by the same rules and texts.
HARMLESS: Final = (
    "model",
    "options",
    "selections",
    "tasks",
    "stopping_rule",
    "gate",
    "data_digest",
    "seed",
)
_SHOWN: Final = 5


class ComparableRuns(NamedTuple):
    """Runs that can be compared.

    Attributes:
        runs: in the order given, without the tasks whose texts differ between them.
        notes: other differences that a reader has to know of.
    """

    runs: list[Run]
    notes: list[str]


class RunComparison(msgspec.Struct, Tabular, frozen=True):
    """Runs compared on the tasks that they share; as a table, a row for each pair of runs and naming.

    Attributes:
        analysis: every number of the comparison.
        notes: differences between the runs that a reader has to know of.
        regression: over these runs; None if it was not asked for.
        stated: what each run's model said of its tasks against what it did, by the run's name and naming;
            None without logs of that.
    """

    analysis: Analysis
    notes: tuple[str, ...]
    regression: Regression | None = None
    stated: dict[str, dict[Naming, StatedAgainstActual]] | None = None

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """One row for each pair of runs and naming; differences are shares, not percentage points."""
        return pair_rows(self.analysis)

    def to_dict(self) -> dict[str, Any]:
        """Everything that ``propensitybench compare`` prints with ``--json``."""
        more = {"regression": self.regression, "stated": self.stated}
        more = {name: value for name, value in more.items() if value is not None}
        shown = {"notes": self.notes, **msgspec.structs.asdict(self.analysis), **more}
        found: dict[str, Any] = msgspec.to_builtins(shown, str_keys=True)
        return found

    def _repr_html_(self) -> str:
        return pairs(self.analysis).html() + "".join(f"<p>{escape(line)}</p>" for line in self._remarks())

    def __repr__(self) -> str:
        return "\n".join([pairs(self.analysis).text(), *self._remarks()])

    def _remarks(self) -> list[str]:
        notes = [f"note: {note}" for note in self.notes]
        return notes + remarks([run.scores for run in self.analysis.runs])


def compare(
    *runs: Runs,
    index: Mapping[str, IndexEntry] | str | os.PathLike[str] | None = None,
    regress: bool = False,
    stated: Sequence[str | os.PathLike[str]] = (),
) -> RunComparison:
    """Compares runs on the tasks that they share: paired differences, p-values, ranks.

    Args:
        runs: two or more, or their files or folders, one by one or in a list; one is enough with ``stated``.
        index: a capability index by model name, to correlate the propensity with, or a JSON file of one.
        regress: whether to fit a regression over the runs.
        stated: logs of the Inspect task ``stated_policy``, one or more for each model.

    Raises:
        BadInput: there are fewer than two runs, they differ in the number of levels, or a file cannot be
            used.
    """
    given = runs_of([run for one in runs for run in several(one)])
    if len(given) < MIN_RUNS and not stated:
        raise BadInput("compare: needs two runs or more; use `score` for one")
    entries = index if index is None or isinstance(index, Mapping) else read_index(Path(index))
    found = comparable(given)
    return RunComparison(
        analyse(found.runs, entries),
        tuple(found.notes),
        regression(tables_of(found.runs)) if regress else None,
        _stated([Path(log) for log in stated], found.runs) if stated else None,
    )


def read_index(path: Path) -> dict[str, IndexEntry]:
    """The capability index in a file; raises `BadInput` if it cannot be read."""
    try:
        content = read_file(path, f"--index {path}", MAX_INDEX)
        return msgspec.json.decode(content, type=dict[str, IndexEntry])
    except RecursionError as error:
        raise BadInput(f"--index {path}: is nested too deeply") from error
    except msgspec.DecodeError as error:
        raise BadInput(
            f"--index {path}: {error}; each model needs value, source and date, and may have a family"
        ) from error


def _stated(logs: Sequence[Path], runs: Sequence[Run]) -> dict[str, dict[Naming, StatedAgainstActual]]:
    found = {}
    for name, run, answers in zip(run_names(runs), runs, read_stated(logs, runs), strict=True):
        if answers is None:
            raise BadInput(f"--stated: none of the logs is of {run.model}, the model of {run.file}")
        found[name] = stated_against_actual(run.records, answers, run.levels + 1)
    return found


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
    notes = other_seed(one, other) or _few_in_common(one, other)
    return notes + [f"{one.file} and {other.file} differ in: {what}" for what in found]


def other_seed(one: Run, other: Run) -> list[str]:
    """What follows from different seeds, as one note; empty if they are equal."""
    first, second = one.manifest.seed, other.manifest.seed
    if first == second:
        return []
    begun = [{record.metadata.task for record in run.records} for run in (one, other)]
    shared = _shared(len(begun[0] & begun[1]))
    return [
        f"{one.file} and {other.file} have different seeds ({first} and {second}), so their tasks were drawn "
        f"and played with other random numbers and storylines: they share {shared}, "
        "which makes the comparison less precise"
    ]


def _few_in_common(one: Run, other: Run) -> list[str]:
    """That most tasks of a run are not compared, as one note; empty if at least half of either's are."""
    first, second = ({record.metadata.task for record in run.records} for run in (one, other))
    common = len(first & second)
    if not common or 2 * common >= max(len(first), len(second)):
        return []
    return [
        f"{one.file} and {other.file}: share {_shared(common)} (of {len(first):,} and {len(second):,}); "
        "only these are compared; play both with the same --limit and filters"
    ]


def _shared(count: int) -> str:
    return "1 begun task" if count == 1 else f"{count:,} begun tasks"


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
