"""Tables for a terminal, whatever text is in them."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table

from propensitybench.cli.output import styled
from propensitybench.escaping import visible
from propensitybench.presentation.console import SafeConsole
from propensitybench.presentation.tables import Grid

PIPE_WIDTH: Final = 110
# Where a column of names is folded: sooner in a terminal, which may be narrow.
FOLDED: Final = 12
FOLDED_IN_PIPE: Final = 60


def console() -> Console:
    """Standard output, without markup: scores and names are printed as they are."""
    out = SafeConsole(file=styled("stdout"), markup=False, highlight=False, emoji=False)
    # A file or pipe has no width; rich would cut the table to 80 columns.
    if not out.is_terminal:
        out.width = PIPE_WIDTH
    return out


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: int = 1,
    justify: JustifyMethod = "right",
) -> Table:
    """A table of texts, which are escaped before they are measured.

    Args:
        title: above it.
        columns: their headings.
        rows: their cells; an empty row is a line.
        names: how many columns, from the left, hold names, which are folded where they are too wide.
        justify: where the cells of the other columns stand, which are never folded.
    """
    found = Table(title=visible(title), title_justify="left", box=SIMPLE_HEAD)
    for place, heading in enumerate(columns):
        is_name = place < names
        found.add_column(
            visible(heading), justify="left" if is_name else justify, no_wrap=not is_name, overflow="fold"
        )
    for row in rows:
        if row:
            found.add_row(*map(visible, row))
        else:
            found.add_section()
    return found


def show_grid(grid: Grid) -> None:
    """Prints a table of numbers."""
    show(table(grid.title, grid.columns, grid.rows, names=grid.names))


def show(found: Table) -> None:
    """Prints a table; in a narrow terminal its lines wrap, but no number is cut."""
    out = console()
    folded = FOLDED if out.is_terminal else FOLDED_IN_PIPE
    for column in found.columns:
        lines = (*str(column.header).splitlines(), *map(str, column.cells))
        widest = max(map(cell_len, lines))
        column.min_width = widest if column.no_wrap else min(widest, folded)
    # A blank on either side of each column, one between columns, and one at either end.
    needed = sum(column.min_width or 0 for column in found.columns) + 3 * len(found.columns) + 1
    out.width = max(out.width, needed)
    out.print(found)
