"""``propensitybench experiment``: plan, run and analyse an experiment."""

from pathlib import Path
from typing import Annotated

import typer

from propensitybench.cli import options
from propensitybench.runs.settings import Settings

command = typer.Typer(no_args_is_help=True)

File = Annotated[
    Path, typer.Argument(metavar="DESIGN", help="The experiment's design, a TOML file.", show_default=False)
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The experiment's folder.", show_default=False)]


@command.command()
def new(
    file: Annotated[
        Path, typer.Argument(metavar="DESIGN", help="A file that does not exist yet.", show_default=False)
    ],
    model: Annotated[list[str] | None, typer.Option("--model", help="A model; may be repeated.")] = None,
) -> None:
    """Write a design that asks whether it is the pressure."""
    from propensitybench.cli.experimenting import write_design

    write_design(file, model or ["simulated/moved-by-pressure"])


@command.command()
@options.takes("price")
def plan(
    file: File,
    settings: Settings,
    simulate: Annotated[
        int,
        typer.Option(
            "--simulate", metavar="N", min=0, help="Experiments to simulate for the power of each effect."
        ),
    ] = 20,
    as_json: options.AsJson = False,
) -> None:
    """Print tasks, calls, cost and power; send nothing."""
    from propensitybench.cli.experimenting import show_plan
    from propensitybench.runs.resolve import read_execution

    show_plan(file, simulate, read_execution(settings).price, as_json=as_json)


@command.command()
@options.takes(
    *options.LIMITS,
    "preflight",
    budget_usd="Stop at this cost of all cells together, in US dollars.",
    max_tokens_total="Stop after this many tokens of all cells together.",
)
def run(
    file: File,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="The experiment's folder; resumed if it exists.", show_default=False
        ),
    ],
    settings: Settings,
    trust_endpoint: options.TrustEndpoint = False,
    as_json: options.AsJson = False,
) -> None:
    """Register the design and play its cells, one run file each; resumes what is there."""
    from propensitybench.cli.experimenting import play

    raise typer.Exit(play(file, out, settings, trust_endpoint=trust_endpoint, as_json=as_json))


@command.command()
def analyse(folder: Folder, as_json: options.AsJson = False) -> None:
    """Print effects with intervals and adjusted p-values, odds ratios and closing reports."""
    from propensitybench.cli.experimenting import show_analysis

    show_analysis(folder, as_json=as_json)


@command.command()
def report(
    folder: Folder,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="A folder for the page and its figure.", show_default=False
        ),
    ],
) -> None:
    """Write a page with a figure and all numbers."""
    from propensitybench.cli.experimenting import write_report

    write_report(folder, out)
