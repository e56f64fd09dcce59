"""What the commands of ``propensitybench experiment`` do and print."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import execution as playing
from propensitybench.cli import tables
from propensitybench.cli.execution import confirm, cost
from propensitybench.cli.output import tell
from propensitybench.cli.text import must_be_utf8, name_of, print_json, safe
from propensitybench.engine import Price
from propensitybench.errors import BadInput
from propensitybench.experiments.analysis import Analysis, ModelAnalysis
from propensitybench.experiments.design import Cell, read_experiment
from propensitybench.experiments.folder import Opened, analyse, budget_left, open_folder, register
from propensitybench.experiments.planning import ExperimentPlan, plan_experiment
from propensitybench.metrics import display
from propensitybench.pages.experiment import write_experiment_page
from propensitybench.runs import StoredRun
from propensitybench.runs.settings import Settings
from propensitybench.runs.start import Start
from propensitybench.runs.trust import check_trusted
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


def write_design(file: Path, models: Sequence[str]) -> None:
    """Writes a design to a new file."""
    must_be_utf8({"DESIGN": file})
    text = DESIGN.format(models=", ".join(msgspec.json.encode(model).decode() for model in models))
    try:
        with new_file(file) as out:
            out.write(text.encode())
    except FileExistsError as error:
        raise BadInput(f"{file}: exists already; give another name") from error
    except OSError as error:
        raise BadInput(f"{file}: cannot be written ({error.strerror or error})") from error
    print(f"wrote {safe(name_of(file))}; next: propensitybench experiment plan {safe(name_of(file))}")


def show_plan(file: Path, simulate: int, price: Price | None, *, as_json: bool) -> None:
    """Prints the plan of an experiment."""
    must_be_utf8({"DESIGN": file})
    plan = plan_experiment(read_experiment(file), simulate, price)
    if as_json:
        print_json(plan)
        return
    tables.show(_plan_table(plan))
    print(
        f"cells: {len(plan.cells)}, tasks: {plan.tasks:,}, calls: {plan.calls.low:,} to {plan.calls.high:,}"
    )
    if plan.usd is None:
        print("cost: unknown, the price table does not list every model; give --price IN,OUT")
    else:
        print(f"cost: {cost(plan.usd.low)} to {cost(plan.usd.high)}")
    for note in plan.notes:
        print(safe(note))
    for power in plan.power:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in power.claimed.items())
        print(f"{safe(power.agent)} ({power.experiments} simulated experiments) claims: {safe(shares)}")
    print(f"design: {plan.digest}")


def _plan_table(plan: ExperimentPlan) -> Table:
    table = Table(title="Cells", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("cell", overflow="fold")
    for title in ("tasks", "calls", "cost"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell in plan.cells:
        usd = "unknown" if cell.usd is None else f"{cost(cell.usd.low)} - {cost(cell.usd.high)}"
        table.add_row(safe(cell.name), f"{cell.tasks:,}", f"{cell.calls.low:,} - {cell.calls.high:,}", usd)
    return table


def play(file: Path, out: Path, settings: Settings, *, trust_endpoint: bool, as_json: bool) -> int:
    """Registers a design and plays its cells; the exit code."""
    must_be_utf8({"DESIGN": file, "--out": out})
    experiment = read_experiment(file)
    for model in experiment.design.models:
        check_trusted(
            name_of(file), model.name, model.options, (lambda _: True) if trust_endpoint else confirm
        )
    opened = register(experiment, file.parent, out)
    if opened.registration.digest != opened.experiment.digest:
        tell("note: the design has changed since it was registered; what was added is exploratory")
    for cell in opened.experiment.cells:
        code = _play_cell(opened, cell, settings)
        if code:
            tell("the experiment is not finished; the same command resumes it")
            return code
    analysis = analyse(opened)
    if as_json:
        print_json(analysis)
    else:
        _print(analysis)
    return 0


def _play_cell(opened: Opened, cell: Cell, settings: Settings) -> int:
    tell(f"cell {cell.name}")
    left = {**settings, **budget_left(opened, cell, settings)}
    start = Start(opened.path(cell), left, cell.spec, as_before=False)  # type: ignore[arg-type]
    result = playing.play(start)
    scores = StoredRun(start.path).score()
    playing.print_ending(start, result, scores)
    return playing.exit_code(result, scores)


def show_analysis(folder: Path, *, as_json: bool) -> None:
    """Prints the analysis of an experiment's folder."""
    must_be_utf8({"DIR": folder})
    analysis = analyse(open_folder(folder))
    if as_json:
        print_json(analysis)
    else:
        _print(analysis)


def write_report(folder: Path, out: Path) -> None:
    """Writes the page of an experiment's folder."""
    must_be_utf8({"DIR": folder, "--out": out})
    opened = open_folder(folder)
    print(safe(name_of(write_experiment_page(opened, analyse(opened), out))))


def _print(analysis: Analysis) -> None:
    print(f"{safe(analysis.question or analysis.name)} (registered design {analysis.digest})")
    for model in analysis.models:
        tables.show(_arms(model))
        if model.effects:
            tables.show(_effects(model))
        if model.odds:
            tables.show(_odds(model))
        for note in model.notes:
            print(f"note: {safe(note)}")
        print(safe(verdict(model)))


def verdict(model: ModelAnalysis) -> str:
    """What can be claimed about a model, in a sentence."""
    claims = [f"{one.cause} ({one.name})" for one in model.effects if one.claimed and one.cause]
    claims += [one.name for one in model.odds if one.claimed]
    if not claims:
        sums = [one.name for one in model.effects if one.claimed]
        if sums:
            return f"{model.model}: {', '.join(sums)} can be claimed, which sums up several causes."
        return f"{model.model}: no registered effect can be claimed."
    return f"{model.model}: what moves it is {', '.join(claims)}."


def _arms(model: ModelAnalysis) -> Table:
    table = Table(title=f"{model.model}: arms", title_justify="left", box=SIMPLE_HEAD)
    kinds = sorted({name for arm in model.arms for name in arm.conduct})
    table.add_column("arm", overflow="fold")
    for title in ("tasks", "misaligned (95 %)", *kinds):
        table.add_column(title, justify="right")
    for arm in model.arms:
        conduct = Counter(arm.conduct)
        cells = [str(conduct[kind]) for kind in kinds]
        table.add_row(arm.label, str(sum(arm.tasks.values())), tables.share(arm.propensity), *cells)
    return table


def _effects(model: ModelAnalysis) -> Table:
    table = Table(title=f"{model.model}: effects, in points", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("effect", no_wrap=True)
    table.add_column("difference", overflow="fold")
    for title in ("points (95 %)", "p", "adjusted", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for one in model.effects:
        table.add_row(
            one.name,
            one.what,
            display.points_with_interval(one.difference),
            display.p_value(one.p),
            display.p_value(one.p_adjusted),
            one.standing,
        )
    return table


def _odds(model: ModelAnalysis) -> Table:
    table = Table(title=f"{model.model}: factors", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("level", overflow="fold")
    table.add_column("against", no_wrap=True)
    for title in ("odds ratio (95 %)", "p", "adjusted", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for one in model.odds:
        marks = [one.standing, "between" if one.between else ""]
        table.add_row(
            safe(one.name),
            safe(one.reference),
            f"{one.ratio:.2f} ({one.ci95.low:.2f} to {one.ci95.high:.2f})",
            display.p_value(one.p),
            display.p_value(one.p_adjusted),
            " ".join(filter(None, marks)),
        )
    return table
