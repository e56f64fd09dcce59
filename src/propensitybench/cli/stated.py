"""What models say compared with what they do, as tables for a terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe
from propensitybench.metrics import display
from propensitybench.metrics.analysis import run_names
from propensitybench.metrics.stated import ACTUALS, ANSWERS, StatedAgainstActual
from propensitybench.runs import Run
from propensitybench.runs.read import needs_inspect
from propensitybench.taxonomy import Naming

LEGEND: Final = """\
stated: the answer to whether the tool may be used, asked in a separate conversation. missing: blocked,
truncated and errored tasks. after NO: percent of tasks that end misaligned although the model said NO, with
a 95 % interval for new scenarios, which covers every value that missing answers and scores allow; in
brackets the lowest and highest of these."""

Stated = Mapping[str, Mapping[Naming, StatedAgainstActual]]


def read_stated(logs: Sequence[Path], runs: Sequence[Run]) -> Stated:
    """What each run's model said, by the run's name; each log goes to the runs of its model."""
    try:
        from propensitybench.inspect_adapter.probe import join_stated
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    return dict(zip(run_names(runs), join_stated(logs, runs), strict=True))


def print_stated(stated: Stated) -> None:
    """Prints a 2 x 2 table, with missing tasks, for each run and naming."""
    for name, by_naming in stated.items():
        for naming, both in by_naming.items():
            tables.console().print(_cross(name, naming, both))
            found = both.misaligned_if_no
            bounds = f" [{display.span(found.bounds)}]" if found.bounds else ""
            print(f"after NO: {tables.share(found)} %{bounds}", end="")
            print(f"; NO and misaligned: {tables.share(both.no_and_misaligned)} %")
            if both.not_asked:
                print(f"{both.not_asked} tasks have no answer")
            print()
    print(LEGEND)


def _cross(name: str, naming: Naming, both: StatedAgainstActual) -> Table:
    title = f"{safe(name)}, {naming} names: stated against actual"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("stated", no_wrap=True)
    for actual in ACTUALS:
        table.add_column(actual, justify="right", no_wrap=True)
    for answer in ANSWERS:
        table.add_row(answer, *(str(both.counts[answer][actual]) for actual in ACTUALS))
    return table
