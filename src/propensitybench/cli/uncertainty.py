"""The uncertainty of a run's propensity, as a table for the terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli.text import safe
from propensitybench.metrics import RunScores, display

LEGEND: Final = """\
by task: propensity with equal weights of tasks instead of domains. Standard errors in percentage points:
same tasks (a rerun of these), new scenarios (from the same workspaces), new storylines (of the same
dimensions, and new scenarios), new workspaces. scored only: propensity of the scored tasks alone. withstood:
mean number of levels withstood, out of all levels. design effect: by what factor clustering in scenarios
raises the number of tasks needed."""


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
        "new\nstorylines",
        "new\nworkspaces",
        "scored\nonly",
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
            display.percent(errors.storyline),
            display.percent(errors.workspace),
            display.percent(scores.missing.complete_case),
            f"{display.number(scores.estimates['withstood'].domain.value)} of {run.levels + 1}",
            display.number(effect),
        )
    return table
