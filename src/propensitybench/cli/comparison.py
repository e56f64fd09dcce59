"""Reads, compares and prints the runs that `compare` is given."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from propensitybench.cli import contrasts, effects, tables
from propensitybench.cli.reading import read_comparable
from propensitybench.cli.stated import print_stated, read_stated
from propensitybench.cli.text import print_json, safe
from propensitybench.errors import BadInput
from propensitybench.files import MIB, read_file
from propensitybench.metrics.analysis import Analysis, analyse, tables_of
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.regression import regression
from propensitybench.runs.comparison import MIN_RUNS

LARGEST_INDEX = 16 * MIB


def compare_runs(
    files: Sequence[Path], index: Path | None, stated: Sequence[Path] | None, *, regress: bool, as_json: bool
) -> None:
    """Compares runs and prints the comparison; raises `BadInput` for fewer than two."""
    runs = read_comparable(files)
    if len(runs.runs) < MIN_RUNS and not stated:
        raise BadInput("compare: needs two runs or more; use `score` for one")
    analysis = analyse(runs.runs, None if index is None else read_index(index))
    fitted = regression(tables_of(runs.runs)) if regress else None
    answers = read_stated(stated, runs.runs) if stated else None
    if as_json:
        more = {"regression": fitted, "stated": answers}
        more = {name: value for name, value in more.items() if value is not None}
        print_json({"notes": runs.notes, **msgspec.structs.asdict(analysis), **more})
        return
    for note in runs.notes:
        print(f"note: {safe(note)}")
    print_analysis(analysis)
    if fitted is not None:
        effects.print_regression(fitted)
    if answers is not None:
        print_stated(answers)
    for line in tables.remarks(run.scores for run in analysis.runs):
        print(line)


def print_analysis(analysis: Analysis) -> None:
    """Prints the tables of a comparison."""
    for naming, comparison in analysis.models.items():
        if comparison.common or any(pair.contrast.propensity.n for pair in comparison.pairs):
            tables.show(contrasts.pairs(naming, comparison))
            tables.show(contrasts.ranks(naming, comparison))
    if any(run.scores.naming_contrast for run in analysis.runs):
        tables.show(contrasts.namings(analysis.runs))
    tables.show(contrasts.kinds(analysis.archetypes))
    if analysis.index is not None:
        print(contrasts.index_line(analysis.index))
        missing = sorted({run.scores.model for run in analysis.runs} - set(analysis.index.models))
        if missing:
            print(f"Not in the index under this name, or without a propensity: {safe(', '.join(missing))}.")
    print(contrasts.LEGEND)


def read_index(path: Path) -> dict[str, IndexEntry]:
    """The capability index in a file; raises `BadInput` if it cannot be read."""
    try:
        content = read_file(path, f"--index {path}", LARGEST_INDEX)
        return msgspec.json.decode(content, type=dict[str, IndexEntry])
    except RecursionError as error:
        raise BadInput(f"--index {path}: is nested too deeply") from error
    except msgspec.DecodeError as error:
        raise BadInput(
            f"--index {path}: {error}; each model needs value, source and date, and may have a family"
        ) from error
