"""``propensitybench board``: runs of many models in one table, for any static host."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from propensitybench.cli import options
from propensitybench.cli.output import print_note
from propensitybench.cli.text import print_json
from propensitybench.pages.board.folder import board
from propensitybench.pages.board.standings import Board
from propensitybench.runs.read import runs_in


def command(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="A folder that does not exist yet, or that holds a board to add to.",
            show_default=False,
        ),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN", help="Run files, Inspect logs, or folders of them.", show_default=False
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove", metavar="MODEL", help="Take off a model, or one run by its id in board.json."
        ),
    ] = None,
    transcripts: Annotated[
        Literal["all", "failed", "none"],
        typer.Option("--transcripts", help="Tasks that get a transcript page; failed: ended misaligned."),
    ] = "none",
    figures: Annotated[
        bool, typer.Option("--figures/--no-figures", help="Whether reports have figures.")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    runs = runs_in(files) if files else []
    written = board(runs, out, remove=remove or [], transcripts=transcripts, figures=figures)
    if as_json:
        print_json(written.to_dict())
        return
    print(written)
    print(f"digest of the board (SHA-256 of its SHA256SUMS): {written.sha256}")
    if len(written.board.versions) > 1:
        print_note(
            f"note: these runs played different {_difference(written.board)}, so they have separate tables"
        )


def _difference(made: Board) -> str:
    samples = dict.fromkeys(section.rows[0].run.sampling for section in made.versions)
    return "samples" if len(samples) > 1 else "data or rules"
