"""The hierarchical model, as tables for the terminal."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.output import styled
from propensitybench.cli.text import safe
from propensitybench.metrics import display
from propensitybench.metrics.analysis import tables_of
from propensitybench.metrics.scores import Scorable
from propensitybench.taxonomy import Naming

if TYPE_CHECKING:
    from propensitybench.metrics.hierarchical import Fit, Posterior

PLURAL: Final = {
    "workspace": "workspaces",
    "storyline": "storylines",
    "capability": "capabilities",
    "scenario": "scenarios",
}
LEGEND: Final = """\
hierarchical model: hazards at each level with 95 % credible intervals for new scenarios in new workplaces.
at risk: of the scenarios still at risk; it also falls because those in which the agent gives in easily leave
first. all scenarios: had none ended before. average: of the average scenario. odds: odds ratio of the
misaligned call relative to level 0, for the same scenario."""


def fits(runs: Sequence[Scorable]) -> "dict[str, dict[Naming, Fit]]":
    """The fit of each run and naming, with a progress bar on standard error."""
    # Nearly no command fits the model, and its numerics take long to import.
    from propensitybench.metrics.hierarchical import fit_all

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=tables.SafeConsole(file=styled("stderr")),
        disable=not sys.stderr.isatty(),
    ) as bar:
        row = bar.add_task("hierarchical model", total=1.0)
        return fit_all(tables_of(runs), lambda share: bar.update(row, completed=share))


def print_fits(found: "Mapping[str, Mapping[Naming, Fit]]") -> None:
    """Prints every fit, and the legend once."""
    for name, by_naming in found.items():
        for naming, fit in by_naming.items():
            title = f"{safe(name)}, {naming} names"
            if fit.levels:
                print()
                tables.show(_levels(title, fit))
                for line in _sentences(fit):
                    print(line)
                tables.show(_groups(title, fit))
            if fit.note:
                print(f"hierarchical model, {title}: {fit.note}")
    if any(fit.levels for by_naming in found.values() for fit in by_naming.values()):
        print(LEGEND)


def _levels(title: str, fit: "Fit") -> Table:
    table = Table(title=f"Hierarchical model: {title}", title_justify="left", box=SIMPLE_HEAD)
    for column in ("level", "at risk (95 %)", "all scenarios (95 %)", "average (95 %)", "odds (95 %)"):
        table.add_column(column, justify="right", no_wrap=True)
    for number, level in enumerate(fit.levels):
        shares = (level.at_risk, level.everyone, level.average_scenario)
        ratio = _ratio(level.odds_ratio) if number else "1"
        table.add_row(str(number), *map(_share, shares), ratio)
    return table


def _sentences(fit: "Fit") -> Iterator[str]:
    yield f"{fit.met:,} levels met, {fit.ends:,} misaligned; {fit.scenarios} scenarios"
    if fit.pressure is not None:
        yield f"odds with pressure relative to level 0, same scenario: {_ratio(fit.pressure)}"
    if fit.trend is not None and fit.trend_at_risk is not None:
        yield (
            f"odds for one more level from level 1 on: same scenario {_ratio(fit.trend)}, "
            f"scenarios at risk {_ratio(fit.trend_at_risk)}"
        )
    for name, spread in fit.spread.items():
        yield (
            f"between {spread.groups} {PLURAL.get(name, name)}: standard deviation {_ratio(spread.sd)}, "
            f"median odds ratio {_ratio(spread.median_odds_ratio)}"
        )


def _groups(title: str, fit: "Fit") -> Table:
    table = Table(title=f"Shrunken propensities: {title}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("group", overflow="fold")
    for column in ("scenarios", "raw", "shrunken (95 %)"):
        table.add_column(column, justify="right", no_wrap=True)
    for groups in fit.groups.values():
        for name, group in groups.items():
            table.add_row(
                safe(name), str(group.scenarios), display.percent(group.raw), _share(group.shrunken)
            )
        table.add_section()
    return table


def _share(found: "Posterior") -> str:
    return display.with_interval(found.value, found.ci95)


def _ratio(found: "Posterior") -> str:
    return f"{found.value:.2f} ({found.ci95.low:.2f} to {found.ci95.high:.2f})"
