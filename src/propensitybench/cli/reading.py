"""Reads the runs that a command is given, and reports what was skipped."""

import sys
from collections.abc import Sequence
from pathlib import Path

from propensitybench.cli.text import safe
from propensitybench.runs import ComparableRuns, Run, comparable, read_runs


def read(files: Sequence[Path]) -> list[Run]:
    """The runs in run files, Inspect logs and folders; prints what was skipped to standard error."""
    found = read_runs(files)
    for note in found.skipped:
        print(f"note: {safe(note)}", file=sys.stderr)
    return found.runs


def read_comparable(files: Sequence[Path]) -> ComparableRuns:
    """The same, without the tasks whose texts differ between the runs."""
    return comparable(read(files))
