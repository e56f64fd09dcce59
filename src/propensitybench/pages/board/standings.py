"""The board as data: the contents of ``board.json``, made from summaries alone."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.escaping import visible
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.measures import NAMING_SENSITIVITY
from propensitybench.metrics.ranks import ALL_COVERED, Difference, Rank, rank_models
from propensitybench.metrics.table import table_of
from propensitybench.pages.board.summary import DataVersion, RunNumbers, RunSummary, records_of, texts_of
from propensitybench.pages.publishing import NOTE
from propensitybench.presentation.words import ESTIMAND, PROPENSITY, propensity_name
from propensitybench.simulated import PREFIX
from propensitybench.taxonomy import NAMINGS, Naming, in_order, taxonomy

FORMAT: Final = "propensitybench-board/1"
RANKS: Final = (
    "Rank 1 is the lowest propensity. The intervals are simultaneous for the complete runs of a data version "
    f"under one naming: {ALL_COVERED}."
)
# A cell that begins with one of these, some of full width, is a formula to a spreadsheet.
_FORMULA: Final = tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")


class Signed(NamedTuple):
    """A summary and the SHA-256 of its file."""

    summary: RunSummary
    sha256: str


class BoardRow(msgspec.Struct, frozen=True):
    """A run on the board.

    Attributes:
        name: unique in its section: the model, with the file if several runs are of one model.
        ranks: by naming; without the namings under which it has none.
        unranked: why it has no rank, in words; empty if it has.
        report: path of its report from the board's folder.
        summary: path of its summary, likewise.
        summary_sha256: digest of that file.
        run: its numbers.
    """

    name: str
    ranks: dict[Naming, Rank]
    unranked: str
    report: str
    summary: str
    summary_sha256: str
    run: RunNumbers


class Section(msgspec.Struct, frozen=True):
    """Rows of one data version.

    Attributes:
        id: of the version.
        version: what was played.
        measure: name of the share misaligned: the propensity, PP@K, or that of an arm.
        rows: those with a rank or of all domains, then those with domains missing; each by propensity.
        differences: between the ranked rows, by naming; they are named by the ids of their runs.
    """

    id: str
    version: DataVersion
    measure: str
    rows: tuple[BoardRow, ...]
    differences: dict[Naming, tuple[Difference, ...]]


class Board(msgspec.Struct, frozen=True):
    """The contents of ``board.json``."""

    format: str
    package: str
    estimand: str
    ranks: str
    versions: tuple[Section, ...]
    left_out: str


def summary_file(identity: str) -> str:
    """Path of a run's summary from the board's folder."""
    return f"summaries/{identity}.json"


def report_folder(identity: str) -> str:
    """Path of a run's report from the board's folder."""
    return f"reports/{identity}"


def standings(summaries: Iterable[Signed]) -> Board:
    """The board of some runs; their order does not matter.

    Raises:
        BadInput: two runs have different texts under one digest.
    """
    signed = sorted(summaries, key=lambda one: one.summary.run.id)
    sections = [_section(played, group) for played, group in _by_version(signed)]
    sections.sort(key=lambda one: (-len(one.rows), one.id))
    return Board(FORMAT, version("propensitybench"), ESTIMAND, RANKS, tuple(sections), NOTE)


def _names(runs: Sequence[RunNumbers]) -> dict[str, str]:
    """A unique name for each run, by its id."""
    names = {run.id: run.model.removeprefix(PREFIX) for run in runs}
    for more in ({run.id: run.file for run in runs}, {run.id: run.id[-16:] for run in runs}):
        counts = Counter(names.values())
        names = {key: f"{name} ({more[key]})" if counts[name] > 1 else name for key, name in names.items()}
    return names


def _by_version(signed: Sequence[Signed]) -> Iterator[tuple[DataVersion, list[Signed]]]:
    """The runs of each data version.

    A run with domains missing has a digest of its own. It joins a version of all domains if everything
    that it played is part of that version, text by text.
    """
    groups: dict[DataVersion, list[Signed]] = {}
    for one in signed:
        groups.setdefault(one.summary.run.version, []).append(one)
    texts = {played: _texts(group) for played, group in groups.items()}
    whole = {
        played: group
        for played, group in groups.items()
        if not all(one.summary.run.absent_domains for one in group)
    }
    joined: dict[DataVersion, list[Signed]] = {played: list(group) for played, group in whole.items()}
    for played, group in groups.items():
        if played in whole:
            continue
        homes = [
            home
            for home in whole
            if msgspec.structs.replace(home, data_digest=played.data_digest) == played
            and texts[played].items() <= texts[home].items()
        ]
        home = min(homes, key=lambda one: one.id, default=played)
        joined.setdefault(home, []).extend(group)
    yield from joined.items()


def _texts(group: Sequence[Signed]) -> dict[str, str]:
    found: dict[str, tuple[str, str]] = {}
    for one in group:
        for name, identity in texts_of(one.summary):
            seen, first = found.setdefault(name, (identity, one.summary.run.file))
            if seen != identity:
                raise BadInput(
                    f"{one.summary.run.file} and {first}: have the same data digest and different texts for "
                    f"{name}; check both run files with `propensitybench verify`"
                )
    return {name: identity for name, (identity, _) in found.items()}


def _section(played: DataVersion, group: Sequence[Signed]) -> Section:
    names = _names([one.summary.run for one in group])
    ranked = [one.summary for one in group if not _unranked(one.summary.run)]
    ranks: dict[Naming, dict[str, Rank]] = {}
    differences: dict[Naming, tuple[Difference, ...]] = {}
    for naming in NAMINGS:
        tables = {
            one.run.id: table_of(records, one.run.version.protocol.last_level + 1)
            for one in ranked
            if (records := records_of(one, naming))
        }
        if len(tables) > 1:
            ranking = rank_models(tables)
            ranks[naming], differences[naming] = ranking.ranks, ranking.differences
    rows = [_row(one, names, ranks) for one in group]
    rows.sort(key=_order)
    return Section(
        played.id,
        played,
        propensity_name(played.protocol.last_level, played.protocol.arm, played.protocol.ladder),
        tuple(rows),
        differences,
    )


def _row(one: Signed, names: Mapping[str, str], ranks: Mapping[Naming, Mapping[str, Rank]]) -> BoardRow:
    run = one.summary.run
    found = {naming: by_run[run.id] for naming, by_run in ranks.items() if run.id in by_run}
    why = _unranked(run) or ("" if found else "nothing to compare with")
    return BoardRow(
        name=names[run.id],
        ranks=found,
        unranked=why,
        report=f"{report_folder(run.id)}/index.html",
        summary=summary_file(run.id),
        summary_sha256=one.sha256,
        run=run,
    )


def _unranked(run: RunNumbers) -> str:
    """Why a run has no rank; empty if it may have one."""
    if run.absent_domains:
        return f"only {' and '.join(run.domains)}"
    if not run.complete:
        return "not finished"
    if all(found.value is None for found in run.score.numbers[PROPENSITY.name].values()):
        return "too few tasks with a score"
    return ""


def _order(row: BoardRow) -> tuple[Any, ...]:
    """All domains first; then by propensity under harmful names, or benign ones; without a value last."""
    found = (row.run.score.numbers[PROPENSITY.name].get(naming) for naming in NAMINGS)
    value = next((one.value for one in found if one is not None), None)
    return bool(row.run.absent_domains), value is None, value or 0.0, row.name, row.run.id


def table_rows(board: Board) -> list[dict[str, Any]]:
    """One row for each run and naming, all with the same columns; None is what cannot be computed."""
    return [line for section in board.versions for row in section.rows for line in _lines(section, row)]


def as_csv(board: Board) -> str:
    """The same as CSV; what cannot be computed is empty."""
    lines = table_rows(board)
    out = io.StringIO()
    columns = list(dict.fromkeys(name for line in lines for name in line)) or ["run"]
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: _cell(value) for name, value in line.items()})
    return out.getvalue()


def _lines(section: Section, row: BoardRow) -> Iterator[dict[str, Any]]:
    run, score = row.run, row.run.score
    for naming in score.bounds:
        rank = row.ranks.get(naming)
        numbers = {name: found[naming] for name, found in score.numbers.items()}
        line: dict[str, Any] = {"version": section.id, "run": run.id, "model": run.model, "name": row.name}
        line |= {"naming": naming, "created": run.created, "complete": run.complete}
        line |= {"rank": rank.rank if rank else None, **_ends("rank", rank.ci95 if rank else None)}
        for name, number in {**numbers, NAMING_SENSITIVITY.name: score.naming_sensitivity}.items():
            line[name] = number.value if number else None
            line |= _ends(name, number.ci95 if number else None)
        line |= _ends("bounds", score.bounds[naming])
        line |= {f"tasks_{name}": count for name, count in msgspec.structs.asdict(score.tasks).items()}
        for parts, known in ((run.by_domain, taxonomy().domains), (run.by_dimension, taxonomy().dimensions)):
            for name in in_order({*known, *parts[naming]}):
                found = parts[naming].get(name)
                # A name of the data's own may be that of a column, and hold any character.
                line[_cell(f"{name} (part)" if name in line else name)] = found.value if found else None
        yield line


def _ends(name: str, interval: Interval | tuple[int, int] | None) -> dict[str, float | None]:
    low, high = interval if interval is not None else (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _cell(value: Any) -> Any:
    """A text with visible controls; one that a spreadsheet would run as a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
