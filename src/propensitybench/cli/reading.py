"""Reads the runs that a command is given, and prints what was skipped."""

from collections.abc import Sequence
from pathlib import Path

from propensitybench.cli.output import print_note
from propensitybench.runs import Run, read_runs


def read(files: Sequence[Path]) -> list[Run]:
    """The runs in run files, Inspect logs and folders; prints what was skipped to standard error."""
    found = read_runs(files)
    for note in found.skipped:
        print_note(f"note: {note}")
    return found.runs
