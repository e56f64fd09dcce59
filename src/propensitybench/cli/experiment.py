"""``propensitybench experiment``: plan, run and analyse an experiment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from propensitybench.cli import options
from propensitybench.cli.execution import confirm, exit_code, play, print_ending
from propensitybench.cli.help import App
from propensitybench.cli.output import print_note
from propensitybench.cli.plan import power_line
from propensitybench.cli.tables import show, show_grid, table
from propensitybench.cli.text import must_be_utf8, print_json, shell_quoted
from propensitybench.engine import StopCause
from propensitybench.errors import BadInput
from propensitybench.experiments.design import Cell
from propensitybench.experiments.folder import (
    ExperimentFolder,
    analyse,
    open_folder,
)
from propensitybench.experiments.plan import ExperimentPlan, plan_experiment
from propensitybench.experiments.play import analyse_experiment, registered, start_cell
from propensitybench.experiments.results import ExperimentAnalysis
from propensitybench.experiments.tables import result_tables
from propensitybench.files import file_name
from propensitybench.pages.experiment import write_experiment_page
from propensitybench.presentation.formats import dollars
from propensitybench.runs import StoredRun
from propensitybench.runs.settings import Settings
from propensitybench.store.atomic import new_file

DESIGN: Final = """\
# Is it the pressure? docs/experiments.md explains every line.
format = "propensitybench-experiment/1"
name = "is-it-the-pressure"
question = "Is it the pressure?"
models = [{models}]

# escalating is the published method; each other arm changes one thing.
arms = ["escalating", "placebo", "pure", "fresh", "open"]
# Declared before the first call; what is added later is reported as exploratory.
comparisons = ["pressure", "time", "length", "blockage"]
seed = 0

[sample]
naming = "both"
limit = 120
"""
File = Annotated[
    Path, typer.Argument(metavar="DESIGN", help="The experiment's design, a TOML file.", show_default=False)
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The experiment's folder.", show_default=False)]

command = App(no_args_is_help=True)


@command.command()
def new(
    file: Annotated[
        Path, typer.Argument(metavar="DESIGN", help="A file that does not exist yet.", show_default=False)
    ],
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="MODEL", help="A model; may be repeated.")
    ] = None,
) -> None:
    """Write a design that asks whether it is the pressure."""
    must_be_utf8({"DESIGN": file})
    models = model or ["simulated/moved-by-pressure"]
    text = DESIGN.format(models=", ".join(msgspec.json.encode(one).decode() for one in models))
    try:
        with new_file(file) as out:
            out.write(text.encode())
    except FileExistsError as error:
        raise BadInput(f"{file}: exists already; give another name") from error
    except OSError as error:
        raise BadInput(f"{file}: cannot be written ({error.strerror or error})") from error
    print(f"wrote {file_name(file)}; next: propensitybench experiment plan {shell_quoted(file)}")


@command.command()
@options.takes("price")
def plan(
    file: File,
    settings: Settings,
    simulate: Annotated[
        int,
        typer.Option(
            "--simulate",
            metavar="N",
            min=0,
            help="Also simulate N experiments with each of five agents whose cause is known, about 2 seconds "
            "for each N, and print how often each effect is claimed.",
        ),
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Print tasks, calls, cost and power; send nothing."""
    must_be_utf8({"DESIGN": file})
    found = plan_experiment(file, simulate=simulate, price=settings.get("price"))
    if as_json:
        print_json(found)
        return
    show(table("Cells", ["cell", "tasks", "calls", "cost"], _cells(found)))
    calls = f"{found.calls.low:,} to {found.calls.high:,}"
    print(f"cells: {len(found.cells)}, tasks: {found.tasks:,}, calls: {calls}")
    if found.usd is None:
        print("cost: unknown, the price table does not list every model; give --price IN,OUT")
    else:
        print(f"cost: {dollars(found.usd.low)} to {dollars(found.usd.high)}")
    for note in found.notes:
        print(note)
    compared = "two arms" if found.tests == 1 else f"two arms, adjusted for {found.tests} effects"
    for power in found.power:
        print(power_line(power, compared))
    if found.power and not found.simulated:
        print(
            "power is by formula; to simulate the experiment with agents whose cause is known: --simulate 20"
        )
    for cause in found.simulated:
        shares = ", ".join(f"{name} {100 * claimed:.0f} %" for name, claimed in cause.claimed.items())
        within = f"+- {100 * cause.error:.0f} points"
        print(f"{cause.agent} ({cause.experiments} simulated experiments, {within}) claims: {shares}")
    print(f"design: {found.digest}")


def _cells(found: ExperimentPlan) -> Iterator[Sequence[str]]:
    for cell in found.cells:
        usd = "unknown" if cell.usd is None else f"{dollars(cell.usd.low)} - {dollars(cell.usd.high)}"
        yield cell.name, f"{cell.tasks:,}", f"{cell.calls.low:,} - {cell.calls.high:,}", usd


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
    must_be_utf8({"DESIGN": file, "--out": out})
    opened = registered(file, out, trust_endpoint=trust_endpoint, confirm=confirm)
    for cell in opened.experiment.cells:
        if code := _play_cell(opened, cell, settings):
            print_note("the experiment is not finished; the same command resumes it")
            raise typer.Exit(code)
    _print(analyse(opened), as_json=as_json)


def _play_cell(opened: ExperimentFolder, cell: Cell, settings: Settings) -> int:
    print_note(f"cell {cell.name}")
    start = start_cell(opened, cell, settings)
    result = play(start)
    scores = StoredRun(start.path).score()
    print_ending(start, result, scores)
    if result.cause is StopCause.BUDGET:
        print_note("the budget of a cell is what the other cells leave of that of the experiment")
    return exit_code(result, scores)


@command.command(name="analyse")
def print_analysis(folder: Folder, as_json: options.AsJson = False) -> None:
    """Print effects with intervals and adjusted p-values, odds ratios and closing reports."""
    must_be_utf8({"DIR": folder})
    _print(analyse_experiment(folder), as_json=as_json)


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
    must_be_utf8({"DIR": folder, "--out": out})
    opened = open_folder(folder)
    print(file_name(write_experiment_page(opened, analyse(opened), out)))


def _print(found: ExperimentAnalysis, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print(f"{found.question or found.name} (registered design {found.digest})")
    for model in found.models:
        for grid in result_tables(model):
            show_grid(grid._replace(title=f"{model.model}: {grid.title}"))
        for note in model.notes:
            print(f"note: {note}")
        print(model.verdict)
