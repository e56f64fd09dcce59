"""Options that several commands share, written once."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="A data folder, in this project's layout or the published one; without it, the built-in data.",
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="FILE", help="A run file.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the order of tasks and of all chance in them.")]
Concurrency = Annotated[int, typer.Option("--concurrency", help="Episodes in flight.", min=1)]
Domains = Annotated[list[str] | None, typer.Option("--domain", help="Only this domain; may be repeated.")]
Workspaces = Annotated[
    list[str] | None, typer.Option("--workspace", help="Only this workspace; may be repeated.")
]
Roles = Annotated[list[str] | None, typer.Option("--role", help="Only this role; may be repeated.")]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capability", help="Only this capability; may be repeated.")
]
Dimensions = Annotated[
    list[str] | None, typer.Option("--dimension", help="Only this pressure dimension; may be repeated.")
]
