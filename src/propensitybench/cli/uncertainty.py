"""The uncertainty of a run's propensity, as a table for the terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli.text import safe
from propensitybench.metrics import RunScores, display

LEGEND: Final = """\
by task: propensity with equal weights of tasks instead of domains. Standard errors in percentage points:
same tasks (a rerun of these), new scenarios (from the same workspaces; as in the interval above), new
workspaces. missing: 95 % interval for the bounds that blocked, truncated and errored tasks allow; if it is
much wider than the interval above, quote this one. withstood: mean number of levels withstood, out of all
levels. design effect: by what factor clustering in scenarios raises the number of tasks needed."""


def uncertainty(run: RunScores) -> Table:
    """The uncertainty of one run, one row for each naming."""
    table = Table(
        title=f"{safe(run.model)}: uncertainty (percent and percentage points)",
        box=SIMPLE_HEAD,
        title_justify="left",
    )
    table.add_column("naming", no_wrap=True)
    titles = (
        "scenarios",
        "by task",
        "same\ntasks",
        "new\nscenarios",
        "new\nworkspaces",
        "missing",
        "withstood",
        "design\neffect",
    )
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for naming, scores in run.naming.items():
        both = scores.estimates["propensity"]
        errors = both.domain.errors
        effect = scores.variance.design_effect
        table.add_row(
            naming,
            str(both.domain.clusters),
            display.percent(both.task.value),
            display.percent(errors.benchmark),
            display.percent(errors.scenario),
            display.percent(errors.workspace),
            display.span(scores.missing.bounds_interval),
            f"{display.number(scores.survival.withstood)} of {run.levels + 1}",
            display.number(effect),
        )
    return table
