"""The progress bar of every command that waits for models."""

import sys

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from propensitybench.cli import tables
from propensitybench.cli.output import styled


def progress_bar(*, remaining: bool = True) -> Progress:
    """A bar on standard error, with a ``note`` after each row; without a terminal it shows nothing.

    Args:
        remaining: whether to estimate the time that is left.
    """
    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ]
    if remaining:
        columns.append(TimeRemainingColumn())
    # In a log file the bar would only be control characters.
    return Progress(
        *columns,
        TextColumn("{task.fields[note]}", markup=False),
        console=tables.SafeConsole(file=styled("stderr")),
        disable=not sys.stderr.isatty(),
    )
