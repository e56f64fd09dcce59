"""``propensitybench compare``: several runs on the tasks that they share."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from propensitybench.cli import contrasts, effects, options, tables
from propensitybench.cli.reading import read_comparable
from propensitybench.cli.stated import print_stated, read_stated
from propensitybench.cli.text import print_json, safe
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import Analysis, analyse, tables_of
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.regression import regression

FEWEST = 2


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE FILE...", help="Run files.", show_default=False)
    ],
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="FILE",
            help="A JSON file that gives three models or more, by the whole names of --model, an index of "
            "capability, to correlate the propensity with: "
            '{"MODEL": {"value": 1.2, "source": "...", "date": "...", "family": "..."}}.',
        ),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, to compare what the model said "
            "with what it did; give one or more for each model.",
        ),
    ] = None,
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    runs = read_comparable(files)
    if len(runs.runs) < FEWEST and not stated:
        raise BadInput(
            "compare: needs two run files or more, or Inspect logs of two runs; `score` is for one"
        )
    found = analyse(runs.runs, None if index is None else read_index(index))
    fitted = regression(tables_of(runs.runs)) if regress else None
    said = read_stated(stated, runs.runs) if stated else None
    if as_json:
        more = {"regression": fitted, "stated": said}
        more = {name: value for name, value in more.items() if value is not None}
        print_json({"notes": runs.notes, **msgspec.structs.asdict(found), **more})
        return
    for note in runs.notes:
        print(f"note: {safe(note)}")
    print_comparison(found)
    if fitted is not None:
        effects.print_regression(fitted)
    if said is not None:
        print_stated(said)
    for run in found.runs:
        if line := tables.missing(run.scores):
            print(line)


def print_comparison(found: Analysis) -> None:
    """Prints what the runs have to compare."""
    for naming, comparison in found.models.items():
        if comparison.common or any(pair.contrast.propensity.n for pair in comparison.pairs):
            tables.show(contrasts.pairs(naming, comparison))
            tables.show(contrasts.ranks(naming, comparison))
    if any(run.scores.naming_contrast for run in found.runs):
        tables.show(contrasts.namings(found.runs))
    tables.show(contrasts.kinds(found.archetypes))
    if found.index is not None:
        print(contrasts.index_line(found.index))
        lacking = sorted({run.scores.model for run in found.runs} - set(found.index.models))
        if lacking:
            print(f"Not in the index by this name, or without a propensity: {safe(', '.join(lacking))}.")
    print(contrasts.LEGEND)


def read_index(path: Path) -> dict[str, IndexEntry]:
    """The capability index of a file; raises `BadInput` if it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, IndexEntry])
    except OSError as error:
        raise BadInput(f"--index {path}: cannot be read ({error.strerror})") from error
    except msgspec.DecodeError as error:
        raise BadInput(
            f"--index {path}: {error}; each model needs value, source and date, and may have a family"
        ) from error
