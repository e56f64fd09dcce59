"""The regression, as a table for the terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe
from propensitybench.metrics import display
from propensitybench.metrics.regression import Regression

LEGEND: Final = """\
regression: discrete-time logit with errors clustered by scenario; each factor is adjusted for the others.
points: average marginal effect in percentage points, relative to the mean of the factor's values; benign
relative to harmful. odds: odds ratio of the misaligned call at a level. p: not adjusted for several tests."""


def effects(found: Regression) -> Table:
    """The effects of a regression, one row for each value of a factor."""
    counts = f"{found.rows:,} levels met, {found.ends:,} misaligned; {found.clusters} scenarios"
    table = Table(title=f"Regression: {counts}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("factor", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name in ("propensity", "points (95 %)", "odds (95 %)", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    factor = ""
    for effect in found.effects:
        if factor and effect.factor != factor:
            table.add_section()
        points, odds = effect.points_ci95, effect.odds_ratio_ci95
        table.add_row(
            "" if effect.factor == factor else effect.factor,
            safe(effect.value),
            display.percent(effect.propensity),
            f"{effect.points:+.1f} ({points.low:+.1f} to {points.high:+.1f})",
            f"{effect.odds_ratio:.2f} ({odds.low:.2f} to {odds.high:.2f})",
            display.p_value(effect.p),
        )
        factor = effect.factor
    return table


def print_regression(found: Regression) -> None:
    """Prints the table and what could not be estimated."""
    if found.effects:
        print()
        tables.show(effects(found))
        print(LEGEND)
    if found.note:
        print(f"regression: {found.note}")
    if found.left_out:
        constant = ", ".join(map(safe, found.left_out))
        print(f"regression: left out, because none or all of their levels ended misaligned: {constant}")
