"""``propensitybench findings``: the signs of propensity, tested on models."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.cli.tables import show, table
from propensitybench.cli.text import must_be_utf8, print_json
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.pages.findings import write_findings
from propensitybench.presentation.formats import counted
from propensitybench.signs import Findings, ModelFindings, Sign, findings, words


def command(
    files: options.RunPaths,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Also write a page and findings.json into this folder."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="FILE", help="JSON file with a capability index, as for `compare`."),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, used instead of the answers to "
            "`probe`; may be repeated.",
        ),
    ] = None,
    relevant: Annotated[
        list[str] | None,
        typer.Option(
            "--relevant",
            metavar="SIGN=EFFECT",
            help="Another smallest effect of interest, as a share or correlation, e.g. naming=0.1; may be "
            "repeated. The change is shown beside the verdict.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    must_be_utf8({"--out": out})
    effects = _read_effects(relevant or ())
    found = findings(files, index=index, stated=stated or (), relevant=effects)
    if out is not None:
        print_note(f"written: {file_name(write_findings(found, out))}")
    if as_json:
        print_json(found)
        return
    for note in found.notes:
        print(f"note: {note}")
    for model in found.models:
        _print_model(found.declared, model)
    if len(found.models) > 1:
        _print_matrix(found)
    print(words.LEGEND)


def _read_effects(given: Sequence[str]) -> dict[str, float]:
    """The smallest effects in ``SIGN=EFFECT``; raises `BadInput` if one is not of that form."""
    found: dict[str, float] = {}
    for one in given:
        name, _, value = one.partition("=")
        if name in found:
            raise BadInput(f"--relevant {name}: is given twice")
        try:
            found[name] = float(value)
        except ValueError as error:
            raise BadInput(f"--relevant {one}: must be SIGN=EFFECT, for example naming=0.1") from error
    return found


def _print_model(signs: Sequence[Sign], model: ModelFindings) -> None:
    title = f"{model.name}: {counted(model.tasks, 'task')}, {model.naming} names"
    if model.unended:
        title += f", preliminary ({model.unended:,} not ended)"
    rows = [words.sign_row(*both) for both in zip(signs, model.findings, strict=True)]
    changed = [sign for sign in signs if sign.changed_from is not None]
    starred = {sign.sign for sign in changed}
    cells = (
        (
            f"{row.number} {row.title}",
            f"{words.MARKS[row.verdict]} {row.verdict}",
            row.effect,
            row.interval,
            row.threshold + ("*" if row.sign in starred else ""),
        )
        for row in rows
    )
    columns = ["sign", "verdict", "effect", "interval", words.SMALLEST.lower()]
    show(table(title, columns, cells, justify="left"))
    for sign in changed:
        was = words.effect_text(sign.changed_from, sign)
        print(f"* {sign.sign}: the smallest effect of interest was declared as {was}")
    for line in dict.fromkeys(_remarks(rows)):
        print(line)


def _remarks(rows: Sequence[words.SignRow]) -> Iterator[str]:
    """How many tasks would be enough, what is missing, and the command that supplies it."""
    for row in rows:
        if row.remark:
            yield f"{row.number} {row.remark}"
        if row.hint:
            yield f"  {row.hint}"


def _print_matrix(found: Findings) -> None:
    rows = (
        [model.name, *(words.MARKS[one.over_models or one.verdict] for one in model.findings)]
        for model in found.models
    )
    columns = ["model", *(f"{sign.number}" for sign in found.declared)]
    matrix = table("Signs by model", columns, rows, justify="center")
    matrix.caption = ", ".join(f"{mark} {verdict}" for verdict, mark in words.MARKS.items())
    show(matrix)
    print("Verdicts in the matrix are adjusted over the signs of all models.")
