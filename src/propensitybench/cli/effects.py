"""The regression as a table for a terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.contrasts import p_value
from propensitybench.cli.text import safe
from propensitybench.metrics.regression import Regression

LEGEND: Final = """\
regression: discrete-time logit with errors clustered by scenario; each factor with the others held fixed.
points: average marginal effect in percentage points, against the mean of the factor's values, or for the
benign naming against the harmful one. odds: odds ratio of giving in at a level. p: not adjusted."""


def effects(found: Regression) -> Table:
    """The effects of a regression, a row for each value of a factor."""
    title = (
        f"Regression: {found.rows:,} levels met, {found.ends:,} misaligned ends, {found.clusters} scenarios"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
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
            tables.percent(effect.propensity),
            f"{effect.points:+.1f} ({points.low:+.1f} to {points.high:+.1f})",
            f"{effect.odds_ratio:.2f} ({odds.low:.2f} to {odds.high:.2f})",
            p_value(effect.p),
        )
        factor = effect.factor
    return table


def print_regression(found: Regression) -> None:
    """Prints the table, and what the regression could not tell."""
    if found.effects:
        print()
        tables.show(effects(found))
        print(LEGEND)
    if found.note:
        print(f"regression: {found.note}")
    if found.left_out:
        constant = ", ".join(map(safe, found.left_out))
        print(f"regression: left out, because none or all of their levels ended misaligned: {constant}")
