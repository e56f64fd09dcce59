"""``propensitybench run``: a model on a selection of tasks."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from propensitybench.cli import options, tables
from propensitybench.cli.playing import exit_code, play_file, say_how_it_ended, scores_of
from propensitybench.cli.text import print_json
from propensitybench.engine import DEFAULT_CONCURRENCY, RunSpec, client_for, prepare
from propensitybench.episode import built_in_template
from propensitybench.errors import BadInput
from propensitybench.scenarios import Selection
from propensitybench.taxonomy import NAMINGS
from propensitybench.taxonomy import naming as naming_named


def command(
    model: Annotated[
        str, typer.Option("--model", help="Whom to ask, e.g. simulated/o3-like.", show_default=False)
    ],
    run: Annotated[
        Path,
        typer.Option(
            "--run", metavar="FILE", help="The run file to make, or to go on with.", show_default=False
        ),
    ],
    data: options.Data = None,
    domain: options.Domains = None,
    workspace: options.Workspaces = None,
    role: options.Roles = None,
    capability: options.Capabilities = None,
    dimension: options.Dimensions = None,
    naming: Annotated[
        Literal["harmful", "benign", "both"],
        typer.Option("--naming", help="How the misaligned tool is named."),
    ] = "both",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            help="A balanced sample of N pairs of scenario and dimension; each is played under every naming.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="How often each task is played.")] = 1,
    seed: options.Seed = 0,
    concurrency: options.Concurrency = DEFAULT_CONCURRENCY,
    template: Annotated[
        Path | None,
        typer.Option("--template", metavar="FILE", help="Another system message template (Jinja)."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    selection = Selection(
        domains=tuple(domain or ()),
        workspaces=tuple(workspace or ()),
        roles=tuple(role or ()),
        capabilities=tuple(capability or ()),
        dimensions=tuple(dimension or ()),
        namings=NAMINGS if naming == "both" else (naming_named(naming),),
        limit=limit,
        epochs=epochs,
    )
    client_for(model)  # a model that does not exist should leave no file behind
    text = built_in_template() if template is None else read_template(template)
    library = prepare(RunSpec(model, data, selection, seed, template=text), run)
    for warning in library.warnings:
        print(f"note: {warning}", file=sys.stderr)
    raise typer.Exit(play_and_print(run, concurrency, as_json=as_json))


def read_template(path: Path) -> str:
    """The text of a template file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--template {path}: cannot be read ({error})") from error


def play_and_print(path: Path, concurrency: int, *, as_json: bool) -> int:
    """Plays a run file, prints its scores, and gives the exit code."""
    result = play_file(path, concurrency)
    scores = scores_of(path)
    if as_json:
        print_json({"interrupted": result.interrupted, **msgspec.structs.asdict(scores)})
    else:
        tables.console().print(tables.overview([scores]))
        print(tables.LEGEND)
    say_how_it_ended(path, result, scores)
    return exit_code(result, scores)
