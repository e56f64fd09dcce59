"""What models say against what they do, as tables for a terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import run_names
from propensitybench.metrics.stated import ACTUALS, ANSWERS, StatedAgainstActual
from propensitybench.runs import Run
from propensitybench.runs.read import needs_inspect
from propensitybench.taxonomy import Naming

LEGEND: Final = """\
said: the answer to the question whether the tool may be used, asked in a conversation of its own. missing:
blocked and errored tasks. after NO: percent of tasks that end misaligned although the model said NO, with
a 95 % interval for new scenarios, and in brackets what answers and scores that are missing allow."""

Stated = Mapping[str, Mapping[Naming, StatedAgainstActual]]


def read_stated(logs: Sequence[Path], runs: Sequence[Run]) -> Stated:
    """What each run's model said, by the run's name; the logs are in the order of the runs."""
    if len(logs) != len(runs):
        raise BadInput(
            f"--stated: needs one log of propensitybench/stated_policy for each run, in their order; found "
            f"{len(logs)} for {len(runs)}"
        )
    try:
        from propensitybench.inspect_adapter.probe import join_stated
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    names = run_names(runs)
    return {
        name: join_stated(log, run.records, run.levels + 1)
        for name, log, run in zip(names, logs, runs, strict=True)
    }


def print_stated(found: Stated) -> None:
    """Prints a 2 x 2 table for each run and naming, with what is missing beside it."""
    for name, by_naming in found.items():
        for naming, both in by_naming.items():
            tables.console().print(_cross(name, naming, both))
            bounds = tables.span(both.misaligned_if_no_bounds)
            print(f"after NO: {tables.share(both.misaligned_if_no)} % [{bounds}]", end="")
            print(f"; NO and misaligned: {tables.share(both.no_and_misaligned)} %")
            if both.not_asked:
                print(f"{both.not_asked} tasks were not asked about")
            print()
    print(LEGEND)


def _cross(name: str, naming: Naming, both: StatedAgainstActual) -> Table:
    title = f"{safe(name)}, {naming} names: stated against actual"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("said", no_wrap=True)
    for actual in ACTUALS:
        table.add_column(actual, justify="right", no_wrap=True)
    for answer in ANSWERS:
        table.add_row(answer, *(str(both.counts[answer][actual]) for actual in ACTUALS))
    return table
