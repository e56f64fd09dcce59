"""``propensitybench demo``: simulated models on the built-in data."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options


def command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the run files.")] = Path(
        "propensitybench-demo"
    ),
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    from propensitybench.cli.demonstration import demonstrate

    raise typer.Exit(demonstrate(out, seed, as_json=as_json))
