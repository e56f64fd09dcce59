"""Verification of a run, given as an object or as its file."""

from propensitybench.runs.base import Run
from propensitybench.runs.read import PathLike, run_file_of
from propensitybench.store import Mismatch, RunFile, mismatches


def verify(run: Run | RunFile | PathLike) -> tuple[Mismatch, ...]:
    """Checks every row of a run file that any command reads, and replays every task.

    Args:
        run: a run in a run file, or the file.

    Returns:
        What does not match the rest: the task, or ``(file)``, and a sentence; empty if all is as it was.

    Raises:
        NotARunFile: the file is none, or a row cannot be read at all.
        BadInput: the run is not stored in a run file.
    """
    if isinstance(run, RunFile):
        return tuple(mismatches(run))
    with RunFile.open(run_file_of(run)) as file:
        return tuple(mismatches(file))
