"""How sure a run's propensity is, as a table for a terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe
from propensitybench.metrics import RunScores

LEGEND: Final = """\
by task: propensity with every task counting equally, instead of every domain. standard errors, in points:
same tasks (these again), new scenarios (from the same workplaces; behind the interval above), new workplaces.
missing: the 95 % interval with the blocked and errored tasks at their best and worst; where it is much wider
than the interval above, quote this one. withstood: mean number of levels withstood, of those there are.
design: how many times more tasks this needs than if they were independent of each other."""


def uncertainty(run: RunScores) -> Table:
    """The uncertainty of one run, a row for each naming."""
    table = Table(
        title=f"{safe(run.model)}: how sure (percent and points)", box=SIMPLE_HEAD, title_justify="left"
    )
    table.add_column("naming", no_wrap=True)
    titles = (
        "scenarios",
        "by task",
        "same\ntasks",
        "new\nscenarios",
        "new\nworkplaces",
        "missing",
        "withstood",
        "design",
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
            tables.percent(both.task.value),
            tables.percent(errors.benchmark),
            tables.percent(errors.scenario),
            tables.percent(errors.workspace),
            tables.span(scores.missing.bounds_interval),
            f"{tables.number(scores.survival.withstood)} of {run.levels + 1}",
            tables.number(effect),
        )
    return table
